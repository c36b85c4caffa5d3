//! Timestamps of a queue that have not been read.

use std::collections::VecDeque;

use crate::{Error, ErrorKind, Result};

/// Unread timestamps that a queue keeps.
const CAPACITY: usize = 1 << 14;

/// The unread timestamps of a queue: times, or driver objects that will hold them.
#[derive(Debug)]
pub struct UnreadTimestamps<T>(VecDeque<(u64, T)>);

impl<T> Default for UnreadTimestamps<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> UnreadTimestamps<T> {
    /// Adds the timestamp of `ticket`.
    pub fn add(&mut self, ticket: u64, timestamp: T) {
        let index = self.index(ticket);
        self.0.insert(index, (ticket, timestamp));
    }

    /// Removes the oldest timestamp if there is no room for another, unless its ticket is later than `last`. Call
    /// it before each new timestamp.
    pub fn discard(&mut self, last: u64) -> Option<T> {
        let is_full = self.0.len() >= CAPACITY && self.0.front()?.0 <= last;
        if is_full { self.0.pop_front().map(|(_, timestamp)| timestamp) } else { None }
    }

    /// Reads the timestamp of `ticket` with `read`, which returns `None` before the ticket has ended, and removes it: each is read
    /// once.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` before the ticket has ended; those of `read`.
    pub fn read<R>(&mut self, ticket: u64, read: impl FnOnce(&T) -> Result<Option<R>>) -> Result<(T, R)> {
        let index = self.index(ticket);
        let missing = || {
            let message = format!(
                "ticket {ticket} has no unread timestamp; read each one once, after its event and before {CAPACITY} later ones"
            );
            Error::new(ErrorKind::NotFound, message)
        };
        let found = self.0.get(index).filter(|found| found.0 == ticket).ok_or_else(missing)?;
        let time = read(&found.1)?.ok_or_else(|| {
            Error::invalid(format!("ticket {ticket} has not ended; wait for its event first"))
        })?;
        let (_, timestamp) = self.0.remove(index).ok_or_else(missing)?;
        Ok((timestamp, time))
    }

    /// Removes the timestamp of `ticket`, which has ended: each is read once.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn take(&mut self, ticket: u64) -> Result<T> {
        self.read(ticket, |_| Ok(Some(()))).map(|(timestamp, ())| timestamp)
    }

    /// Removes all timestamps.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..).map(|(_, timestamp)| timestamp)
    }

    /// Where `ticket` is, or belongs.
    fn index(&self, ticket: u64) -> usize {
        self.0.partition_point(|(other, _)| *other < ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_read_once_in_any_order() {
        let mut timestamps = UnreadTimestamps::default();
        for ticket in [3, 7, 5] {
            timestamps.add(ticket, ticket * 10);
        }
        assert_eq!([7, 3].map(|ticket| timestamps.take(ticket).unwrap()), [70, 30]);
        for ticket in [3, 4, 8] {
            assert_eq!(timestamps.take(ticket).unwrap_err().kind(), ErrorKind::NotFound);
        }
        let early = timestamps.read(5, |_| Ok(None::<()>)).unwrap_err();
        assert_eq!(early.kind(), ErrorKind::InvalidArgument, "it has not ended, and stays");
        assert!(timestamps.drain().eq([50]));
    }

    #[test]
    fn only_the_oldest_is_discarded_and_only_when_there_is_no_room() {
        let mut timestamps = UnreadTimestamps::default();
        for ticket in 1..=CAPACITY as u64 {
            assert_eq!(timestamps.discard(u64::MAX), None);
            timestamps.add(ticket, ticket);
        }
        assert_eq!(timestamps.discard(0), None, "the oldest has not ended");
        assert_eq!(timestamps.discard(1), Some(1));
        assert_eq!(timestamps.discard(u64::MAX), None);
        assert!(timestamps.take(1).is_err() && timestamps.take(2).is_ok());
    }
}
