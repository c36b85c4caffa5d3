//! A lowering that hides constants, and where loops end, from the driver's compiler: a kernel that is wrong only with
//! both in sight shows a defect of that compiler.
//!
//! In the entry points of the SPIR-V, each 32-bit constant in a computation is replaced by its sum with
//! `NumWorkgroups.x >> 31`, which is zero; the bits of it, for a float. Each loop also ends at its head if that is not
//! zero. So a value that the loop computes, and that is used after it, has two origins, and the compiler must keep it
//! for each work-item that leaves.

use std::collections::HashMap;
use std::sync::Arc;

use portable::modified_lowering::modified_lowering;
use runtime_core::CodeFormat;
use runtime_core::lowering::Lowering;

/// The lowering of WGSL to SPIR-V with opaque constants; other formats are unchanged.
pub(crate) fn opaque_constants() -> Arc<dyn Lowering> {
    modified_lowering(None, |_, target, lowered| {
        if target == CodeFormat::SPIRV_SHADER {
            let words: Vec<_> = lowered.code.chunks_exact(4).map(word).collect();
            lowered.code = add_opaque_zeros(&words).into_iter().flat_map(u32::to_le_bytes).collect();
        }
        Ok(())
    })
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// The number of words in the header; its fourth word is the bound of the ids.
const HEADER: usize = 5;
const BOUND: usize = 3;

const ENTRY_POINT: u32 = 15;
const TYPE_BOOL: u32 = 20;
const TYPE_INT: u32 = 21;
const TYPE_FLOAT: u32 = 22;
const TYPE_VECTOR: u32 = 23;
const TYPE_POINTER: u32 = 32;
const CONSTANT: u32 = 43;
const FUNCTION: u32 = 54;
const FUNCTION_END: u32 = 56;
const EXTENDED: u32 = 12;
const VARIABLE: u32 = 59;
const LOAD: u32 = 61;
const STORE: u32 = 62;
const DECORATE: u32 = 71;
const COMPOSITE_EXTRACT: u32 = 81;
const BITCAST: u32 = 124;
const ADD: u32 = 128;
const NOT_EQUAL: u32 = 171;
const SHIFT_RIGHT: u32 = 194;
const LOOP_MERGE: u32 = 246;
const LABEL: u32 = 248;
const BRANCH: u32 = 249;
const BRANCH_CONDITIONAL: u32 = 250;
/// From `OpSNegate` to `OpNot`: all operands are values.
const ARITHMETIC: std::ops::RangeInclusive<u32> = 126..=200;

const INPUT: u32 = 1;
const BUILTIN: u32 = 11;
const NUM_WORKGROUPS: u32 = 24;

fn instruction(code: u32, operands: &[u32]) -> Vec<u32> {
    let count = operands.len() as u32 + 1;
    [&[count << 16 | code], operands].concat()
}

fn instructions(words: &[u32]) -> impl Iterator<Item = (u32, &[u32])> {
    let mut rest = words.get(HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (first, _) = rest.split_first()?;
        let (this, behind) = rest.split_at_checked((first >> 16) as usize)?;
        rest = behind;
        Some((first & 0xffff, &this[1..]))
    })
}

/// The module being rewritten.
struct Module<'a> {
    old: &'a [u32],
    new: Vec<u32>,
    /// The next free id.
    bound: u32,
    /// New declarations.
    declared: Vec<u32>,
}

/// Ids used by the opaque zero.
struct Ids {
    boolean: u32,
    unsigned: u32,
    /// The constant 0.
    none: u32,
    vector: u32,
    /// The constant 31.
    bits: u32,
    /// The variable for `NumWorkgroups`, for entry points without one.
    groups: u32,
}

/// Adds an opaque zero to the constants that entry points compute with.
fn add_opaque_zeros(words: &[u32]) -> Vec<u32> {
    let new = words[..HEADER].to_vec();
    let mut module = Module { old: words, new, bound: words[BOUND], declared: Vec::new() };
    let ids = module.ids();
    let entries = module.globals(&ids);
    module.functions(&ids, &entries);
    module.new[BOUND] = module.bound;
    module.new
}

