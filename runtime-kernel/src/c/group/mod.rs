//! The host's entry points: loops over the invocations of a work-group, written so that a C compiler vectorises them.
//!
//! ```text
//! inline ── Plan (names) ── Uniformity ── once (what runs once) ── steps (cut into regions) ── homes (where values live)
//!        ── entry (the function, and what runs once) ── lanes (a region: loops over z, y and x) ── claims (its fast copy)
//!        ── streams (a copy of that for much memory)
//! ```
//!
//! A work-group is run by one thread: a region after the other, each for all invocations. So a barrier is the end of a
//! region, workgroup memory is a local variable, and values that live across regions are kept in arrays.

mod claims;
mod entry;
mod environment;
mod homes;
mod lanes;
mod once;
mod preamble;
mod rows;
mod steps;
mod streams;
mod uses;

use naga::Module;
use naga::valid::ModuleInfo;
use runtime_core::Result;

pub(super) use entry::entry;

use crate::inline::inline;
use crate::parse;
use crate::program::Program;

/// The program that the host's entry points are written from: with functions inlined and no private variables.
pub(super) fn prepare(program: &Program) -> Result<Program> {
    let (module, info) = flat(program, true).or_else(|_| flat(program, false))?;
    Ok(Program {
        module,
        info,
        source: program.source.clone(),
        path: program.path.clone(),
        depth: program.depth,
        interfaces: program.interfaces.clone(),
        overrides: Vec::new(),
        features: program.features.clone(),
    })
}

fn flat(program: &Program, unrolls: bool) -> Result<(Module, ModuleInfo)> {
    let module = inline(&program.module, &program.info, unrolls)?;
    let info = parse::validate_again(&module)?;
    Ok((module, info))
}
