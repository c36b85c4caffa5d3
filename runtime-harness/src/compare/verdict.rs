//! From samples to a verdict.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Series, ratio_interval};

/// The fewest samples of a series that give a verdict.
const MIN_SAMPLES: usize = 6;
/// The fewest independent samples that a series must be worth.
const MIN_INDEPENDENT: usize = 5;

/// How rows are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareOptions {
    /// The change that matters, as a fraction. A smaller one is never reported as faster or slower.
    pub threshold: f64,
    /// Confidence of the interval of the ratio. Two equal series are reported as faster or slower with at most the
    /// complementary probability.
    pub confidence: f64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { threshold: 0.02, confidence: 0.99 }
    }
}

/// How a kernel's time has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The median is shorter: by more than the threshold, and significantly.
    Faster,
    /// The median is longer: by more than the threshold, and significantly.
    Slower,
    /// The change is less than the threshold.
    Same,
    /// The samples do not decide.
    CannotTell,
}

impl Verdict {
    /// The verdict in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::CannotTell => "cannot tell",
        }
    }

    /// The verdict for a ratio of medians, new to old, with its interval.
    ///
    /// With the threshold `t`, times are equal in practice if their ratio is between `1 / (1 + t)` and `1 + t`: swapping
    /// the reports inverts the verdict. `Same`: the whole interval lies there. `Faster` or `Slower`: the ratio lies
    /// outside, and the whole interval is on its side of 1. It need not lie outside too, which would take a change of
    /// more than the threshold and the uncertainty together: a change of exactly the threshold is therefore reported
    /// about half of the time, but no change at all with at most the probability that the interval does not contain 1.
    #[must_use]
    pub fn of(ratio: f64, [low, high]: [f64; 2], threshold: f64) -> Self {
        let most = 1.0 + threshold;
        match () {
            () if low >= 1.0 / most && high <= most => Self::Same,
            () if ratio > most && low > 1.0 => Self::Slower,
            () if ratio < 1.0 / most && high < 1.0 => Self::Faster,
            () => Self::CannotTell,
        }
    }
}

/// The ratio of two medians, and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the new samples divided by that of the old ones; below 1 is faster. `None` if it is undefined.
    pub ratio: Option<f64>,
    /// Its interval; `None` if the samples do not give one.
    pub interval: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the verdict is `CannotTell`.
    pub reason: Option<String>,
}

impl Estimate {
    /// Compares samples, each in the order taken.
    #[must_use]
    pub fn of(old: &[f64], new: &[f64], options: &CompareOptions) -> Self {
        let undecided = |ratio, reason| Self {
            ratio,
            interval: None,
            verdict: Verdict::CannotTell,
            reason: Some(reason),
        };
        if let Some(reason) = unusable(old, "before").or_else(|| unusable(new, "now")) {
            return undecided(None, reason);
        }
        let (old, new) = (Series::new(old), Series::new(new));
        let ratio = new.median() / old.median();
        if let Some(reason) = too_few(&old, "before").or_else(|| too_few(&new, "now")) {
            return undecided(Some(ratio), reason);
        }
        let interval = ratio_interval(&old, &new, options.confidence);
        let verdict = Verdict::of(ratio, interval, options.threshold);
        let reason = (verdict == Verdict::CannotTell).then(|| undecided_reason(ratio, interval, options));
        Self { ratio: Some(ratio), interval: Some(interval), verdict, reason }
    }

    /// Compares two counts that do not vary.
    #[must_use]
    pub fn exact(old: f64, new: f64, options: &CompareOptions) -> Self {
        if old <= 0.0 || new <= 0.0 {
            let reason = Some("a count is 0".to_owned());
            return Self { ratio: None, interval: None, verdict: Verdict::CannotTell, reason };
        }
        let ratio = new / old;
        let verdict = Verdict::of(ratio, [ratio, ratio], options.threshold);
        Self { ratio: Some(ratio), interval: Some([ratio, ratio]), verdict, reason: None }
    }
}

/// Why samples have no ratio.
fn unusable(samples: &[f64], when: &str) -> Option<String> {
    let is_usable = |sample: &f64| *sample > 0.0 && sample.is_finite();
    match samples.iter().find(|sample| !is_usable(sample)) {
        Some(sample) => Some(format!("a sample {when} is {sample} ns: shorter than the clock can resolve")),
        None => samples.is_empty().then(|| format!("there are no samples {when}")),
    }
}

/// Why a series has no interval.
fn too_few(series: &Series, when: &str) -> Option<String> {
    let (samples, independent) = (series.samples(), series.independent());
    if samples < MIN_SAMPLES {
        return Some(format!("{samples} samples {when}; at least {MIN_SAMPLES} are needed"));
    }
    (independent < MIN_INDEPENDENT).then(|| {
        format!(
            "the {samples} samples {when} drift or change in steps, so they tell no more than {independent} independent \
             ones; take more"
        )
    })
}

fn undecided_reason(ratio: f64, [low, high]: [f64; 2], options: &CompareOptions) -> String {
    let threshold = 100.0 * options.threshold;
    if low > 1.0 || high < 1.0 {
        return format!("there is a change, but perhaps of less than {threshold}%");
    }
    let uncertainty = 100.0 * (high / ratio - 1.0).max(1.0 - low / ratio);
    format!(
        "the ratio is uncertain by {uncertainty:.1}%, and the threshold is {threshold}%; take more samples"
    )
}
