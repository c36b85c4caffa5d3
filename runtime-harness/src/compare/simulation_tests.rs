//! How often the verdicts are right, on simulated samples.

use super::{CompareOptions, Estimate, Verdict};
use crate::random::Random;

const PAIRS: usize = 1_000;
const SAMPLES: usize = 30;

/// The shape of the noise. Its scale is a fraction of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    Normal,
    /// Only ever adds time.
    Exponential,
    /// Every tenth sample is disturbed.
    Spikes,
    /// Normal; every sample keeps this share of the deviation of the one before.
    Correlated(f64),
}

fn series(random: &mut Random, noise: Noise, scale: f64, samples: usize) -> Vec<f64> {
    let mut last = random.normal();
    let mut sample = |_| {
        let deviation = match noise {
            Noise::Normal => random.normal(),
            Noise::Exponential => -random.uniform().ln(),
            Noise::Spikes if random.uniform() < 0.1 => 20.0 * random.uniform(),
            Noise::Spikes => random.normal(),
            Noise::Correlated(share) => {
                last = share * last + (1.0 - share * share).sqrt() * random.normal();
                last
            }
        };
        1e4 * (1.0 + scale * deviation)
    };
    (0..samples).map(&mut sample).collect()
}

/// The shares of (faster, slower, same) among pairs whose true ratio is `ratio`.
fn shares(pairs: usize, noise: Noise, scale: f64, samples: usize, ratio: f64) -> (f64, f64, f64) {
    let mut random = Random::new(1);
    let mut counts = [0usize; 4];
    for _ in 0..pairs {
        let old = series(&mut random, noise, scale, samples);
        let new: Vec<f64> =
            series(&mut random, noise, scale, samples).iter().map(|time| time * ratio).collect();
        counts[Estimate::of(&old, &new, &CompareOptions::default()).verdict as usize] += 1;
    }
    let share = |verdict: Verdict| counts[verdict as usize] as f64 / pairs as f64;
    (share(Verdict::Faster), share(Verdict::Slower), share(Verdict::Same))
}

/// Noise of 20% makes the threshold irrelevant: the rate is that of the interval.
#[test]
fn equal_series_are_reported_as_changed_with_at_most_the_stated_rate() {
    let level = 1.0 - CompareOptions::default().confidence;
    for (noise, scale, samples) in [
        (Noise::Normal, 0.2, SAMPLES),
        (Noise::Exponential, 0.2, SAMPLES),
        (Noise::Normal, 0.2, 6),
        (Noise::Spikes, 0.02, 10),
        (Noise::Correlated(0.3), 0.02, SAMPLES),
    ] {
        let (faster, slower, _) = shares(PAIRS, noise, scale, samples, 1.0);
        assert!(faster + slower <= level, "{noise:?}, {samples} samples: {faster} faster, {slower} slower");
    }
}

#[test]
fn a_change_of_3_percent_is_found() {
    for (scale, least) in [(0.01, 0.99), (0.02, 0.85)] {
        let (faster, slower, same) = shares(PAIRS, Noise::Normal, scale, SAMPLES, 1.03);
        assert!(slower >= least && faster == 0.0 && same <= 0.01, "{scale}: {slower} slower, {same} same");
    }
}

#[test]
fn no_change_is_called_the_same_if_the_noise_allows() {
    let (_, _, same) = shares(PAIRS, Noise::Normal, 0.01, SAMPLES, 1.0);
    assert!(same >= 0.95, "{same}");
}

#[test]
#[ignore = "prints the table of docs/commands.md, which takes minutes"]
fn the_rates_in_the_documentation() {
    for (noise, scale) in [
        (Noise::Normal, 0.01),
        (Noise::Normal, 0.02),
        (Noise::Normal, 0.2),
        (Noise::Correlated(0.3), 0.02),
        (Noise::Correlated(0.5), 0.02),
    ] {
        let (faster, slower, _) = shares(10 * PAIRS, noise, scale, SAMPLES, 1.0);
        let (_, found, _) = shares(10 * PAIRS, noise, scale, SAMPLES, 1.03);
        println!("| {noise:?} {scale} | {:.2}% | {:.1}% |", 100.0 * (faster + slower), 100.0 * found);
    }
}
