//! Timestamps: device ticks converted to nanoseconds of one clock per device.

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::Result;
use runtime_core::backend::UnreadTimestamps;

use crate::driver::{CommandBuffer, LogicalDevice, QueryPool};

/// Fraction bits of a tick's length.
const FRACTION_BITS: u32 = 40;

/// A device's clock: a tick counter that wraps around.
#[derive(Debug)]
pub(crate) struct Clock {
    bits: u32,
    /// Length of a tick in nanoseconds, times `1 << FRACTION_BITS`.
    tick: u128,
    /// The latest time seen, in ticks, unwrapped.
    latest_ticks: Mutex<u64>,
    /// The same moment in ticks and in nanoseconds.
    reference: (u64, u64),
}

impl Clock {
    /// A clock whose counter has `bits` bits; `reference` is one moment in ticks and in nanoseconds.
    pub(crate) fn new(bits: u32, timestamp_period_ns: f32, reference: (u64, u64)) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a tick is shorter than 2^40 ns"
        )]
        let tick = (f64::from(timestamp_period_ns) * (1_u64 << FRACTION_BITS) as f64) as u128;
        Self { bits, tick, latest_ticks: Mutex::new(reference.0), reference }
    }

    /// The time of a counter value, unwrapped to be nearest to the latest time seen.
    pub(crate) fn time_ns(&self, counter: u64) -> u64 {
        let mut latest = self.latest_ticks.lock();
        let ticks = unwrap_counter(*latest, counter, self.bits);
        *latest = ticks.max(*latest);
        let (moment, moment_ns) = self.reference;
        let ns =
            |ticks: u64| u64::try_from((u128::from(ticks) * self.tick) >> FRACTION_BITS).unwrap_or(u64::MAX);
        match ticks.checked_sub(moment) {
            Some(since) => moment_ns.saturating_add(ns(since)),
            None => moment_ns.saturating_sub(ns(moment - ticks)),
        }
    }
}

/// The tick count with `counter` as its low bits that is nearest to `latest`.
fn unwrap_counter(latest: u64, counter: u64, bits: u32) -> u64 {
    if bits >= 64 {
        return counter;
    }
    let period = 1_u64 << bits;
    let counter = counter & (period - 1);
    let same = (latest & !(period - 1)) | counter;
    let half = period / 2;
    if same + half < latest {
        same + period
    } else if same > latest.saturating_add(half) && same >= period {
        same - period
    } else {
        same
    }
}

/// A pool's index, and a query's index in it.
type Query = (usize, u32);

/// The timestamps of a queue.
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    pools: Vec<QueryPool>,
    free: Vec<Query>,
    unread: UnreadTimestamps<Query>,
}

impl Timestamps {
    /// Records a timestamp; `completed` is the last ticket known to have completed.
    ///
    /// # Errors
    /// The driver's error if another query pool cannot be created.
    pub(crate) fn record(
        &mut self,
        logical: &Arc<LogicalDevice>,
        commands: &CommandBuffer,
        ticket: u64,
        completed: u64,
    ) -> Result<()> {
        if let Some(query) = self.unread.discard(completed) {
            self.release(query);
        }
        if self.free.is_empty() {
            self.pools.push(QueryPool::new(logical)?);
            let pool = self.pools.len() - 1;
            self.free.extend((0..QueryPool::COUNT).rev().map(|index| (pool, index)));
        }
        if let Some(query) = self.free.pop() {
            self.pools[query.0].write(commands, query.1);
            self.unread.add(ticket, query);
        }
        Ok(())
    }

    /// Reads the counter of a completed ticket; each can be read once.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` if the ticket has not completed.
    pub(crate) fn read(&mut self, ticket: u64) -> Result<u64> {
        let (query, counter) = self.unread.read(ticket, |query| self.pools[query.0].read(query.1))?;
        self.release(query);
        Ok(counter)
    }

    fn release(&mut self, query: Query) {
        self.pools[query.0].reset(query.1, 1);
        self.free.push(query);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_counter_continues() {
        let clock = Clock::new(8, 2.0, (0, 0));
        let times: Vec<u64> = [100, 200, 250, 4, 90, 200, 10].map(|ticks| clock.time_ns(ticks)).into();
        assert_eq!(times, [200, 400, 500, 520, 692, 912, 1044]);
    }

    #[test]
    fn an_older_timestamp_read_late_stays_older() {
        let clock = Clock::new(8, 1.0, (0, 0));
        assert_eq!(clock.time_ns(250), 250);
        assert_eq!(clock.time_ns(5), 261);
        assert_eq!(clock.time_ns(252), 252);
    }

    #[test]
    fn invalid_bits_are_ignored() {
        assert_eq!(Clock::new(36, 1.0, (0, 0)).time_ns(1 << 40 | 7), 7);
        assert_eq!(Clock::new(64, 1.0, (0, 0)).time_ns(u64::MAX - 1), u64::MAX - 1);
    }

    #[test]
    fn times_follow_the_calibrated_clock() {
        let clock = Clock::new(8, 2.0, (0x3_f0, 1_000_000));
        assert_eq!([0xf0, 0xe0, 0x10].map(|ticks| clock.time_ns(ticks)), [1_000_000, 999_968, 1_000_064]);
    }

    #[test]
    fn fractional_tick_lengths_do_not_drift() {
        let day_ns = 86_400_000_000_000_u64;
        let ticks = day_ns * 10 / 521;
        let time = Clock::new(64, 52.1, (0, 0)).time_ns(ticks);
        assert!(time.abs_diff(day_ns) < day_ns / 1_000_000, "{time}");
    }
}
