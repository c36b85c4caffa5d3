//! What a tuner reports.

use super::trial::Trial;

/// What a tuner reports while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The search begins.
    Begin {
        /// The devices of each result.
        devices: &'a [Vec<String>],
        /// How many evaluations it takes at most, in total.
        evaluations: usize,
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
