//! Which variables a function touches, and how.

use std::collections::HashMap;

use super::{Code, Id};

/// How something is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

const NONE: Use = Use { reads: false, writes: false };
const READ: Use = Use { reads: true, writes: false };
const WRITE: Use = Use { reads: false, writes: true };
const BOTH: Use = Use { reads: true, writes: true };

/// A function: what it touches of what stands outside, and what it calls.
#[derive(Debug, Default)]
pub(super) struct Function {
    uses: HashMap<Id, Use>,
    calls: Vec<Id>,
    /// Pointers into variables.
    pointers: HashMap<Id, Id>,
}

impl Function {
    /// Takes an instruction. Only operands that can be pointers are looked at: others may be numbers.
    pub(super) fn note(&mut self, operation: u32, operands: &[u32], is_variable: impl Fn(Id) -> bool) {
        let at = |index: usize| operands.get(index).copied();
        let root = |pointers: &HashMap<Id, Id>, id: Id| {
            if is_variable(id) { Some(id) } else { pointers.get(&id).copied() }
        };
        let mut touch = |index: usize, how: Use| {
            if let Some(variable) = at(index).and_then(|id| root(&self.pointers, id)) {
                let known = self.uses.entry(variable).or_default();
                (known.reads, known.writes) = (known.reads || how.reads, known.writes || how.writes);
            }
        };
        match operation {
            57 => {
                (3..operands.len()).for_each(|index| touch(index, BOTH));
                self.calls.extend(at(2));
            }
            // Loads, plain, atomic, and of matrices.
            61 | 227 | 4457 | 5359 => touch(2, READ),
            62 => {
                touch(0, WRITE);
                // What is done with a pointer that is stored is not followed.
                touch(1, BOTH);
            }
            228 | 319 | 4458 | 5360 => touch(0, WRITE),
            254 => touch(0, BOTH),
            63 | 64 => {
                touch(0, WRITE);
                touch(1, READ);
            }
            65..=67 | 70 | 83 => {
                touch(2, NONE);
                if let (Some(result), Some(variable)) = (at(1), at(2).and_then(|id| root(&self.pointers, id)))
                {
                    self.pointers.insert(result, variable);
                }
            }
            68 => touch(2, NONE),
            // Atomic operations.
            229..=242 | 318 | 5614 | 5615 | 6035 => touch(2, BOTH),
            // A choice between pointers.
            169 | 245 => (2..operands.len()).for_each(|index| touch(index, BOTH)),
            _ => {}
        }
    }
}

impl Code {
    /// What a function touches, by itself and through those that it calls.
    pub(super) fn uses(&self, function: Id) -> HashMap<Id, Use> {
        let mut found: HashMap<Id, Use> = HashMap::new();
        let (mut open, mut seen) = (vec![function], vec![function]);
        while let Some(function) = open.pop().and_then(|id| self.functions.get(&id)) {
            for (id, how) in &function.uses {
                let known = found.entry(*id).or_default();
                (known.reads, known.writes) = (known.reads || how.reads, known.writes || how.writes);
            }
            for call in &function.calls {
                if !seen.contains(call) {
                    seen.push(*call);
                    open.push(*call);
                }
            }
        }
        found
    }
}
