//! Timestamps: ticks of the device as nanoseconds of one clock per device.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

use crate::driver::{Commands, Logical, Stamps};

/// Timestamps of one queue that may wait to be read; older ones are forgotten.
const UNREAD: usize = 1 << 14;
/// Fraction bits of the length of a tick.
const FRACTION: u32 = 40;

/// The clock of a device, which counts ticks and begins again when its bits run out.
#[derive(Debug)]
pub(crate) struct Clock {
    bits: u32,
    /// Length of a tick in nanoseconds, times `1 << FRACTION`.
    tick: u128,
    /// The latest time that was seen, in ticks, with the rounds that the counter has made.
    latest: Mutex<u64>,
    /// A moment in ticks, and its time.
    reference: (u64, u64),
}

impl Clock {
    /// A clock of so many bits; `reference` is a moment in ticks, and its time in nanoseconds.
    pub(crate) fn new(bits: u32, tick_ns: f32, reference: (u64, u64)) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a length, below 2^40 ns"
        )]
        let tick = (f64::from(tick_ns) * (1_u64 << FRACTION) as f64) as u128;
        Self { bits, tick, latest: Mutex::new(reference.0), reference }
    }

    /// The time of a counter's value: the one nearest to the latest that was seen.
    pub(crate) fn time_ns(&self, counter: u64) -> u64 {
        let mut latest = self.latest.lock();
        let ticks = unwrapped(*latest, counter, self.bits);
        *latest = ticks.max(*latest);
        let (moment, moment_ns) = self.reference;
        let ns = |ticks: u64| u64::try_from((u128::from(ticks) * self.tick) >> FRACTION).unwrap_or(u64::MAX);
        match ticks.checked_sub(moment) {
            Some(since) => moment_ns.saturating_add(ns(since)),
            None => moment_ns.saturating_sub(ns(moment - ticks)),
        }
    }
}

/// The time that has `counter` as its low bits and is nearest to `latest`.
fn unwrapped(latest: u64, counter: u64, bits: u32) -> u64 {
    if bits >= 64 {
        return counter;
    }
    let round = 1_u64 << bits;
    let counter = counter & (round - 1);
    let same = (latest & !(round - 1)) | counter;
    let half = round / 2;
    if same + half < latest {
        same + round
    } else if same > latest.saturating_add(half) && same >= round {
        same - round
    } else {
        same
    }
}

/// The timestamps of a queue.
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    rows: Vec<Stamps>,
    free: Vec<(usize, u32)>,
    unread: BTreeMap<u64, (usize, u32)>,
}

impl Timestamps {
    /// Records a timestamp.
    ///
    /// # Errors
    /// Whatever the driver says of room for more.
    pub(crate) fn record(
        &mut self,
        logical: &Arc<Logical>,
        commands: &Commands,
        ticket: u64,
        ended: u64,
    ) -> Result<()> {
        if self.unread.len() >= UNREAD
            && let Some(oldest) = self.unread.first_entry().filter(|oldest| *oldest.key() <= ended)
        {
            let place = oldest.remove();
            self.give_back(place);
        }
        if self.free.is_empty() {
            self.rows.push(Stamps::new(logical)?);
            let row = self.rows.len() - 1;
            self.free.extend((0..Stamps::COUNT).rev().map(|index| (row, index)));
        }
        if let Some(place) = self.free.pop() {
            self.rows[place.0].write(commands, place.1);
            self.unread.insert(ticket, place);
        }
        Ok(())
    }

    /// Reads the counter of a ticket that has ended, once.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` if the ticket has not ended.
    pub(crate) fn read(&mut self, ticket: u64) -> Result<u64> {
        let place = self.unread.get(&ticket).copied().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("ticket {ticket} is no timestamp, or was read before"))
        })?;
        let counter = self.rows[place.0].read(place.1)?.ok_or_else(|| {
            Error::invalid(format!("ticket {ticket} has not ended; wait for its event first"))
        })?;
        self.unread.remove(&ticket);
        self.give_back(place);
        Ok(counter)
    }

    fn give_back(&mut self, place: (usize, u32)) {
        self.rows[place.0].clear(place.1, 1);
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_begins_again_goes_on() {
        let clock = Clock::new(8, 2.0, (0, 0));
        let times: Vec<u64> = [100, 200, 250, 4, 90, 200, 10].map(|ticks| clock.time_ns(ticks)).into();
        assert_eq!(times, [200, 400, 500, 520, 692, 912, 1044]);
    }

    #[test]
    fn an_older_timestamp_that_is_read_late_stays_older() {
        let clock = Clock::new(8, 1.0, (0, 0));
        assert_eq!(clock.time_ns(250), 250);
        assert_eq!(clock.time_ns(5), 261);
        assert_eq!(clock.time_ns(252), 252);
    }

    #[test]
    fn bits_beyond_the_valid_ones_are_ignored() {
        assert_eq!(Clock::new(36, 1.0, (0, 0)).time_ns(1 << 40 | 7), 7);
        assert_eq!(Clock::new(64, 1.0, (0, 0)).time_ns(u64::MAX - 1), u64::MAX - 1);
    }

    #[test]
    fn times_are_of_the_clock_that_it_was_compared_with() {
        let clock = Clock::new(8, 2.0, (0x3_f0, 1_000_000));
        assert_eq!([0xf0, 0xe0, 0x10].map(|ticks| clock.time_ns(ticks)), [1_000_000, 999_968, 1_000_064]);
    }

    #[test]
    fn a_tick_is_not_a_whole_nanosecond() {
        let day_ns = 86_400_000_000_000_u64;
        let ticks = day_ns * 10 / 521;
        let time = Clock::new(64, 52.1, (0, 0)).time_ns(ticks);
        assert!(time.abs_diff(day_ns) < day_ns / 1_000_000, "{time}");
    }
}
