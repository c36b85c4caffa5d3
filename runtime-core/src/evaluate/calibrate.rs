//! How many calls make a sample: found once, by prediction, and it always ends.
//!
//! A clock has a resolution and a cost. A sample of one 2 µs call says more of the clock than of the kernel, so a
//! sample is `number` calls between two clock reads, where `number` is large enough for the sample to last.

/// The most calls of one sample.
pub(crate) const MAX_NUMBER: u64 = 10_000_000;

/// The most that one step multiplies `number` by: the first window is the least trustworthy.
const MAX_GROWTH: f64 = 10.0;

/// Aim a little higher than needed, so that noise does not ask for one more step.
const MARGIN: f64 = 1.2;

/// Give up when the host has waited this many times the target in vain: the clock does not see this kernel.
const MAX_WALL_RATIO: f64 = 4.0;

/// What a trial window of `number` calls showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// Calls of the window.
    pub(crate) number: u64,
    /// What the evaluation's clock says they took.
    pub(crate) elapsed_ns: f64,
    /// What the host's clock says they took.
    pub(crate) wall_ns: f64,
}

/// What a sample should be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// It lasts at least this long by the evaluation's clock.
    pub(crate) sample_ns: f64,
    /// It takes at most this long by the host's clock.
    pub(crate) wall_ns: f64,
}

/// The number of calls to try next; `None` when the trial is good, or nothing better can be had.
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
    // A clock that saw nothing predicts an infinite number, which the step's limit makes finite.
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

    /// Calibrates against a kernel of `call_ns` by a clock that sees `seen` of it; returns the trials.
    fn calibrate(call_ns: f64, seen: f64, goal: Goal) -> Vec<u64> {
        let mut numbers = vec![1];
        while let Some(next) = {
            let number = *numbers.last().unwrap();
            let wall_ns = number as f64 * call_ns;
            next_number(Trial { number, elapsed_ns: wall_ns * seen, wall_ns }, goal)
        } {
            numbers.push(next);
            assert!(numbers.len() < 100, "does not end: {numbers:?}");
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
    fn a_clock_that_sees_nothing_ends_by_patience() {
        let numbers = calibrate(1000.0, 0.0, goal(100.0 * MS));
        let last_wall_ns = *numbers.last().unwrap() as f64 * 1000.0;
        assert!((400.0 * MS..=4000.0 * MS).contains(&last_wall_ns), "{numbers:?}");
    }

    #[test]
    fn no_time_on_any_clock_ends_by_the_cap() {
        assert_eq!(calibrate(0.0, 0.0, goal(100.0 * MS)).last(), Some(&MAX_NUMBER));
    }

    #[test]
    fn the_budget_of_a_sample_is_kept() {
        let numbers = calibrate(1000.0, 0.0, Goal { sample_ns: 100.0 * MS, wall_ns: 50.0 * MS });
        let wall_ns = *numbers.last().unwrap() as f64 * 1000.0;
        assert!((25.0 * MS..=50.0 * MS + 1000.0).contains(&wall_ns), "{numbers:?}");
        // A budget that is spent already asks for nothing more.
        assert_eq!(calibrate(1000.0, 1.0, Goal { sample_ns: MS, wall_ns: 0.0 }), [1]);
    }
}
