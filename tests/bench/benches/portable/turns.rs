//! Contenders that take turns, so that what else the machine does meets all of them.

use std::time::{Duration, Instant};

use crate::options::Options;

/// Nanoseconds of each turn of ours and of the other.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) ours: Vec<f64>,
    pub(crate) other: Vec<f64>,
}

/// Most time for the turns of one row.
const BUDGET: Duration = Duration::from_secs(20);

/// One call a turn: for kernels that take milliseconds.
pub(crate) fn take(options: &Options, ours: &mut impl FnMut(), other: Option<impl FnMut()>) -> Samples {
    turns(options.rounds, 1, ours, other)
}

/// Many calls, each a turn of its own: for calls that take microseconds.
pub(crate) fn take_many(options: &Options, ours: &mut impl FnMut(), other: Option<impl FnMut()>) -> Samples {
    turns(options.rounds, 100, ours, other)
}

fn turns(rounds: usize, calls: usize, ours: &mut impl FnMut(), mut other: Option<impl FnMut()>) -> Samples {
    let mut samples = Samples::default();
    let begin = Instant::now();
    for round in 0..rounds {
        // Who follows whom changes from round to round: the first finds the caches as the other left them.
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

/// A pause, so that the threads of the one before are asleep; a call that wakes one's own; the calls that count.
fn turn(samples: &mut Vec<f64>, calls: usize, call: &mut impl FnMut()) {
    std::thread::sleep(Duration::from_millis(2));
    call();
    for _ in 0..calls {
        let begin = Instant::now();
        call();
        samples.push(begin.elapsed().as_secs_f64() * 1e9);
    }
}
