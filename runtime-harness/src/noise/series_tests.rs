use super::*;
use crate::random::Random;

/// Draws a sample.
type Noise = fn(&mut Random) -> f64;

/// Distributions without a defect. Their scale makes the least difference that matters irrelevant.
const NOISES: [(&str, Noise); 6] = [
    ("normal", |random| 1.0 + 0.1 * random.normal()),
    ("uniform", |random| 1.0 + random.uniform()),
    ("exponential", |random| 1.0 - random.uniform().ln()),
    ("log-normal", |random| 1.0 + random.normal().exp()),
    ("Student's t", |random| {
        // Two degrees of freedom: a normal divided by the root of an exponential.
        (100.0 + random.normal() / (-random.uniform().ln()).sqrt()).max(1.0)
    }),
    ("disturbed", |random| {
        let disturbance = if random.uniform() < 0.1 { 2.0 * random.uniform() } else { 0.0 };
        1.0 + 0.1 * random.normal().abs() + disturbance
    }),
];

fn series(count: usize, random: &mut Random, mut sample: impl FnMut(usize, &mut Random) -> f64) -> Vec<f64> {
    (0..count).map(|index| 1000.0 * sample(index, random)).collect()
}

#[test]
fn noise_gives_each_alarm_in_at_most_one_percent() {
    const SERIES: usize = 2000;
    for count in [10, 30, 100] {
        for (name, noise) in NOISES {
            let mut random = Random::new(1);
            let mut alarms = [0; 3];
            for _ in 0..SERIES {
                let samples = series(count, &mut random, |_, random| noise(random));
                alarms[0] += usize::from(drift(&samples).is_some());
                alarms[1] += usize::from(first_part(&samples).is_some());
                alarms[2] += usize::from(two_modes(&samples).is_some());
            }
            assert!(
                alarms.iter().all(|alarms| *alarms <= SERIES / 100),
                "{count} samples, {name}: {alarms:?}"
            );
        }
    }
}

/// The share of 1000 series with this kind of defect.
fn found(count: usize, sample: impl Fn(usize, &mut Random) -> f64, is_it: fn(&Defect) -> bool) -> f64 {
    let mut random = Random::new(2);
    let noisy = |index: usize, random: &mut Random| sample(index, random) * (1.0 + 0.02 * random.normal());
    let found = (0..1000).filter(|_| defect(&series(count, &mut random, noisy)).as_ref().is_some_and(is_it));
    found.count() as f64 / 1000.0
}

#[test]
fn planted_defects_are_found_in_the_stated_share() {
    for (count, least) in [(30, [0.98, 0.97, 0.96]), (10, [0.38, 0.83, 0.41])] {
        let drifting = |index: usize, _: &mut Random| 1.0 + 0.1 * index as f64 / count as f64;
        let warming = |index: usize, _: &mut Random| if index < count / 3 { 1.1 } else { 1.0 };
        let two = |_: usize, random: &mut Random| if random.uniform() < 0.5 { 1.2 } else { 1.0 };
        let shares = [
            found(count, drifting, |defect| matches!(defect, Defect::Drift { change } if *change > 0.0)),
            found(count, warming, |defect| matches!(defect, Defect::FirstPart { ratio, .. } if *ratio > 1.0)),
            found(count, two, |defect| matches!(defect, Defect::TwoModes { .. })),
        ];
        assert!(
            shares.iter().zip(least).all(|(share, least)| *share >= least),
            "{count} samples: {shares:?}"
        );
    }
}

#[test]
fn defects_are_described() {
    let wiggle = |index: usize| f64::from(u32::try_from(index * 7 % 5).unwrap());
    let rising: Vec<f64> = (0..50).map(|index| 1000.0 + 4.0 * index as f64 + wiggle(index)).collect();
    let Some(Defect::Drift { change }) = defect(&rising) else { panic!("{:?}", defect(&rising)) };
    assert!((0.17..0.19).contains(&change), "{change}");
    let warming: Vec<f64> =
        (0..40).map(|index| wiggle(index) + if index < 6 { 1500.0 } else { 1000.0 }).collect();
    let Some(Defect::FirstPart { samples, ratio }) = defect(&warming) else {
        panic!("{:?}", defect(&warming))
    };
    assert!(samples == 6 && (1.49..1.51).contains(&ratio), "{samples}, {ratio}");
    let modes: Vec<f64> =
        (0..40).map(|index| wiggle(index) + if index * 5 % 8 < 3 { 1500.0 } else { 1000.0 }).collect();
    let Some(Defect::TwoModes { low_ns, high_ns, high_share }) = defect(&modes) else {
        panic!("{:?}", defect(&modes))
    };
    assert!((1000.0..1005.0).contains(&low_ns) && (1500.0..1505.0).contains(&high_ns));
    assert!((0.3..0.45).contains(&high_share), "{high_share}");
}

#[test]
fn small_differences_and_few_or_odd_samples_have_no_defect() {
    let slight: Vec<f64> = (0..100).map(|index| 1000.0 + 0.1 * f64::from(index)).collect();
    assert_eq!(defect(&slight), None, "1% of change");
    let rising: Vec<f64> = (1..8).map(f64::from).collect();
    assert_eq!(defect(&rising), None, "seven samples");
    for odd in [vec![0.0; 50], vec![5.0; 50], vec![f64::NAN; 50], vec![f64::INFINITY; 50], vec![1e308; 50]] {
        assert_eq!(defect(&odd), None);
    }
    let extreme: Vec<f64> = (0..50).map(|index| if index < 10 { 1e300 } else { 1e-300 }).collect();
    let _ = defect(&extreme);
}

#[test]
fn a_long_series_takes_no_longer_than_sorting() {
    let mut random = Random::new(3);
    let long = series(1_000_000, &mut random, |_, random| 1.0 + 0.1 * random.normal());
    let begin = std::time::Instant::now();
    assert_eq!(defect(&long), None);
    assert!(begin.elapsed().as_secs() < 30, "comparing all pairs takes hours");
}
