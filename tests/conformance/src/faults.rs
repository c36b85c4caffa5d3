//! Fault injection over the whole suite. Every case is run again and again, each time with one call of one function of
//! the backend's table refused. The case may fail of that, with an error; but it ends in time, core does not panic, the
//! process does not die, and everything that was opened is closed, children before their parents.
//!
//! Or a call is not refused, but answers with a lie, as a broken driver does: an impossible count, progress beyond what was
//! submitted, a null pointer, text without an end. Then no more is asked for than that the program goes on.
//!
//! Refusals and lies come from a layer between core and the backend, so that any library can be swept. Cases run in worker
//! processes: what crashes or hangs is known by name.

mod arguments;
#[allow(unsafe_code, reason = "changes what a backend has written")]
mod corrupt;
mod corruption;
mod job;
#[allow(unsafe_code, reason = "stands between core and a backend")]
mod layer;
mod object_tracker;
mod sweep;
#[allow(unsafe_code, reason = "loads the backend whose table the layer takes")]
mod worker;
mod worker_pool;

use std::process::{Command, ExitCode};
use std::time::Duration;

pub use arguments::FaultArguments;
use runtime_core::ErrorKind;

use crate::selection::Selection;

/// How far a sweep goes.
#[derive(Clone, Debug)]
pub struct FaultOptions {
    /// Parts of the names of cases (`queues::`), any of which must fit; none: all cases.
    pub filters: Vec<String>,
    /// Of the calls of one function in one case, this many are refused one by one, from the first on.
    pub first: u64,
    /// Of further calls so many are refused, evenly spread, and the last one.
    pub spread: u64,
    /// What the runs of one function in one case may take, by what the case takes without a fault: where that is less
    /// than the calls above take, fewer are refused, still from the first on, evenly spread, and the last.
    pub budget: Duration,
    /// The kinds of error that calls are refused with.
    pub kinds: Vec<ErrorKind>,
    /// Instead of being refused, calls return what is injection: impossible counts, progress, pointers, texts and sizes, errors
    /// that are none. Then core must neither crash, nor hang, nor panic; what it makes of a lie is its own business.
    pub corrupt: bool,
    /// Of the cases that call a function, only so many are run with that function's calls wrong, the quickest; none: all.
    pub cases: Option<usize>,
    /// Cases that take longer than this many milliseconds without a fault are left out; none: no case.
    pub longest_ms: Option<u64>,
    /// Worker processes beside each other.
    pub workers: usize,
}

impl Default for FaultOptions {
    /// Every one of the first 64 calls and 16 of the others, refused with an error of the driver.
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

/// Sweeps the devices of `selection` and prints counts. `worker` makes the command of a process that calls
/// [`serve_faults`].
///
/// # Errors
/// What went wrong, a line for each: also that there is nothing to sweep.
pub fn run_faults(
    selection: &Selection,
    options: &FaultOptions,
    worker: &(dyn Fn() -> std::io::Result<Command> + Sync),
) -> Result<(), String> {
    sweep::run(selection, options, worker)
}

/// The worker's side of [`run_faults`]: runs what standard input asks for until it ends.
#[must_use]
pub fn serve_faults() -> ExitCode {
    worker::serve()
}
