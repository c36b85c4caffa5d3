//! Advice about a result that is spoiled: the cause, and what to do. A good result gets none.

mod causes;

use causes::{Cause, causes};
use runtime_core::evaluate::Measurement;

use crate::row::{Defect, Noise};
use crate::settings::EffectiveSettings;

/// The uncertainty of the median from which on a result is spoiled, unless `--until` asks for more.
pub(super) const WIDE: f64 = 0.05;
/// The share of the processors that other processes use from which on a time of the host is spoiled.
pub(super) const CROWDED: f64 = 0.1;

/// A measurement and what is known of its circumstances.
pub(crate) struct Evidence<'a> {
    pub(crate) settings: &'a EffectiveSettings,
    pub(crate) measurement: &'a Measurement,
    pub(crate) noise: &'a Noise,
    /// Whether the kernel ran on the host.
    pub(crate) on_host: bool,
}

/// One or two sentences for each thing that spoils the result, the gravest first.
pub(crate) fn advice(evidence: &Evidence<'_>) -> Vec<String> {
    let wide = wide_interval(evidence);
    let crowded = if wide.is_none() { crowded_host(evidence) } else { None };
    [incomplete(evidence), throttled(evidence), wide, unsteady(evidence), crowded]
        .into_iter()
        .flatten()
        .collect()
}

/// A share in percent, with enough digits.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share.abs();
    match percent {
        ..0.095 => format!("{percent:.3}%"),
        ..9.95 => format!("{percent:.1}%"),
        _ => format!("{percent:.0}%"),
    }
}

fn incomplete(evidence: &Evidence<'_>) -> Option<String> {
    let Evidence { settings, measurement, .. } = evidence;
    let taken = measurement.samples_ns.len();
    (taken < measurement.repeat).then(|| {
        format!(
            "{taken} of {} samples: the budget was spent; raise --budget-s, which is {}",
            measurement.repeat, settings.budget_s
        )
    })
}

fn throttled(evidence: &Evidence<'_>) -> Option<String> {
    let throttled = evidence.measurement.throttled.filter(|throttled| throttled.kept > 0)?;
    let reasons = evidence.noise.device.throttle_reasons.as_deref().unwrap_or_default().join(", ");
    Some(format!(
        "the device throttled during {} of {} samples ({reasons}), although {} were measured again; cool it better, or pause \
         with --cooldown-ms",
        throttled.kept,
        evidence.measurement.samples_ns.len(),
        throttled.remeasured
    ))
}

fn wide_interval(evidence: &Evidence<'_>) -> Option<String> {
    let Evidence { settings, measurement, .. } = evidence;
    let goal = settings.until_percent.map(|percent| percent / 100.0);
    let uncertainty = measurement.statistics.median_uncertainty()?;
    let is_wide = match (goal, measurement.reached_until) {
        (Some(_), Some(reached)) => !reached,
        _ => uncertainty > WIDE,
    };
    if !is_wide {
        return None;
    }
    let asked = goal.map(|goal| format!(" instead of ±{}", percent(goal))).unwrap_or_default();
    let found = causes(evidence);
    let more = match goal {
        Some(_) => format!("or raise --budget-s, which is {}", settings.budget_s),
        None => format!("or use --until {}%", 1),
    };
    let explained = match found.first() {
        Some(Cause { text, remedy, .. }) => {
            let second = found.get(1).filter(|second| second.share >= found[0].share / 2.0);
            let also = second.map(|second| format!(", and {}", second.text)).unwrap_or_default();
            format!("{text}{also}; {remedy}, {more}")
        }
        None => format!("nothing else is known; run again, {more}"),
    };
    Some(format!("the median's interval is ±{}{asked}: {explained}", percent(uncertainty)))
}

fn unsteady(evidence: &Evidence<'_>) -> Option<String> {
    let count = evidence.measurement.samples_ns.len();
    let known = |fallback: &str| {
        causes(evidence).first().map_or_else(|| fallback.to_owned(), |cause| cause.text.clone())
    };
    match evidence.noise.defect? {
        // Without a warm-up this is what was asked for.
        Defect::FirstPart { .. } if evidence.measurement.cold => None,
        Defect::FirstPart { samples, ratio } if ratio > 1.0 => Some(format!(
            "the first {samples} of {count} samples are {} longer than the rest: it was not warm yet; warm up with more calls \
             (--warmup)",
            percent(ratio - 1.0)
        )),
        Defect::FirstPart { samples, ratio } => Some(format!(
            "the first {samples} of {count} samples are {} shorter than the rest: {}; pause between samples (--cooldown-ms), or \
             run again",
            percent(1.0 - ratio),
            known("the clock went down, or other work began")
        )),
        Defect::Drift { change } => Some(format!(
            "the times {} by {} from the first sample to the last: {}; warm up with more calls (--warmup), pause between samples \
             (--cooldown-ms), or run again",
            if change > 0.0 { "rise" } else { "fall" },
            percent(change),
            known("the clock or other work changes")
        )),
        Defect::TwoModes { low_ns, high_ns, high_share } => Some(format!(
            "there are two kinds of samples: {} of them are {} longer than the others: {}; look at samples_ns in the JSON, and do \
             not trust the median",
            percent(high_share),
            percent(high_ns / low_ns - 1.0),
            known("the clock, the placement of memory or of threads changes")
        )),
    }
}

fn crowded_host(evidence: &Evidence<'_>) -> Option<String> {
    let host = &evidence.noise.host;
    let (others, cpus) = (host.others_busy_cpus?, host.affinity.as_ref()?.len());
    (evidence.on_host && others >= CROWDED * cpus as f64).then(|| {
        format!(
            "other processes kept {others:.1} of {cpus} processors busy, which lengthens times of the host; stop them and run again"
        )
    })
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
