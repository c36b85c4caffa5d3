//! Marks short loops for unrolling, which naga's writer never does.

use naga::{Function, Module, Statement};
use spirv::{LoopControl, Op};

use super::{instructions, is};
use crate::analysis::proof::trip_count::loop_head;
use crate::analysis::proof::unrolling::{Unroll, unrolled_loops};
use crate::ir::blocks;

/// The length in words of the instruction at the head of a loop.
const WORDS: usize = 4;

/// The loop-control bit that requests unrolling.
const UNROLL: u32 = LoopControl::UNROLL.bits();

/// Marks the short loops of a module in its SPIR-V, where loops have the same order.
pub(super) fn mark_unrolled(module: &Module, words: &mut [u32]) {
    let unrolled: Vec<bool> =
        blocks::functions(module).flat_map(|function| unrolled(module, function)).collect();
    if !unrolled.contains(&true) {
        return;
    }
    let heads = heads(words);
    if heads.len() == unrolled.len() {
        for (head, _) in heads.into_iter().zip(unrolled).filter(|(_, unrolled)| *unrolled) {
            words[head + WORDS - 1] |= UNROLL;
        }
    }
}

/// By loop of a function, outer ones first: whether to unroll it.
fn unrolled(module: &Module, function: &Function) -> Vec<bool> {
    let found = unrolled_loops((module, function), Unroll::All);
    let mut unrolled = Vec::new();
    blocks::each(&function.body, &mut |statement| {
        if let Statement::Loop { body, .. } = statement {
            unrolled.push(loop_head(body).is_some_and(|(_, condition)| found.contains_key(&condition)));
        }
    });
    unrolled
}

/// The positions of the instructions at the heads of loops.
fn heads(words: &[u32]) -> Vec<usize> {
    let is_head = |instruction: &[u32]| is(instruction[0], Op::LoopMerge) && instruction.len() == WORDS;
    instructions(words).filter(|(_, instruction)| is_head(instruction)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checks, Program, Specialisation};

    /// Which loops are marked.
    fn marks(loops: &str) -> Vec<bool> {
        let code = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(1) fn main() {{ var a = y[0]; {loops} y[1] = a; }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::BoundedOnce).unwrap();
        heads(&words).into_iter().map(|head| words[head + WORDS - 1] & UNROLL != 0).collect()
    }

    #[test]
    fn short_loops_are_marked() {
        assert_eq!(marks("for (var i = 0u; i < 16u; i++) { a += y[a]; }"), [true]);
        assert_eq!(marks("for (var i = 0; i < 16; i++) { a += y[a]; }"), [true]);
        assert_eq!(marks("for (var i = -1000000; i < 16; i++) { a += y[a]; }"), [false]);
        assert_eq!(marks("var i = i32(a); for (; i < 16; i++) { a += y[a]; }"), [false]);
        assert_eq!(marks("for (var i = 0u; a < 16u; i += 4u) { a += y[a]; }"), [false]);
        assert_eq!(marks("for (var i = 0u; i < 17u; i++) { a += y[a]; }"), [false]);
    }

    #[test]
    fn nested_loops_count_with_their_unrolled_size() {
        let nest = |names: &[&str]| {
            let begin = |name: &&str| format!("for (var {name} = 0u; {name} < 16u; {name}++) {{ ");
            let begins: String = names.iter().map(begin).collect();
            marks(&format!("{begins} a += y[a]; {}", "}".repeat(names.len())))
        };
        assert_eq!(nest(&["i", "j"]), [true, true]);
        assert_eq!(nest(&["i", "j", "k", "l"]), [false, false, true, true]);
    }
}
