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
    /// How long calls may take that have not returned.
    window_timeout: Duration,
    /// What an evaluation without heartbeats may take.
    run_timeout: Duration,
    has_heartbeat: bool,
}

impl Deadline {
    /// The deadline of a candidate that is about to be prepared.
    pub(super) fn new(options: &PoolOptions, time_limit: Duration) -> Self {
        Self {
            begin: Instant::now(),
            phase: Phase::Prepare,
            compile_timeout: options.compile_timeout,
            window_timeout: options.timeout,
            run_timeout: options.timeout.saturating_add(time_limit),
            has_heartbeat: false,
        }
    }

    /// Enters a phase; returns whether it is another one. A kernel that enters the one again in which it runs gives a sign of life.
    /// Preparation and compilation share their time.
    pub(super) fn enter(&mut self, phase: Phase) -> bool {
        let is_other = phase != self.phase;
        if phase == Phase::Run {
            self.begin = Instant::now();
            self.has_heartbeat |= !is_other;
        }
        self.phase = phase;
        is_other
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// The time that the phase may take.
    pub(super) const fn limit(&self) -> Duration {
        match self.phase {
            Phase::Prepare | Phase::Compile => self.compile_timeout,
            Phase::Wait => Duration::MAX,
            Phase::Run if self.has_heartbeat => self.window_timeout,
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
        assert!(deadline.enter(Phase::Compile));
        assert_eq!(deadline.limit(), Duration::from_secs(1000));
        assert!(
            deadline.left() <= Duration::from_secs(950),
            "compilation has the time that preparation has left"
        );
        assert!(deadline.enter(Phase::Run));
        assert_eq!(deadline.limit(), Duration::from_secs(107));
        assert!(deadline.left() > Duration::from_secs(90));
        let endless = Settings { budget_s: Some(f64::MAX), ..Settings::default() };
        assert_eq!(Deadline::new(&options, endless.time_limit()).run_timeout, Duration::MAX);
    }

    #[test]
    fn whoever_gives_signs_of_life_has_the_time_of_a_window() {
        let options = PoolOptions { timeout: Duration::from_secs(7), ..PoolOptions::new("runtime") };
        let mut deadline = Deadline::new(&options, Duration::from_secs(100));
        deadline.enter(Phase::Run);
        deadline.begin = Instant::now().checked_sub(Duration::from_secs(50)).unwrap();
        assert!(!deadline.enter(Phase::Run), "it is no news");
        assert_eq!(deadline.limit(), Duration::from_secs(7));
        assert!(deadline.left() > Duration::ZERO, "it begins again");
    }
}
