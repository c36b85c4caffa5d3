//! Calibration of the number of calls per sample. It runs once, extrapolates from trial windows, and always
//! terminates.
//!
//! A clock has a resolution and a cost. A sample of a single 2 µs call would measure the clock more than the
//! kernel, so a sample is `number` calls between two clock reads, with `number` large enough for the sample
//! to last.

/// Maximum number of calls per sample.
pub(crate) const MAX_NUMBER: u64 = 10_000_000;

/// Maximum factor by which one step increases `number`, because the first window is the least reliable.
const MAX_GROWTH: f64 = 10.0;

/// Aim slightly too high, so that noise does not require another step.
const MARGIN: f64 = 1.2;

/// Give up when a window has taken this many times the goal in wall-clock time: the clock cannot measure this
/// kernel.
const MAX_WALL_RATIO: f64 = 4.0;

/// The measurement of a trial window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// Number of calls.
    pub(crate) number: u64,
    /// Duration by the evaluation's clock.
    pub(crate) elapsed_ns: f64,
    /// Duration by the host's clock.
    pub(crate) wall_ns: f64,
}

/// The limits for a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Minimum duration by the evaluation's clock.
    pub(crate) sample_ns: f64,
    /// Maximum duration by the host's clock.
    pub(crate) wall_ns: f64,
}

/// The number of calls to try next; `None` if the trial reached the goal or cannot be improved.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped between 1 and MAX_NUMBER"
)]
pub(crate) fn next_number(trial: Trial, goal: Goal) -> Option<u64> {
    let reached = trial.elapsed_ns >= goal.sample_ns;
    if reached || trial.wall_ns >= MAX_WALL_RATIO * goal.sample_ns || trial.number >= MAX_NUMBER {
        return None;
    }
    // If the clock measured nothing, the prediction is infinite; `MAX_GROWTH` bounds it.
    let wanted = MARGIN * goal.sample_ns / trial.elapsed_ns.max(f64::MIN_POSITIVE);
    let allowed = goal.wall_ns / trial.wall_ns.max(f64::MIN_POSITIVE);
    let growth = wanted.min(MAX_GROWTH).min(allowed);
    let next = ((trial.number as f64 * growth).ceil() as u64).min(MAX_NUMBER);
    (next > trial.number).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    /// Calibrates for a kernel of `call_ns` and a clock that measures the fraction `seen` of it; returns the
    /// trials.
    fn calibrate(call_ns: f64, seen: f64, goal: Goal) -> Vec<u64> {
        let mut numbers = vec![1];
        while let Some(next) = {
            let number = *numbers.last().unwrap();
            let wall_ns = number as f64 * call_ns;
            next_number(Trial { number, elapsed_ns: wall_ns * seen, wall_ns }, goal)
        } {
            numbers.push(next);
            assert!(numbers.len() < 100, "does not terminate: {numbers:?}");
        }
        numbers
    }

    fn goal(sample_ns: f64) -> Goal {
        Goal { sample_ns, wall_ns: 1e12 }
    }

    #[test]
    fn a_sample_lasts_long_enough_and_not_much_longer() {
        for call_ns in [80.0, 2_000.0, 333_333.0, 19.0 * MS] {
            let numbers = calibrate(call_ns, 1.0, goal(20.0 * MS));
            let sample_ns = *numbers.last().unwrap() as f64 * call_ns;
            assert!((20.0 * MS..=40.0 * MS).contains(&sample_ns), "{call_ns} ns: {numbers:?}");
        }
    }

    #[test]
    fn long_kernels_are_called_once() {
        assert_eq!(calibrate(50.0 * MS, 1.0, goal(20.0 * MS)), [1]);
        assert_eq!(calibrate(1.0, 1.0, goal(0.0)), [1]);
    }

    #[test]
    fn steps_are_at_most_tenfold() {
        let numbers = calibrate(10.0, 1.0, goal(20.0 * MS));
        assert!(numbers.windows(2).all(|pair| pair[1] <= 10 * pair[0]), "{numbers:?}");
        assert!(numbers.len() <= 9, "{numbers:?}");
    }

    #[test]
    fn calibration_stops_if_the_clock_measures_nothing() {
        let numbers = calibrate(1000.0, 0.0, goal(100.0 * MS));
        let last_wall_ns = *numbers.last().unwrap() as f64 * 1000.0;
        assert!((400.0 * MS..=4000.0 * MS).contains(&last_wall_ns), "{numbers:?}");
    }

    #[test]
    fn calibration_stops_at_the_maximum_if_no_clock_advances() {
        assert_eq!(calibrate(0.0, 0.0, goal(100.0 * MS)).last(), Some(&MAX_NUMBER));
    }

    #[test]
    fn a_sample_stays_within_its_budget() {
        let numbers = calibrate(1000.0, 0.0, Goal { sample_ns: 100.0 * MS, wall_ns: 50.0 * MS });
        let wall_ns = *numbers.last().unwrap() as f64 * 1000.0;
        assert!((25.0 * MS..=50.0 * MS + 1000.0).contains(&wall_ns), "{numbers:?}");
        // With the budget already spent, no further trial is made.
        assert_eq!(calibrate(1000.0, 1.0, Goal { sample_ns: MS, wall_ns: 0.0 }), [1]);
    }
}
