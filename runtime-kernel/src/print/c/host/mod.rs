//! The host's entry points: loops over the invocations of a work-group, written so that a C compiler vectorises them.
//!
//! ```text
//! inline ── Plan (names) ── Schedule ── verify ── entry (the function, and what runs once) ── lanes (a region: loops over z, y and x)
//!                              │
//!        Uniformity ── once (what runs once) ── steps (cut into regions) ── homes (where values live) ── rows (how wide)
//!        ── claims (what a fast copy relies on) ── independence (pragmas) ── streams (a copy for much memory)
//!        ── contiguous (loops of an item that are checked before they begin)
//! ```
//!
//! Everything is decided in the [`Schedule`](schedule::Schedule), which is plain data: analysis fills it in, [`verify`] proves it
//! right without any of the analysis, and printing adds no decision. In tests, under the fuzzer and in debug builds a schedule that does not
//! pass gives way to the plain form: checks are kept, every region is one loop, nothing is hoisted, and a comment says why.
//!
//! A work-group is run by one thread: a region after the other, each for all invocations. So a barrier is the end of a
//! region, workgroup memory is a local variable, and values that live across regions are kept in arrays.

mod entry;
mod environment;
mod lane_loops;
mod nontemporal_stores;
mod preamble;
mod schedule;
mod stack_usage;
mod verify;

use runtime_core::Result;

pub(super) use entry::entry;

use crate::program::Program;
use crate::transform::inline::inline;

/// The program that the host's entry points are written from: with functions inlined and no private variables.
pub(super) fn prepare(program: &Program) -> Result<Program> {
    let flat = |unrolls| program.with(inline(&program.module, &program.info, unrolls)?);
    flat(true).or_else(|_| flat(false))
}
