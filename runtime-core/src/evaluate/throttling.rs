//! Samples that the device took at lowered clocks are measured again.

use super::Throttled;
use super::timing_loop::{Samples, TimingTarget};

/// The readings together take at most one part in so many of the time. A reading covers the samples since the last one.
const MIN_INTERVAL_IN_READINGS: u64 = 50;

/// Watches for throttling between the samples.
#[derive(Debug)]
pub(crate) struct Throttling {
    /// `None` if the device does not report it.
    throttled: Option<Throttled>,
    /// How many samples may be measured again.
    most: usize,
    deadline_ns: u64,
    /// How many samples a reading has covered.
    covered: usize,
    last_ns: u64,
    reading_ns: u64,
}

impl Throttling {
    /// Finds out whether the device reports throttling. The first reading may initialise a library, which takes long.
    pub(crate) fn new(target: &mut impl TimingTarget, repeat: usize, deadline_ns: u64) -> Self {
        let throttled = target.throttle_reasons().map(|_| Throttled::default());
        Self { throttled, most: repeat, deadline_ns, covered: 0, last_ns: 0, reading_ns: 0 }
    }

    /// Forgets what happened before the first sample.
    pub(crate) fn begin(&mut self, target: &mut impl TimingTarget) {
        if self.throttled.is_some() {
            self.read(target);
        }
    }

    /// Checks the samples since the last reading, if it is time or `is_last`, and removes them if they are to be measured
    /// again. Returns whether all samples remain.
    pub(crate) fn check(&mut self, target: &mut impl TimingTarget, run: &mut Samples, is_last: bool) -> bool {
        if self.throttled.is_none() || !(is_last || self.is_due(target)) {
            return true;
        }
        let disturbed = self.read(target);
        let (count, has_time) = (run.samples_ns.len(), self.last_ns < self.deadline_ns);
        let Some(throttled) = &mut self.throttled else { return true };
        let new = count - self.covered;
        if disturbed && has_time && throttled.remeasured + new <= self.most {
            throttled.remeasured += new;
            run.truncate(self.covered);
            return false;
        }
        throttled.kept += if disturbed { new } else { 0 };
        self.covered = count;
        true
    }

    fn is_due(&self, target: &mut impl TimingTarget) -> bool {
        target.now_ns()
            >= self.last_ns.saturating_add(MIN_INTERVAL_IN_READINGS.saturating_mul(self.reading_ns))
    }

    /// Checks the samples that no reading has covered, and keeps them: there is no time left.
    pub(crate) fn finish(&mut self, target: &mut impl TimingTarget, run: &mut Samples) {
        if run.samples_ns.len() > self.covered {
            self.most = 0;
            self.check(target, run, true);
        }
    }

    pub(crate) const fn result(&self) -> Option<Throttled> {
        self.throttled
    }

    /// Reads the reasons, and returns whether they disturb. A failed reading knows of none.
    fn read(&mut self, target: &mut impl TimingTarget) -> bool {
        let begin_ns = target.now_ns();
        let reasons = target.throttle_reasons().unwrap_or_default();
        self.last_ns = target.now_ns();
        self.reading_ns = self.last_ns - begin_ns;
        if let Some(throttled) = &mut self.throttled {
            throttled.reasons = throttled.reasons.and(reasons);
        }
        reasons.disturbs()
    }
}
