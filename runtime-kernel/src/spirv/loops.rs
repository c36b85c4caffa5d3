//! Loops of few rounds, marked to be written out: naga's writer marks none.

use naga::{Block, Function, Module, Statement};

use crate::proof::rounds;

/// The instruction at the head of a loop, and its words.
const LOOP_MERGE: u32 = 246;
const WORDS: usize = 4;

/// The bit that asks for a loop to be written out.
const UNROLL: u32 = 1;

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

/// Whether each loop of a block is short, those around others first.
fn find(source: (&Module, &Function), block: &Block, short: &mut Vec<bool>) {
    for statement in block {
        match statement {
            Statement::Block(inner) => find(source, inner, short),
            Statement::If { accept, reject, .. } => {
                find(source, accept, short);
                find(source, reject, short);
            }
            Statement::Switch { cases, .. } => cases.iter().for_each(|case| find(source, &case.body, short)),
            Statement::Loop { body, continuing, .. } => {
                short.push(rounds::is_short(source, rounds::condition(body), [body, continuing]));
                find(source, body, short);
                find(source, continuing, short);
            }
            _ => {}
        }
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
