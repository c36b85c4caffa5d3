//! Which candidates are measured, and how long.

use runtime_core::Result;
use runtime_core::evaluate::Warmup;

use crate::settings::Settings;
use crate::spec::{MAX_TRIED, Point, Space};

/// The fewest candidates of the last rung, which are measured in full.
const FINALISTS: usize = 4;
/// The fewest samples of a candidate.
const MIN_SAMPLES: u64 = 3;

/// How a tuner searches a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Measures every candidate.
    All,
    /// Measures a random sample, without repetition.
    Random {
        /// Number of candidates.
        samples: usize,
        /// The same seed gives the same sample.
        seed: u64,
    },
    /// Successive halving (Jamieson and Talwalkar 2016): measures all candidates for a short time, the better half of them
    /// for twice as long, and so on. Each round takes about the same time.
    Halving {
        /// Number of candidates, a random sample; `None`: all.
        samples: Option<usize>,
        /// The same seed gives the same sample.
        seed: u64,
    },
}

/// A round of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// Number of candidates that it measures.
    pub candidates: usize,
    /// The settings to measure them with.
    pub settings: Settings,
}

impl Strategy {
    /// The candidates to begin with.
    ///
    /// # Errors
    /// Those of [`Space::all`] and [`Space::sample`].
    pub fn points(&self, space: &Space) -> Result<Vec<Point>> {
        match *self {
            Self::All | Self::Halving { samples: None, .. } => space.all(MAX_TRIED),
            Self::Random { samples, seed } | Self::Halving { samples: Some(samples), seed } => {
                space.sample(samples, seed)
            }
        }
    }

    /// The rounds for a number of candidates. The last one has the settings given.
    #[must_use]
    pub fn rungs(&self, candidates: usize, settings: &Settings) -> Vec<Rung> {
        let last = |candidates| Rung { candidates, settings: settings.clone() };
        if !matches!(self, Self::Halving { .. }) {
            return vec![last(candidates)];
        }
        let halved = |&count: &usize| (count > FINALISTS).then(|| count.div_ceil(2));
        let counts: Vec<usize> = std::iter::successors(Some(candidates), halved).collect();
        let rounds = counts.len();
        let rung = |(round, candidates): (usize, usize)| match rounds - 1 - round {
            0 => last(candidates),
            halvings => Rung { candidates, settings: shortened(settings, halvings) },
        };
        counts.into_iter().enumerate().map(rung).collect()
    }
}

/// Settings that take a 2⁻ʰth of the time: fewer samples, and shorter ones once they are few.
fn shortened(settings: &Settings, halvings: usize) -> Settings {
    let share = 0.5_f64.powi(i32::try_from(halvings).unwrap_or(i32::MAX));
    let timing = settings.timing();
    let wanted = timing.repeat as f64 * share;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, at least 3")]
    let repeat = (wanted.round() as u64).max(MIN_SAMPLES).min(timing.repeat as u64);
    let shorter = (wanted / repeat as f64).min(1.0);
    Settings {
        repeat: Some(repeat),
        min_repeat_ms: Some(timing.min_repeat.as_secs_f64() * 1e3 * shorter),
        // The check has run the kernel once; a warm-up by time would take longer than the samples.
        warmup: match timing.warmup {
            Warmup::Calls(calls) => Some(calls),
            Warmup::Time(_) => Some(1),
        },
        // Only the last round needs to be precise, and what is measured beside the times.
        until_percent: Some(0.0),
        counters: Some(Vec::new()),
        energy: Some(false),
        ..settings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_has_half_of_the_candidates_and_twice_the_samples() {
        let settings = Settings { repeat: Some(48), min_repeat_ms: Some(8.0), ..Settings::default() };
        let rungs = Strategy::Halving { samples: None, seed: 0 }.rungs(100, &settings);
        let counts: Vec<usize> = rungs.iter().map(|rung| rung.candidates).collect();
        assert_eq!(counts, [100, 50, 25, 13, 7, 4]);
        let repeats: Vec<u64> = rungs.iter().filter_map(|rung| rung.settings.repeat).collect();
        assert_eq!(repeats, [3, 3, 6, 12, 24, 48]);
        let first = &rungs[0].settings;
        assert_eq!(
            (first.min_repeat_ms, first.warmup),
            (Some(4.0), Some(1)),
            "a 32nd of 48 · 8 ms is 3 · 4 ms"
        );
        assert_eq!(rungs[5].settings, settings);
        assert_eq!(Strategy::All.rungs(9, &settings), [Rung { candidates: 9, settings: settings.clone() }]);
        assert_eq!(Strategy::Halving { samples: None, seed: 0 }.rungs(4, &settings).len(), 1);
    }
}
