//! Which candidates are best.

use std::collections::BTreeMap;

use super::trial::{Trial, TrialClass};
use crate::compare::{CompareOptions, Estimate, Verdict};

/// A bootstrap takes a millisecond: only so many candidates get the interval of their speed-up.
const MAX_INTERVALS: usize = 200;

/// The trials of a tuner in order: those of the last round by their median, those that were eliminated in earlier rounds,
/// and those that did not run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The candidates, the best first.
    pub candidates: Vec<Ranked>,
}

/// A candidate and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The trial.
    pub trial: Trial,
    /// Its rank, from 1; `None` if it did not run. All that cannot be told from the best have rank 1.
    pub rank: Option<usize>,
    /// The median of the spec's own values divided by its own; `None` if either did not run.
    pub speedup: Option<f64>,
    /// The interval of the speed-up; `None` if there are too few samples.
    pub speedup_interval: Option<[f64; 2]>,
}

impl Ranking {
    /// Ranks trials, of which the last one of each candidate counts.
    #[must_use]
    pub fn of(trials: &[Trial], options: &CompareOptions) -> Self {
        let mut last: BTreeMap<(bool, String), &Trial> = BTreeMap::new();
        for trial in trials {
            let known = last.entry((trial.is_default, trial.overrides.describe())).or_insert(trial);
            if known.rung <= trial.rung {
                *known = trial;
            }
        }
        let mut last: Vec<&Trial> = last.into_values().collect();
        // The spec's own values are measured in full, whatever the round.
        let final_rung = last.iter().filter(|trial| !trial.is_default).map(|trial| trial.rung).max();
        let rung = |trial: &Trial| final_rung.filter(|_| trial.is_default).unwrap_or(trial.rung);
        last.sort_by(|a, b| {
            let order = |trial: &Trial| (trial.class() != TrialClass::Ran, std::cmp::Reverse(rung(trial)));
            let time = |trial: &Trial| trial.median_ns().unwrap_or(f64::INFINITY);
            order(a).cmp(&order(b)).then(time(a).total_cmp(&time(b)))
        });
        let default = last.iter().find(|trial| trial.is_default && trial.class() == TrialClass::Ran).copied();
        let best = last.first().copied();
        // A comparison takes about 1 ms, and the slower candidates are, the less likely are ties.
        let mut slower = 0;
        let candidates = last.iter().enumerate().map(|(at, trial)| {
            let ran = trial.class() == TrialClass::Ran;
            let may_tie = slower < MAX_INTERVALS && best.is_some_and(|best| rung(best) == rung(trial));
            let is_tied = may_tie && best.is_some_and(|best| is_tied(best, trial, options));
            slower = if is_tied { 0 } else { slower + 1 };
            let medians = default.and_then(Trial::median_ns).zip(trial.median_ns());
            let has_interval = ran && at < MAX_INTERVALS;
            let estimate = default
                .filter(|_| has_interval)
                .map(|default| Estimate::of(trial.samples(), default.samples(), options));
            Ranked {
                trial: (*trial).clone(),
                rank: ran.then_some(if is_tied { 1 } else { at + 1 }),
                speedup: medians.map(|(default, own)| default / own).filter(|ratio| ratio.is_finite()),
                speedup_interval: estimate.and_then(|estimate| estimate.interval),
            }
        });
        Self { candidates: candidates.collect() }
    }

    /// The fastest candidate, if any ran.
    #[must_use]
    pub fn best(&self) -> Option<&Ranked> {
        self.candidates.first().filter(|candidate| candidate.rank.is_some())
    }

    /// Number of candidates that share the first rank.
    #[must_use]
    pub fn tied(&self) -> usize {
        self.candidates.iter().filter(|candidate| candidate.rank == Some(1)).count()
    }

    /// The candidates of a class.
    pub fn of_class(&self, class: TrialClass) -> impl Iterator<Item = &Ranked> {
        self.candidates.iter().filter(move |candidate| candidate.trial.class() == class)
    }
}

/// Whether a candidate cannot be told from the best. It can, however few the samples are, if each of its samples is slower than
/// each of the best's by more than the threshold.
fn is_tied(best: &Trial, other: &Trial, options: &CompareOptions) -> bool {
    let slowest = best.samples().iter().copied().fold(0.0, f64::max);
    let fastest = other.samples().iter().copied().fold(f64::INFINITY, f64::min);
    if fastest > slowest * (1.0 + options.threshold) {
        return false;
    }
    let estimate = Estimate::of(best.samples(), other.samples(), options);
    estimate.verdict != Verdict::Slower
}
