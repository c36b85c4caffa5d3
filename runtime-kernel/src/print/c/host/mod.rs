//! Entry points with loops over the invocations of a work-group, written so that a C compiler vectorises them: those of host C,
//! and in OpenCL C those whose groups are larger than the device's.
//!
//! ```text
//! inline ─ Plan (names) ─ Schedule ─ verify ─ entry (the function, group-level code) ─ lane_loops (regions as loops over z, y, x)
//!                            │                            row_decisions (which facts hold), nontemporal_stores (a copy of the loop)
//!    schedule/: Uniformity ─ uniform_code (what runs once) ─ regions (the tree of steps) ─ variable_storage ─ row_schedule (row width)
//!               ─ row_facts (what a fast copy relies on) ─ independence (pragmas) ─ contiguous_loops (hoisted range checks)
//!               ─ nontemporal_stores (rows that bypass the caches)
//! ```
//!
//! All decisions are in the [`Schedule`](schedule::Schedule), which is plain data: analysis fills it in, [`verify`]
//! proves it correct without sharing any of that analysis, and printing decides nothing. In tests, fuzzing and debug
//! builds, a schedule that fails verification is replaced by the plain form: all checks stored, every region one loop,
//! nothing hoisted, and a comment with the reason.
//!
//! One thread runs a work-group, region after region, each for all invocations. So a barrier is merely the end of a
//! region, workgroup memory is a local variable, and values that live across regions are stored in arrays.
//!
//! In OpenCL C ([`kernel`]) the loops cover a block of the invocations, and each work-item of the group has one. If there are
//! several, barriers remain; what runs once per group runs once per work-item, which all compute the same.

mod arguments;
mod entry;
mod environment;
mod kernel;
mod lane_loops;
mod memory;
mod nontemporal_stores;
mod preamble;
mod row_decisions;
mod schedule;
mod verify;

use runtime_core::Result;

pub(super) use entry::entry;

use crate::program::Program;
use crate::transform::inline::{Purpose, inline};

/// The program to write host entry points from: functions inlined, private variables made local.
pub(super) fn prepare(program: &Program) -> Result<Program> {
    let flat = |purpose| program.with(inline(&program.module, &program.info, purpose)?);
    if program.is_plain() {
        return flat(Purpose::Required);
    }
    flat(Purpose::Speed).or_else(|_| flat(Purpose::SpeedWithoutUnrolling))
}
