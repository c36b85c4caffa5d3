//! What a tuner reports.

use super::trial::Trial;
use crate::pool::Stopper;

/// What a tuner reports while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The search begins.
    Begin {
        /// The devices of each result.
        devices: &'a [Vec<String>],
        /// How many evaluations it takes at most, in total.
        evaluations: usize,
        /// Ends the workers, from another thread.
        stopper: &'a Stopper,
    },
    /// A candidate is evaluated on a device.
    Start {
        /// The name of its row.
        name: &'a str,
        /// The device string.
        device: &'a str,
    },
    /// A candidate was evaluated.
    Trial {
        /// The position of the result that it belongs to.
        tuning: usize,
        /// The candidate and its result.
        trial: &'a Trial,
    },
    /// Something that the user wants to know: which process a worker waits for, or why one is not used any more.
    Note(&'a str),
    /// A candidate has the spec's own values, which were measured already.
    Repeated,
    /// The search has ended; there was a log.
    Logged {
        /// Number of rows that the log had.
        read: usize,
        /// Number of them that belong to candidates of this run.
        used: usize,
    },
}
