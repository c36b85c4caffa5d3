//! A kernel with its data, and what must come out.

use crate::expect::Expect;
use crate::scalar::Kind;

/// A kernel, what it is given, and the checks of what it makes.
#[derive(Clone, Debug)]
pub struct Program {
    /// The entry point; unique among the programs that are loaded together.
    pub entry: String,
    /// WGSL whose names do not collide with those of the others.
    pub code: String,
    /// What not every device has: `f16`, `f64`, `i64`, `subgroups`.
    pub needs: Vec<String>,
    /// `override` constants that are given when it is loaded.
    pub constants: Vec<(String, String)>,
    /// What `alias T` stands for. A program with this, or with constants, is loaded alone.
    pub element: Option<Kind>,
    /// Groups of the launch.
    pub groups: [u32; 3],
    /// Its tensors, by binding.
    pub buffers: Vec<Buffer>,
    /// Its scalars.
    pub scalars: Vec<(Kind, u64)>,
    /// What must come out.
    pub checks: Vec<Check>,
    /// Words of the error that it must be refused with.
    pub says: Vec<String>,
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The scalars that it is made of.
    pub kind: Kind,
    /// Whether the kernel writes it.
    pub written: bool,
    /// Its content at the start.
    pub bytes: Vec<u8>,
}

/// Named expectations.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// What must be where.
    pub expectations: Vec<Expectation>,
}

/// What a scalar in a tensor must be.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The tensor.
    pub buffer: usize,
    /// The scalar's place in bytes.
    pub offset: usize,
    /// What it may be.
    pub expect: Expect,
}

/// What the tensors hold after a run.
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
    /// Compares.
    ///
    /// # Errors
    /// What differs, up to eight places.
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
    /// The code with what must stand in front of it.
    #[must_use]
    pub fn text(&self) -> String {
        join(&[self])
    }
}

/// One module with the code of all `programs`.
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