impl Module<'_> {
    fn fresh_id(&mut self) -> u32 {
        self.bound += 1;
        self.bound - 1
    }

    fn append(&mut self, code: u32, operands: &[u32]) {
        self.new.extend(instruction(code, operands));
    }

    /// Declares something; its id follows the first `before` operands.
    fn declare(&mut self, code: u32, before: usize, operands: &[u32]) -> u32 {
        let id = self.fresh_id();
        let (front, back) = operands.split_at(before);
        self.declared.extend(instruction(code, &[front, &[id], back].concat()));
        id
    }

    /// The id of a type or constant, which is declared if the module does not have it.
    fn find(&mut self, code: u32, before: usize, operands: &[u32]) -> u32 {
        let (front, back) = operands.split_at(before);
        let mut all = instructions(self.old).filter(|(found, _)| *found == code);
        let found = all.find(|(_, found)| found.starts_with(front) && found[before + 1..] == *back);
        found.map_or_else(|| self.declare(code, before, operands), |(_, found)| found[before])
    }

    fn ids(&mut self) -> Ids {
        let boolean = self.find(TYPE_BOOL, 0, &[]);
        let unsigned = self.find(TYPE_INT, 0, &[32, 0]);
        let none = self.find(CONSTANT, 1, &[unsigned, 0]);
        let vector = self.find(TYPE_VECTOR, 0, &[unsigned, 3]);
        let pointer = self.find(TYPE_POINTER, 0, &[INPUT, vector]);
        let bits = self.find(CONSTANT, 1, &[unsigned, 31]);
        Ids { boolean, unsigned, none, vector, bits, groups: self.declare(VARIABLE, 1, &[pointer, INPUT]) }
    }

    /// All 32-bit constants, with their types.
    fn constants(&self) -> Vec<(u32, u32)> {
        let all = |wanted| instructions(self.old).filter(move |(code, _)| *code == wanted);
        let is_short =
            |of| all(TYPE_INT).chain(all(TYPE_FLOAT)).any(|(_, operands)| operands[..2] == [of, 32]);
        let constants = all(CONSTANT).filter(|(_, operands)| is_short(operands[0]));
        constants.map(|(_, operands)| (operands[1], operands[0])).collect()
    }

    fn is_float(&self, ty: u32) -> bool {
        instructions(self.old).any(|(code, operands)| code == TYPE_FLOAT && operands[0] == ty)
    }

    /// Writes everything before the functions; returns the `NumWorkgroups` variable of each entry point.
    fn globals(&mut self, ids: &Ids) -> HashMap<u32, u32> {
        let is_groups = |id: &u32| {
            let of = [*id, BUILTIN, NUM_WORKGROUPS];
            instructions(self.old).any(|(code, operands)| code == DECORATE && operands == of)
        };
        let mut entries = HashMap::new();
        let mut is_decorated = false;
        for (code, operands) in instructions(self.old).take_while(|(code, _)| *code != FUNCTION) {
            let found = operands.iter().skip(2).copied().find(is_groups);
            if code == DECORATE && !std::mem::replace(&mut is_decorated, true) {
                self.append(DECORATE, &[ids.groups, BUILTIN, NUM_WORKGROUPS]);
            }
            match (code, found) {
                (ENTRY_POINT, None) => self.append(code, &[operands, &[ids.groups]].concat()),
                _ => self.append(code, operands),
            }
            if code == ENTRY_POINT {
                entries.insert(operands[1], found.unwrap_or(ids.groups));
            }
        }
        self.new.append(&mut self.declared);
        entries
    }

    fn functions(&mut self, ids: &Ids, entries: &HashMap<u32, u32>) {
        let constants = self.constants();
        // `groups` is set at the start of an entry point; then `opaque` maps each constant to its sum, and `never` is
        // false.
        let (mut groups, mut opaque, mut never) = (None, HashMap::new(), None);
        let (mut merge, mut initial) = (None, Vec::new());
        for (code, operands) in instructions(self.old).skip_while(|(code, _)| *code != FUNCTION) {
            let mut operands = operands.to_vec();
            match code {
                FUNCTION => groups = entries.get(&operands[1]),
                FUNCTION_END => {
                    opaque.clear();
                    never = None;
                }
                VARIABLE
                    if groups.is_some() && constants.iter().any(|(id, _)| operands.get(3) == Some(id)) =>
                {
                    initial.push([operands[1], operands[3]]);
                    operands.truncate(3);
                }
                VARIABLE | LABEL => {}
                LOOP_MERGE => merge = Some(operands[0]),
                _ => {
                    if let Some(groups) = groups.take() {
                        let zero = self.opaque_zero(ids, *groups);
                        opaque = self.sums(ids, zero, &constants);
                        never = Some(self.computed(NOT_EQUAL, ids.boolean, &[zero, ids.none]));
                        for [variable, value] in initial.drain(..) {
                            self.append(STORE, &[variable, opaque[&value]]);
                        }
                    }
                }
            }
            let values = match code {
                STORE => 1..2,
                EXTENDED => 4..operands.len(),
                code if ARITHMETIC.contains(&code) => 2..operands.len(),
                _ => 0..0,
            };
            for operand in &mut operands[values] {
                *operand = opaque.get(operand).copied().unwrap_or(*operand);
            }
            match (code, merge, never) {
                (BRANCH, Some(end), Some(never)) => {
                    self.append(BRANCH_CONDITIONAL, &[never, end, operands[0]]);
                }
                _ => self.append(code, &operands),
            }
            merge = merge.filter(|_| code == LOOP_MERGE);
        }
    }

    fn opaque_zero(&mut self, ids: &Ids, groups: u32) -> u32 {
        let count = self.computed(LOAD, ids.vector, &[groups]);
        let axis = self.computed(COMPOSITE_EXTRACT, ids.unsigned, &[count, 0]);
        self.computed(SHIFT_RIGHT, ids.unsigned, &[axis, ids.bits])
    }

    /// Adds the opaque zero to each constant.
    fn sums(&mut self, ids: &Ids, zero: u32, constants: &[(u32, u32)]) -> HashMap<u32, u32> {
        let mut sums = HashMap::new();
        for &(constant, of) in constants {
            let sum = if self.is_float(of) {
                let bits = self.computed(BITCAST, ids.unsigned, &[constant]);
                let sum = self.computed(ADD, ids.unsigned, &[bits, zero]);
                self.computed(BITCAST, of, &[sum])
            } else {
                self.computed(ADD, of, &[constant, zero])
            };
            sums.insert(constant, sum);
        }
        sums
    }

    fn computed(&mut self, code: u32, of: u32, operands: &[u32]) -> u32 {
        let result = self.fresh_id();
        self.append(code, &[&[of, result], operands].concat());
        result
    }
}

