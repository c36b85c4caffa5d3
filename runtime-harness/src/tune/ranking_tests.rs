//! Tests of the ranking.

use runtime_core::evaluate::{Clock, Cost, Measurement, Statistics, Validation};

use super::{Ranking, Trial, TrialClass};
use crate::compare::CompareOptions;
use crate::row::{Outcome, Row, Status};
use crate::settings::Settings;
use crate::spec::{Number, Overrides, Spec};

/// A trial with 12 samples within ±`noise` of the median; 0 is the spec's own.
fn trial(value: i128, rung: usize, median: f64, noise: f64) -> Trial {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.c"), "").unwrap();
    let path = folder.path().join("k.toml");
    std::fs::write(&path, "version = 1\n[kernel]\npath = \"k.c\"\nentry = \"k\"\n").unwrap();
    let spec = Spec::load(&path, &Overrides::default()).unwrap();
    let row = Row::unmeasured(&spec, &Settings::default(), "host:0", Outcome::Ok);
    let offsets = [0.3, -0.9, 0.6, -0.1, 0.9, -0.6, 0.1, -0.3, 0.7, -0.7, 0.2, -0.2];
    let samples_ns: Vec<f64> = offsets.iter().map(|offset| median * (1.0 + noise * offset)).collect();
    let statistics = Statistics {
        min_ns: median,
        median_ns: median,
        mean_ns: median,
        max_ns: median,
        stddev_ns: None,
        p5_ns: median,
        p95_ns: median,
        median_ci95_ns: None,
        outliers: 0,
    };
    let measurement = Measurement {
        clock: Clock::HostWall,
        cold: false,
        repeat: 12,
        number: 1,
        calls: 12,
        samples_ns,
        statistics,
        overhead_ns: None,
        transfer: None,
        cost: Cost::default(),
        validation: Validation::default(),
        reached_until: None,
        throttled: None,
    };
    let values = if value == 0 { vec![] } else { vec![("V".to_owned(), Number::Integer(value))] };
    Trial {
        overrides: Overrides { values, ..Overrides::default() },
        is_default: value == 0,
        rung,
        is_logged: false,
        row: Row { measurement: Some(measurement), ..row },
    }
}

/// Value and rank of each candidate, in order.
fn ranks(trials: &[Trial]) -> Vec<(String, Option<usize>)> {
    let ranking = Ranking::of(trials, &CompareOptions::default());
    let candidates = ranking.candidates.iter();
    candidates.map(|ranked| (ranked.trial.overrides.describe(), ranked.rank)).collect()
}

fn expected(ranks: &[(&str, Option<usize>)]) -> Vec<(String, Option<usize>)> {
    ranks.iter().map(|(values, rank)| ((*values).to_owned(), *rank)).collect()
}

#[test]
fn those_that_cannot_be_told_from_the_best_share_its_rank() {
    let noisy =
        [trial(0, 0, 104.0, 0.2), trial(1, 0, 100.0, 0.2), trial(2, 0, 160.0, 0.2), trial(3, 0, 103.0, 0.2)];
    assert_eq!(
        ranks(&noisy),
        expected(&[(" V=1", Some(1)), (" V=3", Some(1)), ("", Some(1)), (" V=2", Some(4))])
    );
    let quiet = [trial(0, 0, 104.0, 0.01), trial(1, 0, 100.0, 0.01), trial(2, 0, 101.0, 0.01)];
    assert_eq!(ranks(&quiet), expected(&[(" V=1", Some(1)), (" V=2", Some(1)), ("", Some(3))]));
    let ranking = Ranking::of(&quiet, &CompareOptions::default());
    assert_eq!(ranking.tied(), 2);
    let best = ranking.best().unwrap();
    assert!((best.speedup.unwrap() - 1.04).abs() < 1e-9);
    let [low, high] = best.speedup_interval.unwrap();
    assert!(1.02 < low && low < 1.04 && 1.04 < high && high < 1.06, "{low} {high}");
}

#[test]
fn what_is_wrong_or_failed_has_no_rank_however_fast() {
    let mut wrong = trial(1, 0, 1.0, 0.01);
    wrong.row.status = Status::Wrong;
    let mut lacking = trial(2, 0, 1.0, 0.01);
    lacking.row =
        Row { outcome: Outcome::OutOfResources, status: Status::Failed, measurement: None, ..lacking.row };
    let mut crashed = lacking.clone();
    crashed.row.outcome = Outcome::Exited { code: 1, operation: None, output: String::new() };
    assert_eq!(
        [wrong.class(), lacking.class(), crashed.class()],
        [TrialClass::Wrong, TrialClass::Skipped, TrialClass::Failed]
    );
    assert_eq!(ranks(&[trial(0, 0, 9.0, 0.01), wrong.clone(), lacking])[0], (String::new(), Some(1)));
    assert_eq!(Ranking::of(&[wrong], &CompareOptions::default()).best(), None);
}

#[test]
fn the_last_round_counts_and_comes_before_those_left_behind() {
    let trials = [
        trial(0, 0, 120.0, 0.01),
        trial(1, 0, 90.0, 0.01),
        trial(2, 0, 95.0, 0.01),
        trial(3, 0, 99.0, 0.01),
        trial(1, 1, 110.0, 0.01),
        trial(2, 1, 105.0, 0.01),
    ];
    let order = [(" V=2", Some(1)), (" V=1", Some(2)), ("", Some(3)), (" V=3", Some(4))];
    assert_eq!(ranks(&trials), expected(&order));
}

#[test]
fn few_samples_tell_what_is_far_apart() {
    let few = |value, median| {
        let mut trial = trial(value, 0, median, 0.05);
        if let Some(measurement) = &mut trial.row.measurement {
            measurement.samples_ns.truncate(3);
        }
        trial
    };
    let trials = [few(0, 100.0), few(1, 103.0), few(2, 150.0)];
    assert_eq!(ranks(&trials), expected(&[("", Some(1)), (" V=1", Some(1)), (" V=2", Some(3))]));
}
