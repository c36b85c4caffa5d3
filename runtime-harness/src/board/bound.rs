//! Compares the count of code that is not believed with the instructions that an emulator executes, which the code cannot reach.
//!
//! A run of no call executes the firmware only, right after a reset, so that no foreign code has run before it; a run of one call
//! executes the same and the call. All instructions count until the processor stops: where the code jumps to changes nothing.

use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

use super::program::{Count, Program};
use super::{Board, count};
use crate::row::Counts;

/// The time for a logged run: QEMU logs some hundred thousand instructions per second, and the firmware executes a dozen per byte of a
/// tensor.
const DEADLINE: Duration = Duration::from_secs(10);
/// By how many instructions a count may be too small: the tick of a timer may be longer than an instruction.
const SLACK: f64 = 16.0;

/// Whether what the emulator executes for a call is at most the count. `first` is the count of the first call, and `counts` of all.
///
/// # Errors
/// `Failed` if the code has changed the counter; those of flashing and running.
pub(super) fn is_bounded(
    board: &Board<'_>,
    program: &Program<'_>,
    (first, counts): (u64, &Counts),
) -> Result<bool> {
    let nothing = executed(board, program, 0);
    let call = nothing.and_then(|nothing| Ok(executed(board, program, 1)?.saturating_sub(nothing)));
    let executed = match call {
        Ok(executed) => executed as f64,
        // A device without an emulator, and a run that takes too long to look at.
        Err(error) if [ErrorKind::Unsupported, ErrorKind::Timeout].contains(&error.kind()) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    let changes_counter = |count: f64| {
        let message = format!(
            "the counter says {count} instructions for a call, and the emulator has executed {executed}: the code has changed the counter",
        );
        Err(Error::new(ErrorKind::Failed, message))
    };
    match (executed <= first as f64 + SLACK, executed <= counts.median + SLACK) {
        (true, true) => Ok(true),
        (false, _) => changes_counter(first as f64),
        // Later calls may do less on the results of earlier ones.
        (true, false) if program.updates_tensors() => Ok(false),
        (true, false) => changes_counter(counts.median),
    }
}

/// The instructions of a run of `calls` calls.
fn executed(board: &Board<'_>, program: &Program<'_>, calls: u64) -> Result<u64> {
    program.flash(calls, Count::Executed)?;
    count(&board.embedded.run(DEADLINE)?)
}
