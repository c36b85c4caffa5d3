//! Timestamps of a queue: the worker reads the monotonic clock when it reaches the ticket.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

/// Maximum number of unread timestamps; beyond it the oldest are discarded.
const KEPT: usize = 1 << 16;

/// The recorded, unread timestamps of one queue.
#[derive(Debug)]
pub(crate) struct Timestamps {
    epoch: Instant,
    stamps: Mutex<VecDeque<(u64, u64)>>,
}

impl Timestamps {
    /// Nanoseconds count from `epoch`, which all queues of a device share.
    pub(crate) fn new(epoch: Instant) -> Self {
        Self { epoch, stamps: Mutex::default() }
    }

    /// Records the current time for `ticket`; tickets come in order.
    pub(crate) fn record(&self, ticket: u64) {
        let now = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut stamps = self.stamps.lock();
        if stamps.len() == KEPT {
            stamps.pop_front();
        }
        stamps.push_back((ticket, now));
    }

    /// Removes and returns the timestamp of `ticket`.
    pub(crate) fn take(&self, ticket: u64) -> Result<u64> {
        let mut stamps = self.stamps.lock();
        let found = stamps.binary_search_by_key(&ticket, |&(ticket, _)| ticket).ok();
        found.and_then(|index| stamps.remove(index)).map(|(_, now)| now).ok_or_else(|| {
            let message = format!("ticket {ticket} is not a timestamp, has not ended, or was read before (the newest {KEPT} are kept)");
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn unread_timestamps_do_not_grow_for_ever() {
        let timestamps = Timestamps::new(Instant::now());
        for ticket in 1..=KEPT as u64 + 1 {
            timestamps.record(ticket);
        }
        assert!(timestamps.take(1).is_err());
        assert!(timestamps.take(2).is_ok());
    }
}
