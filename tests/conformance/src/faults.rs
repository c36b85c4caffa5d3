//! Fault injection for the whole suite. Every case runs repeatedly, each time with one call of one table function
//! failing. The case may then fail with an error, but it must end in time, core must not panic, the process must not
//! die, and every opened object must be closed, children before their parents.
//!
//! Alternatively, a call returns corrupted values, as a broken driver might: an impossible count, progress beyond the
//! last submission, a null pointer, a string of impossible length. The only requirement is then that the run ends in
//! time, without a crash or a panic in core.
//!
//! A layer between core and the backend injects the faults, so any library can be swept. Cases run in worker
//! processes, so that a crash or a hang is attributed to the case and call that caused it.

mod arguments;
#[allow(unsafe_code, reason = "modifies what a backend has written")]
mod corrupt;
mod corruption;
mod job;
#[allow(unsafe_code, reason = "wraps the function table of a backend")]
mod layer;
mod object_tracker;
mod sweep;
#[allow(unsafe_code, reason = "loads the backend below the layer")]
mod worker;
mod worker_pool;

use std::process::{Command, ExitCode};
use std::time::Duration;

pub use arguments::FaultArguments;
use runtime_core::ErrorKind;

use crate::selection::Selection;

/// The extent of a sweep.
#[derive(Clone, Debug)]
pub struct FaultOptions {
    /// Substrings of case names (`queues::`); a case must match one of them. If empty, all cases run.
    pub filters: Vec<String>,
    /// The number of first calls of a function in a case that get a fault, one per run.
    pub first: u64,
    /// The number of later calls that get a fault, evenly spread; the last call always gets one.
    pub spread: u64,
    /// The time for the runs of one function in one case, at the duration of the case without a fault. If the calls
    /// above would exceed it, fewer are faulted: still the first ones, evenly spread ones, and the last.
    pub budget: Duration,
    /// The kinds of error to inject.
    pub kinds: Vec<ErrorKind>,
    /// Inject corrupted values instead of errors: impossible counts, progress, pointers, strings, sizes and errors.
    /// Core must then not crash, hang or panic; the results do not matter.
    pub corrupt: bool,
    /// Per function, run only this many of the cases that call it, the fastest ones. If `None`, all.
    pub cases: Option<usize>,
    /// Skip cases that take longer than this many milliseconds without a fault. If `None`, skip none.
    pub longest_ms: Option<u64>,
    /// The number of concurrent worker processes.
    pub workers: usize,
}

impl Default for FaultOptions {
    /// The first 64 calls and 16 of the others, with a driver error.
    fn default() -> Self {
        Self {
            filters: Vec::new(),
            first: 64,
            spread: 16,
            budget: Duration::from_secs(4),
            kinds: vec![ErrorKind::Driver],
            corrupt: false,
            cases: None,
            longest_ms: None,
            workers: std::thread::available_parallelism().map_or(2, |n| 2 * n.get()),
        }
    }
}

/// Sweeps the devices of `selection` and prints a summary. `worker` creates the command of a process that calls
/// [`serve_faults`].
///
/// # Errors
/// One line per failure; also if there is nothing to sweep.
pub fn run_faults(
    selection: &Selection,
    options: &FaultOptions,
    worker: &(dyn Fn() -> std::io::Result<Command> + Sync),
) -> Result<(), String> {
    sweep::run(selection, options, worker)
}

/// The worker side of [`run_faults`]: serves jobs from standard input until it ends.
#[must_use]
pub fn serve_faults() -> ExitCode {
    worker::serve()
}
