//! Alternates the contenders, so that disturbances of the machine affect all of them.

use std::time::{Duration, Instant};

use crate::options::Options;

/// The nanoseconds of each turn, ours and the other's.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) ours: Vec<f64>,
    pub(crate) other: Vec<f64>,
}

/// Maximum time for the turns of one row.
const BUDGET: Duration = Duration::from_secs(20);

/// Longer than idle threads stay awake (libgomp's poll for milliseconds), and than the scheduler takes to move a thread
/// to another processor (a few ticks).
const WARM_UP: Duration = Duration::from_millis(20);

/// A few calls a turn: for kernels that take milliseconds.
pub(crate) fn take(options: &Options, ours: &mut impl FnMut(), other: Option<impl FnMut()>) -> Samples {
    turns(options.rounds, 3, ours, other)
}

/// Many calls a turn: for calls that take microseconds.
pub(crate) fn take_many(options: &Options, ours: &mut impl FnMut(), other: Option<impl FnMut()>) -> Samples {
    turns(options.rounds, 100, ours, other)
}

fn turns(rounds: usize, calls: usize, ours: &mut impl FnMut(), mut other: Option<impl FnMut()>) -> Samples {
    let mut samples = Samples::default();
    let begin = Instant::now();
    for round in 0..rounds {
        // The order changes every round, because the first contender finds the caches as the other left them.
        let order = if round % 2 == 0 { [true, false] } else { [false, true] };
        for is_ours in order {
            match (is_ours, &mut other) {
                (true, _) => turn(&mut samples.ours, calls, ours),
                (false, Some(other)) => turn(&mut samples.other, calls, other),
                (false, None) => {}
            }
        }
        if begin.elapsed() > BUDGET {
            break;
        }
    }
    samples
}

/// Calls until one's own threads are awake, on processors of their own, and those of the one before asleep; then the
/// calls that count.
fn turn(samples: &mut Vec<f64>, calls: usize, call: &mut impl FnMut()) {
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP {
        call();
    }
    for _ in 0..calls {
        let begin = Instant::now();
        call();
        samples.push(begin.elapsed().as_secs_f64() * 1e9);
    }
}
