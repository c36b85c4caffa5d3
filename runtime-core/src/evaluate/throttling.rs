//! Samples that the device took at lowered clocks are measured again.

use serde::{Deserialize, Serialize};

use super::timing_target::TimingTarget;
use crate::model::throttle_reasons::ThrottleReasons;

/// The readings together take at most one part in so many of the time. A reading covers the samples since the last one.
const MIN_INTERVAL_IN_READINGS: u64 = 50;

/// Samples during which the device lowered its clocks because of heat or the power supply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Samples that were thrown away and measured again.
    pub remeasured: usize,
    /// Samples of the measurement: it went on for too long, or the budget was spent.
    pub kept: usize,
    /// All reasons that were reported, harmless ones included.
    #[serde(skip)]
    pub reasons: ThrottleReasons,
}

/// Watches for throttling between the samples.
#[derive(Debug)]
pub(crate) struct Throttling {
    /// `None` if the device does not report it.
    throttled: Option<Throttled>,
    /// How many samples were asked for at first. As many may be measured again, or as many as there are by now.
    repeat: usize,
    deadline_ns: u64,
    /// How many samples a reading has covered.
    covered: usize,
    last_ns: u64,
    reading_ns: u64,
}

impl Throttling {
    /// Finds out whether the device reports throttling. The first reading may initialise a library, which takes long.
    pub(crate) fn new(target: &mut impl TimingTarget, repeat: usize) -> Self {
        let throttled = target.throttle_reasons().map(|_| Throttled::default());
        Self { throttled, repeat, deadline_ns: 0, covered: 0, last_ns: 0, reading_ns: 0 }
    }

    /// Forgets what happened before the first sample.
    pub(crate) fn begin(&mut self, target: &mut impl TimingTarget) {
        if self.throttled.is_some() {
            self.read(target);
        }
    }

    /// Moves the deadline, which is at first 0: by a pause that does not count against the budget.
    pub(crate) const fn postpone(&mut self, pause_ns: u64) {
        self.deadline_ns = self.deadline_ns.saturating_add(pause_ns);
    }

    /// Checks the `count` samples so far, if it is time or `is_last`. Returns how many of them remain; the others are to be
    /// measured again.
    pub(crate) fn check(&mut self, target: &mut impl TimingTarget, count: usize, is_last: bool) -> usize {
        if self.throttled.is_none() || !(is_last || self.is_due(target)) {
            return count;
        }
        let disturbed = self.read(target);
        let has_time = self.last_ns < self.deadline_ns;
        let Some(throttled) = &mut self.throttled else { return count };
        let new = count - self.covered;
        if disturbed && has_time && throttled.remeasured + new <= self.repeat.max(count) {
            throttled.remeasured += new;
            return self.covered;
        }
        throttled.kept += if disturbed { new } else { 0 };
        self.covered = count;
        count
    }

    fn is_due(&self, target: &mut impl TimingTarget) -> bool {
        target.now_ns()
            >= self.last_ns.saturating_add(MIN_INTERVAL_IN_READINGS.saturating_mul(self.reading_ns))
    }

    /// Checks the samples that no reading has covered, and keeps them: there is no time left.
    pub(crate) fn finish(&mut self, target: &mut impl TimingTarget, count: usize) {
        if count > self.covered {
            self.deadline_ns = 0;
            self.check(target, count, true);
        }
    }

    pub(crate) const fn result(&self) -> Option<Throttled> {
        self.throttled
    }

    /// Reads the reasons, and returns whether they disturb. A failed reading counts as no reason.
    fn read(&mut self, target: &mut impl TimingTarget) -> bool {
        let begin_ns = target.now_ns();
        let reasons = target.throttle_reasons().unwrap_or_default();
        self.last_ns = target.now_ns();
        self.reading_ns = self.last_ns - begin_ns;
        if let Some(throttled) = &mut self.throttled {
            throttled.reasons = throttled.reasons.union(reasons);
        }
        reasons.disturbs()
    }
}
