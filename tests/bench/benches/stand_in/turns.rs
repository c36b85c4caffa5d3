//! Alternates the two backends, so that disturbances of the machine affect both.

use std::time::{Duration, Instant};

use runtime_bench::median;

/// A turn lasts at least this long.
const TURN: Duration = Duration::from_millis(10);
/// Maximum time for a line.
const BUDGET: Duration = Duration::from_secs(15);

/// How many turns are taken.
pub(crate) struct Rounds(usize);

/// The nanoseconds of a call in each turn, of the OpenCL backend and of the stand-in.
pub(crate) type Samples = [Vec<f64>; 2];

impl Rounds {
    pub(crate) fn read() -> Self {
        let given = std::env::var("STAND_IN_BENCH_ROUNDS").ok();
        Self(given.and_then(|text| text.parse().ok()).unwrap_or(30))
    }

    /// Calls both in turns, of as many calls as fit. The first turn of each is a warm-up.
    pub(crate) fn take(&self, mut opencl: impl FnMut(), mut stand_in: impl FnMut()) -> Samples {
        let mut samples = Samples::default();
        let begin = Instant::now();
        for round in 0..=self.0 {
            // The order changes every round, because the first finds the caches as the other left them.
            let turns = match round % 2 {
                0 => [(0, turn(&mut opencl)), (1, turn(&mut stand_in))],
                _ => [(1, turn(&mut stand_in)), (0, turn(&mut opencl))],
            };
            if round > 0 {
                turns.into_iter().for_each(|(index, nanoseconds)| samples[index].push(nanoseconds));
            }
            if round > 2 && begin.elapsed() > BUDGET {
                break;
            }
        }
        samples
    }
}

/// The nanoseconds of a call, from a turn of many.
#[expect(clippy::cast_precision_loss, reason = "few calls are made")]
fn turn(call: &mut impl FnMut()) -> f64 {
    let (begin, mut calls) = (Instant::now(), 0u64);
    while begin.elapsed() < TURN {
        call();
        calls += 1;
    }
    begin.elapsed().as_nanos() as f64 / calls as f64
}

/// Prints the medians, the median of the ratios of paired turns, the quartiles of those, and the ratio of the minima.
pub(crate) fn line(what: &str, samples: &Samples) {
    let [opencl, stand_in] = samples;
    let mut ratios: Vec<_> = stand_in.iter().zip(opencl).map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "| {what} | {:.1} µs | {:.1} µs | {:.3} | {:.3}–{:.3} | {:.3} |",
        median(opencl.clone()) / 1e3,
        median(stand_in.clone()) / 1e3,
        median(ratios.clone()),
        ratios[ratios.len() / 4],
        ratios[ratios.len() * 3 / 4],
        least(stand_in) / least(opencl)
    );
}