#[cfg(test)]
mod tests {
    use runtime_kernel::{Checks, Program, Specialisation};

    use super::*;

    /// The number of operands of additions that are 32-bit constants.
    fn added_constants(words: &[u32]) -> usize {
        let constants: Vec<_> = instructions(words).filter(|(code, _)| *code == CONSTANT).collect();
        let is_constant = |id: &u32| constants.iter().any(|(_, operands)| operands[1] == *id);
        let additions = instructions(words).filter(|(code, _)| *code == ADD);
        additions.map(|(_, operands)| operands[2..].iter().filter(|id| is_constant(id)).count()).sum()
    }

    #[test]
    fn no_constant_is_added_but_to_zero() {
        let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                    @compute @workgroup_size(1)
                    fn main(@builtin(num_workgroups) n: vec3u) { x[0] += 7u + n.y; x[1] += 9u; }";
        let program = Program::parse(text, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::Bounded).unwrap();
        let opaque = add_opaque_zeros(&words);
        let constants = instructions(&words).filter(|(code, _)| *code == CONSTANT).count();
        assert!(added_constants(&words) >= 2);
        // If the module did not have the constant 31, it is added, but not an operand of an addition.
        assert_eq!(added_constants(&opaque), constants);
        let groups = |words: &[u32]| {
            instructions(words).filter(|(_, operands)| operands.ends_with(&[BUILTIN, NUM_WORKGROUPS])).count()
        };
        assert_eq!((groups(&words), groups(&opaque)), (1, 2));
    }

    #[test]
    fn no_variable_starts_as_a_constant() {
        let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                    @compute @workgroup_size(1) fn main() { var a = 7u; var b = 2.5f; a += x[0]; x[1] = a; x[2] = pack2x16float(vec2(b)); }";
        let program = Program::parse(text, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::Bounded).unwrap();
        let initialised = |words: &[u32]| {
            let constants: Vec<_> = instructions(words).filter(|(code, _)| *code == CONSTANT).collect();
            let is_constant = |id: &u32| constants.iter().any(|(_, operands)| operands[1] == *id);
            let variables = instructions(words).filter(|(code, _)| *code == VARIABLE);
            variables.filter(|(_, operands)| operands.get(3).is_some_and(is_constant)).count()
        };
        assert_eq!((initialised(&words), initialised(&add_opaque_zeros(&words))), (2, 0));
    }

    #[test]
    fn every_loop_may_end_at_its_head() {
        let text = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                    @compute @workgroup_size(1)
                    fn main() { loop { x[0] += 1u; loop { x[1] += 1u; if x[1] > 3u { break; } } if x[0] > 3u { break; } } }";
        let program = Program::parse(text, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::Bounded).unwrap();
        let exits = |words: &[u32]| {
            let found: Vec<_> = instructions(words).collect();
            let at_head = found.windows(2).filter(|pair| pair[0].0 == LOOP_MERGE);
            at_head
                .map(|pair| pair[1].0 == BRANCH_CONDITIONAL && pair[1].1[1] == pair[0].1[0])
                .collect::<Vec<_>>()
        };
        let loops = exits(&words).len();
        assert!(loops >= 2, "{loops}");
        assert_eq!(exits(&words), vec![false; loops]);
        assert_eq!(exits(&add_opaque_zeros(&words)), vec![true; loops]);
    }
}
