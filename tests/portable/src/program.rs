//! A kernel with its arguments and expected results.

use crate::expect::Expect;
use crate::scalar::Kind;

/// A kernel with its arguments and checks.
#[derive(Clone, Debug)]
pub struct Program {
    /// The entry point; unique among programs that are loaded together.
    pub entry: String,
    /// The WGSL code; its names are unique too.
    pub code: String,
    /// Required optional features: `f16`, `f64`, `i64`, `subgroups`.
    pub needs: Vec<String>,
    /// Values of `override` constants.
    pub constants: Vec<(String, String)>,
    /// Uniform buffers that are passed by value.
    pub by_value: Vec<String>,
    /// The type that replaces `alias T`. A program with this, with constants or by-value buffers is loaded alone.
    pub element: Option<Kind>,
    /// The number of work-groups.
    pub groups: [u32; 3],
    /// The tensors, by binding.
    pub buffers: Vec<Buffer>,
    /// The scalars.
    pub scalars: Vec<(Kind, u64)>,
    /// The checks of the results.
    pub checks: Vec<Check>,
    /// Words of the error with which the program must be rejected.
    pub says: Vec<String>,
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The scalar type of its elements.
    pub kind: Kind,
    /// Whether the kernel writes it.
    pub written: bool,
    /// The initial content.
    pub bytes: Vec<u8>,
}

/// A named group of expectations.
#[derive(Clone, Debug)]
pub struct Check {
    /// The name.
    pub name: String,
    /// The expectations.
    pub expectations: Vec<Expectation>,
}

/// An expected scalar in a tensor.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The index of the tensor.
    pub buffer: usize,
    /// The byte offset of the scalar.
    pub offset: usize,
    /// The allowed values.
    pub expect: Expect,
}

/// The contents of the tensors after a run.
pub type Outputs = Vec<Vec<u8>>;

impl Buffer {
    /// A tensor with these scalars.
    #[must_use]
    pub fn new(kind: Kind, written: bool, scalars: &[u64]) -> Self {
        let bytes = scalars.iter().flat_map(|bits| bits.to_le_bytes()[..kind.bytes()].to_vec()).collect();
        Self { kind, written, bytes }
    }
}

impl Check {
    /// Checks the outputs.
    ///
    /// # Errors
    /// The first eight differences.
    pub fn verdict(&self, buffers: &[Buffer], outputs: &Outputs) -> Result<(), String> {
        let mut wrong = Vec::new();
        for Expectation { buffer, offset, expect } in &self.expectations {
            let kind = buffers[*buffer].kind;
            let bits = kind.load(&outputs[*buffer][*offset..]);
            if !expect.allows(bits) {
                let at = offset / kind.bytes();
                wrong.push(format!("buffer {buffer}[{at}] is {}, not {expect}", kind.show(bits)));
            }
        }
        let more = wrong.len().saturating_sub(8);
        wrong.truncate(8);
        if more > 0 {
            wrong.push(format!("{more} more"));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}

impl Program {
    /// The code, preceded by the `enable` directives it needs.
    #[must_use]
    pub fn text(&self) -> String {
        join(&[self])
    }
}

/// Joins the code of all `programs` into one module.
#[must_use]
pub fn join(programs: &[&Program]) -> String {
    let needs = |what: &str| programs.iter().any(|program| program.needs.iter().any(|need| need == what));
    let mut text = String::new();
    for extension in ["f16", "subgroups"].into_iter().filter(|extension| needs(extension)) {
        text += &format!("enable {extension};\n");
    }
    programs.iter().for_each(|program| text += &program.code);
    text
}
