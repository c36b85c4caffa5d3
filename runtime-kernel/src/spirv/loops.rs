//! Loops of few rounds, marked to be written out: naga's writer marks none.

use naga::{Block, Expression, FastHashMap, Function, Handle, LocalVariable, Module, Statement};

use crate::proof::rounds;

/// The instruction at the head of a loop, and its words.
const LOOP_MERGE: u32 = 246;
const WORDS: usize = 4;

/// The bit that asks for a loop to be written out.
const UNROLL: u32 = 1;

/// Expressions of a loop and of those in it, all written out: drivers obey, and take minutes for some times as many.
const SIZE: u64 = 8000;

/// What a call counts as.
const CALL: u64 = 12;

/// Words before the first instruction.
const HEADER: usize = 5;

/// Marks the short loops of a module in what was written of it: loops stand there in the same order.
pub(super) fn write_out(module: &Module, words: &mut [u32]) {
    let mut short = Vec::new();
    for (_, function) in module.functions.iter() {
        find((module, function), &function.body, &mut short);
    }
    for entry in &module.entry_points {
        find((module, &entry.function), &entry.function.body, &mut short);
    }
    let heads = heads(words);
    if heads.len() == short.len() {
        for (head, _) in heads.into_iter().zip(short).filter(|(_, short)| *short) {
            words[head + WORDS - 1] |= UNROLL;
        }
    }
}

/// Whether each loop of a block is short, those around others first; gives the size of the block, with these written out.
fn find(source: (&Module, &Function), block: &Block, short: &mut Vec<bool>) -> u64 {
    let mut size = 0;
    let mut stored = FastHashMap::default();
    for statement in block {
        size += match statement {
            Statement::Emit(range) => range.clone().count() as u64,
            Statement::Block(inner) => find(source, inner, short),
            Statement::If { accept, reject, .. } => find(source, accept, short) + find(source, reject, short),
            Statement::Switch { cases, .. } => cases.iter().map(|case| find(source, &case.body, short)).sum(),
            Statement::Loop { body, continuing, .. } => looped(source, [body, continuing], &stored, short),
            Statement::Call { .. } => CALL,
            Statement::Store { pointer, value } => {
                if let Expression::LocalVariable(variable) = source.1.expressions[*pointer] {
                    stored.insert(variable, *value);
                }
                1
            }
            _ => 1,
        };
    }
    size
}

fn looped(
    source: (&Module, &Function),
    [body, continuing]: [&Block; 2],
    stored: &FastHashMap<Handle<LocalVariable>, Handle<Expression>>,
    short: &mut Vec<bool>,
) -> u64 {
    let at = short.len();
    short.push(false);
    let once = find(source, body, short) + find(source, continuing, short);
    let condition = rounds::condition(body);
    let start = |variable: Handle<LocalVariable>| {
        stored.get(&variable).copied().or(source.1.local_variables[variable].init)
    };
    let all =
        rounds::greatest(source, condition, continuing, start).map(|rounds| rounds.saturating_mul(once));
    match all.filter(|all| *all <= SIZE && rounds::is_short(source, condition, [body, continuing])) {
        Some(all) => {
            short[at] = true;
            all
        }
        None => once,
    }
}

/// Where the instructions at the heads of loops stand.
fn heads(words: &[u32]) -> Vec<usize> {
    let mut heads = Vec::new();
    let mut at = HEADER;
    while let Some(&word) = words.get(at) {
        let length = (word >> 16) as usize;
        if word & 0xffff == LOOP_MERGE && length == WORDS && at + WORDS <= words.len() {
            heads.push(at);
        }
        at += length.max(1);
    }
    heads
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
    fn loops_of_few_rounds_are_marked() {
        assert_eq!(marks("for (var i = 0u; i < 16u; i++) { a += y[a]; }"), [true]);
        assert_eq!(marks("for (var i = 0; i < 16; i++) { a += y[a]; }"), [true]);
        assert_eq!(marks("for (var i = -1000000; i < 16; i++) { a += y[a]; }"), [false]);
        assert_eq!(marks("var i = i32(a); for (; i < 16; i++) { a += y[a]; }"), [false]);
        assert_eq!(marks("for (var i = 0u; a < 16u; i += 4u) { a += y[a]; }"), [false]);
        assert_eq!(marks("for (var i = 0u; i < 17u; i++) { a += y[a]; }"), [false]);
    }

    #[test]
    fn loops_within_each_other_are_as_large_as_all_that_is_written_out() {
        let nest = |names: &[&str]| {
            let begin = |name: &&str| format!("for (var {name} = 0u; {name} < 16u; {name}++) {{ ");
            let begins: String = names.iter().map(begin).collect();
            marks(&format!("{begins} a += y[a]; {}", "}".repeat(names.len())))
        };
        assert_eq!(nest(&["i", "j"]), [true, true]);
        assert_eq!(nest(&["i", "j", "k", "l"]), [false, false, true, true]);
    }
}
