//! The table of `runtime eval`, printed line by line, with notes below it.

use std::fmt::Write;

use console::measure_text_width;
use runtime_core::evaluate::{Measurement, Validation};
use runtime_harness::number_format::{count, duration, median, significant};
use runtime_harness::printable::{indented, printable};
use runtime_harness::row::{ArgumentPlacement, Counts, Floor, ResourceUsage, Roofline, headline};
use runtime_harness::{Row, Status};

use super::counters;

pub(super) const HEADER: [&str; 9] =
    ["kernel", "device", "status", "median", "min", "GFLOP/s", "GB/s", "clock", "calls"];
/// Usual widths of the columns from `status` on. Rows are printed as they are measured, so the widest cell is unknown.
const WIDTHS: [usize; 7] = [21, 16, 9, 8, 8, 12, 1];

/// The column widths of a table whose rows are printed one by one, and the notes below it.
#[derive(Debug)]
pub(crate) struct Columns {
    widths: [usize; HEADER.len()],
    /// Width of the terminal; `None` for a pipe.
    terminal: Option<usize>,
    notes: String,
}

impl Columns {
    /// Columns wide enough for these names.
    pub(crate) fn new<'a>(
        kernels: impl Iterator<Item = &'a str>,
        devices: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut widths = HEADER.map(measure_text_width);
        widths[0] = kernels.map(measure_text_width).fold(widths[0], usize::max);
        widths[1] = devices.map(measure_text_width).fold(widths[1], usize::max);
        for (width, usual) in widths[2..].iter_mut().zip(WIDTHS) {
            *width = usual.max(*width);
        }
        let terminal = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        Self { widths, terminal, notes: String::new() }
    }

    /// The header line.
    pub(super) fn header(&self) -> String {
        self.line(&HEADER.map(str::to_owned))
    }

    /// The line of a row. Details that do not fit go to the notes.
    pub(super) fn row(&mut self, row: &Row) -> String {
        let mut note = note(row);
        let mut cells = cells(row);
        // A row without figures ends with its reason.
        if !row.is_measured() && cells.last_mut().is_some_and(|reason| self.shorten(reason)) {
            note = row.reason.clone();
        }
        let heading = format!("{} on {}", printable(&row.kernel.name), printable(&row.device));
        let repeated = row.command.as_ref().map(|command| format!("to repeat it: {command}"));
        for note in note.iter().chain(&repeated).chain(&row.advice) {
            let _ = writeln!(self.notes, "{heading}: {}", indented(note));
        }
        self.line(&cells)
    }

    /// The notes below the table.
    pub(super) fn notes(&self) -> String {
        if self.notes.is_empty() { String::new() } else { format!("\n{}", self.notes) }
    }

    /// Truncates a last cell to the rest of the terminal's line; returns whether it was truncated.
    fn shorten(&self, cell: &mut String) -> bool {
        const MIN_WIDTH: usize = 20;
        let Some(terminal) = self.terminal else { return false };
        let room = terminal.saturating_sub(self.widths[0] + self.widths[1] + 4).max(MIN_WIDTH);
        let is_long = measure_text_width(cell) > room;
        if is_long {
            *cell = console::truncate_str(cell, room, "…").into_owned();
        }
        is_long
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(self.widths) {
            let padding = width.saturating_sub(measure_text_width(cell)) + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

/// The cells of a row; without figures if nothing was timed.
pub(super) fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![printable(&row.kernel.name), printable(&row.device)];
    if let Some(measurement) = &row.measurement {
        cells.push(status(row));
        cells.extend(figures(measurement));
    } else if let Some(counts) = &row.counts {
        cells.push(status(row));
        cells.extend(counted(counts));
    } else {
        let prefix = if row.status == Status::NotRun { "not run" } else { "failed" };
        cells.push(format!("{prefix}: {}", headline(row.reason.as_deref().unwrap_or_default())));
    }
    cells
}

/// Whether its times are not believed, whatever its outputs are.
const fn is_doubted(row: &Row) -> bool {
    matches!(row.status, Status::Inconsistent | Status::Impossible)
}

/// The status of a row that was measured.
pub(crate) fn status(row: &Row) -> String {
    match &row.validation {
        _ if is_doubted(row) => row.status.name().to_owned(),
        Some(Validation::Passed(agreement)) => {
            let error = match agreement.max_absolute_error {
                0.0 => "exact".to_owned(),
                error => format!("error {error:.1e}"),
            };
            let trust = match &row.judged {
                Some(judged) if judged.sandboxed == Some(false) => ", unsandboxed",
                None if row.believed.is_some() => ", believed",
                _ => "",
            };
            format!("right ({error}{trust})")
        }
        Some(Validation::Failed(mismatch)) => match mismatch.after_calls {
            Some(calls) => format!("wrong (after {calls} calls)"),
            None => format!("wrong ({} of {})", mismatch.wrong, mismatch.elements),
        },
        Some(Validation::Skipped { .. }) | None => "unchecked".to_owned(),
    }
}

fn figures(measurement: &Measurement) -> [String; 6] {
    let statistics = &measurement.statistics;
    let rate = |rate: Option<f64>| rate.map_or_else(|| "—".to_owned(), significant);
    [
        median(measurement),
        duration(statistics.min_ns),
        rate(measurement.gflops_per_s()),
        rate(measurement.gbytes_per_s()),
        format!("{}{}", measurement.clock, if measurement.cold { " (cold)" } else { "" }),
        measurement.calls.to_string(),
    ]
}

/// The figures of a device that counts. They have no unit of time; the clock says what they count.
fn counted(counts: &Counts) -> [String; 6] {
    let none = || "—".to_owned();
    [count(counts.median), count(counts.min), none(), none(), counts.clock.clone(), counts.calls.to_string()]
}

/// Details that do not fit into the row.
pub(super) fn note(row: &Row) -> Option<String> {
    let reason = row.reason.as_deref().unwrap_or_default();
    if let Some(counts) = &row.counts {
        let notes: Vec<String> =
            checked(row).into_iter().chain([counts.note()]).chain(counters::note(row)).collect();
        return Some(notes.join("; "));
    }
    let Some(measurement) = &row.measurement else { return reason.contains('\n').then(|| reason.to_owned()) };
    let mut notes: Vec<String> = checked(row).into_iter().collect();
    if let Some(reached) = measurement.reached_until {
        let taken = measurement.samples_ns.len();
        notes.push(format!("{taken} samples{}", if reached { "" } else { ", not as precise as asked for" }));
    }
    if let Some(transfer) = &measurement.transfer {
        notes.push(format!("{} of it is transfer", duration(transfer.statistics.median_ns)));
    }
    notes.extend(ArgumentPlacement::note(&row.arguments));
    notes.extend(row.roofline.as_ref().map(Roofline::text));
    notes.extend(row.floor.as_ref().and_then(Floor::note));
    if let Some(throttled) = measurement.throttled.filter(|throttled| throttled.remeasured > 0) {
        notes.push(format!("{} samples were measured again because of throttling", throttled.remeasured));
    }
    notes.extend(row.package.as_ref().map(|package| package.why.clone()));
    notes.extend(row.code.as_ref().and_then(ResourceUsage::note));
    notes.extend(counters::note(row));
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// What is to be said of the outputs of a row that was measured, or of its times if they are not believed.
fn checked(row: &Row) -> Option<String> {
    let reason = row.reason.as_deref().unwrap_or_default();
    match &row.validation {
        _ if is_doubted(row) => row.reason.clone(),
        Some(Validation::Failed(mismatch)) => {
            Some(format!("wrong, \"{}\": {reason}", mismatch.name.as_deref().unwrap_or("?")))
        }
        Some(Validation::Passed(_)) => None,
        Some(Validation::Skipped { .. }) | None => Some(format!("unchecked: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_the_names() {
        let columns = Columns::new(["scale", "μ"].into_iter(), ["host:0", "opencl:10"].into_iter());
        let cells = ["μ", "host:0", "right (exact)", "1 ns"].map(str::to_owned);
        assert_eq!(columns.line(&cells), "μ       host:0     right (exact)          1 ns\n");
        assert_eq!(columns.header().find("device"), Some(8));
    }

    /// A row of a kernel that was timed, with this status and its reason.
    fn row(status: &str, validation: &serde_json::Value) -> Row {
        let statistics = serde_json::json!({
            "min_ns": 1.0, "median_ns": 1.0, "mean_ns": 1.0, "max_ns": 1.0, "stddev_ns": null, "p5_ns": 1.0, "p95_ns": 1.0,
            "median_ci95_ns": null, "outliers": 0,
        });
        let row = serde_json::json!({
            "spec": "k.toml", "device": "host:0", "device_info": null, "code": null, "status": status, "reason": "why",
            "kernel": { "name": "k", "path": "k.c", "entry": "k", "format": "c", "options": {} },
            "settings": runtime_harness::Settings::default().effective(), "error_kind": null, "outcome": { "kind": "ok" },
            "validation": validation,
            "measurement": {
                "clock": "host_wall", "cold": false, "repeat": 1, "number": 1, "calls": 1, "samples_ns": [1.0],
                "statistics": statistics, "overhead_ns": null, "transfer": null, "flops": 1.0, "bytes": null,
            },
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn times_that_are_not_believed_are_told_before_what_the_outputs_are() {
        let right = serde_json::json!({ "elements": 1, "max_absolute_error": 0.0 });
        for validation in [right, serde_json::Value::Null] {
            for doubt in ["inconsistent", "impossible"] {
                let row = row(doubt, &validation);
                assert_eq!((cells(&row)[2].as_str(), note(&row).as_deref()), (doubt, Some("why")));
            }
            let mut row = row("right", &validation);
            assert!(["right (exact)", "unchecked"].contains(&cells(&row)[2].as_str()));
            row.believed = Some("counters are read".to_owned());
            assert!(["right (exact, believed)", "unchecked"].contains(&cells(&row)[2].as_str()));
        }
    }

    #[test]
    fn no_message_looks_like_another_row() {
        let mut columns = Columns::new(["k"].into_iter(), ["host:0"].into_iter());
        let forged = "other  host:0  right (exact)  1 ns";
        let mut failed = row("failed", &serde_json::Value::Null);
        (failed.measurement, failed.reason) = (None, Some(format!("error\n{forged}\r{forged}\n")));
        failed.advice = vec![format!("advice\n{forged}")];
        failed.kernel.name = format!("k\n{forged}");
        let text = columns.row(&failed) + &columns.notes();
        assert!(text.contains(forged) && !text.contains('\r'), "{text}");
        assert!(text.lines().all(|line| !line.starts_with("other")), "{text}");
    }

    #[test]
    fn long_errors_are_truncated_on_a_narrow_terminal() {
        let columns =
            Columns { terminal: Some(60), ..Columns::new(["k"].into_iter(), ["host:0"].into_iter()) };
        let mut cell = format!("failed: {}", "x".repeat(60));
        assert!(columns.shorten(&mut cell));
        assert_eq!(measure_text_width(&cell), 44);
        assert!(!columns.shorten(&mut cell));
    }
}
