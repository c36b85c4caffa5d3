//! Lists in the interpreter.

use std::collections::HashMap;

use kernel_fuzz::case::Launch;
use kernel_fuzz::interpret::{Invalid, Parsed, interpret_on};
use runtime_core::lowering::{FusionArg, PlannedKernel};

use crate::lists::Case;

/// The contents of the tensors of a list.
pub(crate) type Contents = Vec<Vec<u8>>;

/// Interprets the kernels of a list. Each text is parsed once.
#[derive(Default)]
pub(crate) struct Interpreter {
    parsed: HashMap<String, Parsed>,
}

impl Interpreter {
    /// Runs a kernel of a plan on tensors.
    pub(crate) fn run(
        &mut self,
        case: &Case,
        planned: &PlannedKernel,
        tensors: &mut Contents,
    ) -> Result<(), Invalid> {
        let (text, entry, groups, args) = case.resolved(planned);
        let mut launch = Launch {
            entry: entry.to_owned(),
            groups,
            lengths: Vec::new(),
            scalars: Vec::new(),
            constants: Vec::new(),
            seed: 0,
        };
        let mut bound = Vec::new();
        for arg in &args {
            match *arg {
                FusionArg::Tensor(tensor) => {
                    launch.lengths.push(tensors[tensor].len() / element_bytes(text));
                    bound.push(tensor);
                }
                FusionArg::Scalar { bits, .. } => launch.scalars.push(bits.to_string()),
            }
        }
        let contents: Vec<_> = bound.iter().map(|tensor| tensors[*tensor].clone()).collect();
        let result = interpret_on(self.parsed(text), &launch, &contents)?;
        for (bound, tensor) in bound.into_iter().zip(result.tensors).filter(|(_, tensor)| tensor.written) {
            tensors[bound][..tensor.after.len()].copy_from_slice(&tensor.after);
        }
        Ok(())
    }

    /// Drops the launches without a unique result; returns the contents at the beginning, and after each of the others.
    pub(crate) fn unfused(&mut self, case: &mut Case) -> Vec<Contents> {
        let mut steps = vec![initial(case)];
        while steps.len() <= case.launches.len() {
            let at = steps.len() - 1;
            let mut tensors = steps[at].clone();
            match self.run(case, &PlannedKernel { launches: at..at + 1, code: None }, &mut tensors) {
                Ok(()) => steps.push(tensors),
                Err(Invalid::Unknown(what)) => panic!("the interpreter does not support {what}"),
                Err(_) => drop(case.launches.remove(at)),
            }
        }
        steps
    }

    fn parsed(&mut self, text: &str) -> &Parsed {
        self.parsed
            .entry(text.to_owned())
            .or_insert_with(|| Parsed::new(text).unwrap_or_else(|error| panic!("{error}\n{text}")))
    }
}

/// Whether the elements of a list's tensors are `f32`, instead of `u32`.
pub(crate) fn has_floats(case: &Case) -> bool {
    case.launches.first().is_some_and(|launch| launch.code.contains("array<f32>"))
}

/// Whether a tensor of a list has the same bits as another; any two NaNs are the same.
pub(crate) fn is_same(case: &Case, expected: &[u8], actual: &[u8]) -> bool {
    let is_nan = |word: &[u8]| word.try_into().is_ok_and(|word| f32::from_le_bytes(word).is_nan());
    let mut words = expected.chunks(4).zip(actual.chunks(4));
    expected == actual || has_floats(case) && words.all(|(a, b)| a == b || (is_nan(a) && is_nan(b)))
}

/// The initial contents of the tensors of a list.
pub(crate) fn initial(case: &Case) -> Contents {
    case.tensors.iter().map(|data| data.iter().flat_map(|word| word.to_le_bytes()).collect()).collect()
}

/// The size of the elements that all kernels of a list have.
fn element_bytes(text: &str) -> usize {
    if text.contains("array<vec4") { 16 } else { 4 }
}
