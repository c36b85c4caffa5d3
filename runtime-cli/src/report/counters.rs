//! Notes below a row about counters and energy per call, and about traces.

use std::fmt::Write;

use runtime_harness::Row;
use runtime_harness::number_format::{duration, significant};
use runtime_harness::row::{CounterValue, Energy};

/// The counters, the energy and the traces of a row, if it has any.
pub(super) fn note(row: &Row) -> Option<String> {
    let notes = counters(&row.counters).into_iter().chain(row.energy.as_ref().map(energy));
    let notes: Vec<String> = notes.chain(traces(&row.traces)).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Counters with a value first, then those without one.
fn counters(counters: &[CounterValue]) -> Option<String> {
    let values: Vec<String> =
        counters.iter().filter_map(|counter| Some(value(counter, counter.value?))).collect();
    let passes = counters.iter().map(|counter| counter.passes).max()?;
    let mut text = String::new();
    if !values.is_empty() {
        let _ = match passes {
            0 | 1 => write!(text, "per call: {}", values.join(", ")),
            _ => write!(text, "per call, in {passes} passes: {}", values.join(", ")),
        };
    }
    let named = counters.iter().map(|counter| (&*counter.name, counter.reason.as_deref()));
    for (reason, names) in by_reason(named) {
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}no {}: {reason}", names.join(", "));
    }
    Some(text)
}

/// Each reason, with the names that have it.
pub(crate) fn by_reason<'a>(
    all: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in all {
        let Some(reason) = reason else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons
}

fn value(counter: &CounterValue, value: f64) -> String {
    let mut text = format!("{} {}", counter.name, significant(value));
    if let Some(unit) = &counter.unit {
        let _ = write!(text, " {unit}");
    }
    if let Some(time_ns) = counter.time_ns {
        let _ = write!(text, " = {}", duration(time_ns));
    }
    if let (Some(min), Some(max)) = (counter.min, counter.max)
        && min < max
    {
        let repeats = counter.samples.len();
        let _ = write!(text, " ({} to {} in {repeats} repeats)", significant(min), significant(max));
    }
    if let Some(share) = counter.counted_share {
        let _ = write!(text, " (extrapolated from {:.0}% of the time)", share * 100.0);
    }
    text
}

fn traces(traces: &[String]) -> Option<String> {
    (!traces.is_empty()).then(|| format!("traces: {}", traces.join(", ")))
}

fn energy(energy: &Energy) -> String {
    match (energy.microjoules_per_call, energy.resolution_microjoules) {
        (Some(per_call), Some(resolution)) => format!(
            "{} µJ per call (in {} calls, resolution {resolution} µJ)",
            significant(per_call),
            energy.calls
        ),
        _ => format!("no energy: {}", energy.reason.as_deref().unwrap_or("unknown")),
    }
}
