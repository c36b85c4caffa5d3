//! The table of `runtime eval`, with what is wrong below it.

use std::fmt::Write;

use runtime_core::{Measurement, Validation};

use super::figure::{duration, significant, uncertainty};
use super::{Code, Outcome, Report, Row};
use crate::table::Table;

const HEADER: [&str; 9] =
    ["kernel", "device", "status", "median", "min", "GFLOP/s", "GB/s", "clock", "calls"];

/// One row per kernel and device, and notes.
pub(crate) fn table(report: &Report) -> String {
    let mut table = Table::new(&HEADER);
    let mut notes = String::new();
    for row in &report.rows {
        table.row(cells(row));
        if let Some(note) = note(row) {
            let _ = writeln!(notes, "{} on {}: {note}", row.kernel.name, row.device);
        }
    }
    match notes.is_empty() {
        true => table.to_string(),
        false => format!("{table}\n{notes}"),
    }
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.kernel.name.clone(), row.device.clone()];
    match row.outcome.measurement() {
        Some(measurement) => {
            cells.push(status(measurement));
            cells.extend(figures(measurement));
        }
        None => cells.push(match &row.outcome {
            Outcome::NotRun(error) => format!("not run: {}", first_line(error.message())),
            Outcome::Failed(error) => format!("failed: {}", first_line(error.message())),
            Outcome::Measured(_) => String::new(),
        }),
    }
    cells.resize(HEADER.len(), "—".to_owned());
    cells
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn status(measurement: &Measurement) -> String {
    match &measurement.validation {
        Validation::Passed(agreement) if agreement.max_absolute_error == 0.0 => "right (exact)".to_owned(),
        Validation::Passed(agreement) => format!("right (error {:.1e})", agreement.max_absolute_error),
        Validation::Failed(mismatch) => format!("wrong ({} of {})", mismatch.wrong, mismatch.elements),
        Validation::Skipped { .. } => "unchecked".to_owned(),
    }
}

fn figures(measurement: &Measurement) -> [String; 6] {
    let statistics = &measurement.statistics;
    let sure =
        statistics.median_ci95_ns.map(|interval| format!(" {}", uncertainty(statistics.median_ns, interval)));
    let rate = |rate: Option<f64>| rate.map_or_else(|| "—".to_owned(), significant);
    [
        format!("{}{}", duration(statistics.median_ns), sure.unwrap_or_default()),
        duration(statistics.min_ns),
        rate(measurement.gflops_per_s()),
        rate(measurement.gbytes_per_s()),
        format!("{}{}", measurement.clock, if measurement.cold { " (cold)" } else { "" }),
        measurement.calls.to_string(),
    ]
}

/// What the row has no room for.
fn note(row: &Row) -> Option<String> {
    let measurement = match &row.outcome {
        Outcome::NotRun(error) | Outcome::Failed(error) => {
            return error.message().contains('\n').then(|| error.to_string());
        }
        Outcome::Measured(measurement) => measurement,
    };
    let mut notes = Vec::new();
    match &measurement.validation {
        Validation::Failed(mismatch) => {
            let name = row.names.get(mismatch.arg).map_or("?", String::as_str);
            notes.push(format!("wrong, \"{name}\": {mismatch}"));
        }
        Validation::Skipped { reason } => notes.push(format!("unchecked: {reason}")),
        Validation::Passed(_) => {}
    }
    if !measurement.is_complete() {
        let taken = measurement.samples_ns.len();
        notes.push(format!("{taken} of {} samples: the budget was spent", measurement.repeat));
    }
    if let Some(transfer) = &measurement.transfer {
        notes.push(format!("{} of it is transfer", duration(transfer.statistics.median_ns)));
    }
    notes.extend(row.code.as_ref().and_then(Code::note));
    (!notes.is_empty()).then(|| notes.join("; "))
}
