//! What the queue of candidates and the workers tell the thread of a device.

use crate::worker::protocol::Reply;

/// What happens to a device's thread.
#[derive(Debug)]
pub(super) enum Event {
    /// The queue of candidates has changed.
    Wake,
    /// A worker has replied.
    Reply { worker: u64, reply: Box<Reply> },
    /// All processes of a worker have ended.
    Closed { worker: u64 },
    /// No further results are wanted.
    Stop,
}
