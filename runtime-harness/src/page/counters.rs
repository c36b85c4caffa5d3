//! Counters and energy per call, which are measured in runs of their own.

use super::tables::Table;
use crate::number_format::{duration, significant};
use crate::row::{CounterValue, Energy, Row};

/// A line for each counter, and one for the energy; empty if no row has any.
pub(super) fn table_of(rows: &[Row]) -> String {
    let mut table = Table::new(&["kernel", "device", "what", "per call", "how"]);
    let mut line = |row: &Row, what: &str, value: &str, remark: &str| {
        table.row(&[&row.kernel.name, &row.device, what, value, remark]);
    };
    for row in rows {
        for counter in &row.counters {
            line(row, &counter.name, &value(counter), &remark(counter));
        }
        if let Some(energy) = &row.energy {
            let value = energy.microjoules_per_call;
            let value = value.map_or_else(|| "—".to_owned(), |value| format!("{} µJ", significant(value)));
            line(row, "energy", &value, &energy_remark(energy));
        }
    }
    table.text()
}

fn value(counter: &CounterValue) -> String {
    match (counter.value, &counter.unit) {
        (Some(value), Some(unit)) => format!("{} {unit}", significant(value)),
        (Some(value), None) => significant(value),
        (None, _) => "—".to_owned(),
    }
}

/// How it was counted, or why there is no value.
fn remark(counter: &CounterValue) -> String {
    if let (None, Some(reason)) = (counter.value, &counter.reason) {
        return reason.clone();
    }
    let passes = if counter.passes > 1 { format!(", {} passes", counter.passes) } else { String::new() };
    let share = counter.counted_share.map(|share| 100.0 * share);
    let share = share.map(|percent| format!(", extrapolated from {percent:.0}% of the time"));
    let spread = counter.min.zip(counter.max).filter(|(min, max)| min < max);
    let spread = spread.map(|(min, max)| {
        format!(", {} to {} in {} repeats", significant(min), significant(max), counter.samples.len())
    });
    let time = counter.time_ns.map(|time_ns| format!(", {}", duration(time_ns)));
    let rest: String = [time, spread, share].into_iter().flatten().collect();
    format!("{} calls{passes}{rest}", counter.calls)
}

fn energy_remark(energy: &Energy) -> String {
    match (energy.microjoules_per_call, energy.resolution_microjoules) {
        (Some(_), Some(resolution)) => format!("{} calls, resolution {resolution} µJ", energy.calls),
        _ => energy.reason.clone().unwrap_or_default(),
    }
}
