//! When a candidate has taken too long.

use std::time::{Duration, Instant};

use super::PoolOptions;
use crate::row::Phase;

/// The time left to a candidate. Its clock runs while the candidate is evaluated, not while it is queued.
#[derive(Debug)]
pub(super) struct Deadline {
    begin: Instant,
    phase: Phase,
    compile_timeout: Duration,
    run_timeout: Duration,
}

impl Deadline {
    /// The deadline of a candidate that is about to be prepared.
    pub(super) fn new(options: &PoolOptions, time_limit: Duration) -> Self {
        Self {
            begin: Instant::now(),
            phase: Phase::Prepare,
            compile_timeout: options.compile_timeout,
            run_timeout: options.timeout.saturating_add(time_limit),
        }
    }

    /// Enters a phase. Preparation and compilation share their time.
    pub(super) fn enter(&mut self, phase: Phase) {
        if phase == Phase::Run && self.phase != Phase::Run {
            self.begin = Instant::now();
        }
        self.phase = phase;
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// The time that the phase may take.
    pub(super) const fn limit(&self) -> Duration {
        match self.phase {
            Phase::Prepare | Phase::Compile => self.compile_timeout,
            Phase::Wait => Duration::MAX,
            Phase::Run => self.run_timeout,
        }
    }

    /// The time left.
    pub(super) fn left(&self) -> Duration {
        self.limit().saturating_sub(self.begin.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn running_has_its_own_time_beyond_the_budget() {
        let options = PoolOptions {
            timeout: Duration::from_secs(7),
            compile_timeout: Duration::from_secs(1000),
            ..PoolOptions::new("runtime")
        };
        let settings = Settings { budget_s: Some(100.0), ..Settings::default() };
        let mut deadline = Deadline::new(&options, settings.time_limit());
        deadline.begin = Instant::now().checked_sub(Duration::from_secs(50)).unwrap();
        deadline.enter(Phase::Compile);
        assert_eq!(deadline.limit(), Duration::from_secs(1000));
        assert!(
            deadline.left() <= Duration::from_secs(950),
            "compilation has the time that preparation has left"
        );
        deadline.enter(Phase::Run);
        assert_eq!(deadline.limit(), Duration::from_secs(107));
        assert!(deadline.left() > Duration::from_secs(90));
        let endless = Settings { budget_s: Some(f64::MAX), ..Settings::default() };
        assert_eq!(Deadline::new(&options, endless.time_limit()).run_timeout, Duration::MAX);
    }
}
