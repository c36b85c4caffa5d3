//! Two rows of the same kernel and device.

use serde::Serialize;

use super::difference::{self, Difference};
use super::side::samples;
use super::{CompareOptions, Estimate, RowKey, Side, Verdict};
use crate::row::Row;

/// How a kernel on a device has changed between two reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The kernel and the device.
    #[serde(flatten)]
    pub key: RowKey,
    /// What differs, apart from the times.
    pub differences: Vec<Difference>,
    /// The old row.
    pub old: Side,
    /// The new row.
    pub new: Side,
    /// The new median divided by the old one, so that below 1 is faster; `None` if a row has no usable samples.
    pub ratio: Option<f64>,
    /// The interval of the ratio; `None` if there are too few samples.
    pub interval: Option<[f64; 2]>,
    /// How the time has changed.
    pub verdict: Verdict,
    /// Why the verdict is `CannotTell`.
    pub reason: Option<String>,
    /// If the samples do not decide: what spoils them, as the evaluation advised; `before: …` or `now: …`.
    pub advice: Vec<String>,
    /// Whether it is slower, or is wrong or failed and was not before.
    pub regression: bool,
}

impl Comparison {
    /// Compares two rows. The times of a wrong kernel, and times that were not measured in the same way, are not judged.
    #[must_use]
    pub fn of(old: &Row, new: &Row, options: &CompareOptions) -> Self {
        let differences = difference::of_rows(old, new);
        let (old_side, new_side) = (Side::of(old), Side::of(new));
        let mut estimate = match (&old.counts, &new.counts) {
            (Some(old), Some(new)) if old.is_exact() && new.is_exact() => {
                Estimate::exact(old.median, new.median, options)
            }
            _ => Estimate::of(samples(old), samples(new), options),
        };
        let mut advice = Vec::new();
        if let Some(obstacle) = obstacle(&old_side, &new_side, &differences) {
            estimate.verdict = Verdict::CannotTell;
            estimate.reason = Some(obstacle);
        } else if estimate.verdict == Verdict::CannotTell {
            let of = |row: &Row, when: &str| -> Vec<String> {
                row.advice.iter().map(|text| format!("{when}: {text}")).collect()
            };
            advice = [of(old, "before"), of(new, "now")].concat();
        }
        Self {
            key: RowKey::of(new),
            regression: estimate.verdict == Verdict::Slower || old_side.has_run() && new_side.is_bad(),
            differences,
            old: old_side,
            new: new_side,
            ratio: estimate.ratio,
            interval: estimate.interval,
            verdict: estimate.verdict,
            reason: estimate.reason,
            advice,
        }
    }
}

/// Why the times of two rows cannot be compared, whatever they are.
fn obstacle(old: &Side, new: &Side, differences: &[Difference]) -> Option<String> {
    let forbidding = || {
        let difference = differences.iter().find(|difference| difference.forbids_verdict)?;
        Some(difference.to_string())
    };
    let differ = || (old.is_count() != new.is_count()).then(|| "a count and a time".to_owned());
    new.obstacle("now").or_else(|| old.obstacle("before")).or_else(differ).or_else(forbidding)
}
