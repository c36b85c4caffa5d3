//! Timestamps of a queue: the worker reads the monotonic clock when it reaches the ticket.

use std::time::Instant;

use parking_lot::Mutex;
use runtime_core::Result;
use runtime_core::backend::UnreadTimestamps;

/// The recorded, unread timestamps of one queue.
#[derive(Debug)]
pub(crate) struct Timestamps {
    epoch: Instant,
    unread: Mutex<UnreadTimestamps<u64>>,
}

impl Timestamps {
    /// Nanoseconds count from `epoch`, which all queues of a device share.
    pub(crate) fn new(epoch: Instant) -> Self {
        Self { epoch, unread: Mutex::default() }
    }

    /// Records the current time for `ticket`.
    pub(crate) fn record(&self, ticket: u64) {
        let now = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut unread = self.unread.lock();
        unread.discard(ticket);
        unread.add(ticket, now);
    }

    /// Removes and returns the timestamp of `ticket`.
    pub(crate) fn take(&self, ticket: u64) -> Result<u64> {
        self.unread.lock().take(ticket)
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::ErrorKind;

    use super::*;

    #[test]
    fn a_timestamp_is_read_once() {
        let timestamps = Timestamps::new(Instant::now());
        timestamps.record(3);
        timestamps.record(7);
        let late = timestamps.take(7).unwrap();
        let early = timestamps.take(3).unwrap();
        assert!(early <= late);
        assert_eq!(timestamps.take(3).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
