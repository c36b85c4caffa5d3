//! The tables of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use runtime_core::evaluate::{Measurement, Validation};
use serde_json::Value;

use super::escape::escaped;
use crate::commit::Commit;
use crate::number_format::{count, duration, significant, uncertainty};
use crate::peak::{Figure, Peak, Subject};
use crate::report::Report;
use crate::row::{ArgumentPlacement, Counts, KernelIdentity, ResourceUsage, Roofline, Row, headline};

/// Columns of numbers.
const NUMBERS: [&str; 7] = ["median", "min", "GFLOP/s", "GB/s", "samples × calls", "best", "per call"];

/// A table of a page.
pub(super) struct Table {
    header: &'static [&'static str],
    rows: String,
}

impl Table {
    pub(super) const fn new(header: &'static [&'static str]) -> Self {
        Self { header, rows: String::new() }
    }

    /// Adds a row. If it has fewer cells than the header, its last cell takes up the rest.
    pub(super) fn row(&mut self, cells: &[&str]) {
        self.rows.push_str("<tr>");
        for (at, (name, cell)) in self.header.iter().zip(cells).enumerate() {
            let attribute = match self.header.len() - at {
                left if left > 1 && at + 1 == cells.len() => format!("colspan=\"{left}\""),
                _ if *name == "status" => format!("class=\"status {}\"", cell.replace(' ', "_")),
                _ if *name == "clock" => "class=\"clock\"".to_owned(),
                _ => format!("class=\"{}\"", alignment(name)),
            };
            let _ = write!(self.rows, "<td {attribute}>{}</td>", escaped(cell));
        }
        self.rows.push_str("</tr>\n");
    }

    /// The table; empty if it has no rows.
    pub(super) fn text(self) -> String {
        let Self { header, rows } = self;
        let cell = |name: &&str| format!("<th class=\"{}\">{}</th>", alignment(name), escaped(name));
        let header: String = header.iter().map(cell).collect();
        match rows.is_empty() {
            true => rows,
            false => format!(
                "<div class=\"wide\"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
            ),
        }
    }
}

fn alignment(column: &str) -> &'static str {
    if NUMBERS.contains(&column) { "number" } else { "" }
}

fn with_uncertainty(text: String, median: f64, interval: Option<[f64; 2]>) -> String {
    match interval.filter(|_| median > 0.0) {
        Some(interval) => format!("{text} {}", uncertainty(median, interval)),
        None => text,
    }
}

pub(super) fn results(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "kernel",
        "device",
        "status",
        "median",
        "min",
        "GFLOP/s",
        "GB/s",
        "share of its limit",
        "clock",
        "samples × calls",
    ]);
    for row in rows {
        let figures = match (&row.measurement, &row.counts) {
            (Some(measurement), _) => figures(row, measurement).to_vec(),
            (None, Some(counts)) => counted(counts).to_vec(),
            // Notes below the table have the rest.
            (None, None) => vec![headline(row.reason.as_deref().unwrap_or_default())],
        };
        let status = row.status.name().replace('_', " ");
        let named = [&row.kernel.name, &row.device, &status].into_iter();
        table.row(&named.chain(&figures).map(String::as_str).collect::<Vec<_>>());
    }
    table.text()
}

fn figures(row: &Row, measurement: &Measurement) -> [String; 7] {
    let statistics = &measurement.statistics;
    let rate = |rate: Option<f64>| rate.map_or_else(|| "—".to_owned(), significant);
    [
        with_uncertainty(duration(statistics.median_ns), statistics.median_ns, statistics.median_ci95_ns),
        duration(statistics.min_ns),
        rate(measurement.gflops_per_s()),
        rate(measurement.gbytes_per_s()),
        row.roofline.as_ref().map_or_else(|| "—".to_owned(), Roofline::text),
        format!("{}{}", measurement.clock, if measurement.cold { " (cold)" } else { "" }),
        format!("{} × {}", measurement.samples_ns.len(), measurement.number),
    ]
}

/// The figures of a device that counts, without a unit of time.
fn counted(counts: &Counts) -> [String; 7] {
    let none = || "—".to_owned();
    let samples = format!("{} × {}", counts.samples.len(), counts.number);
    [count(counts.median), count(counts.min), none(), none(), none(), counts.clock.clone(), samples]
}

/// Reasons in full, and what else a reader should know of a row.
pub(super) fn notes(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut notes: Vec<String> = row.reason.iter().cloned().collect();
        if let Some(measurement) = &row.measurement {
            if !measurement.is_complete() {
                notes.push(format!(
                    "{} of {} samples: the budget was spent",
                    measurement.samples_ns.len(),
                    measurement.repeat
                ));
            }
            if let Some(transfer) = &measurement.transfer {
                notes.push(format!("{} of it is transfer", duration(transfer.statistics.median_ns)));
            }
        }
        notes.extend(ArgumentPlacement::note(&row.arguments));
        notes.extend(row.counts.as_deref().map(Counts::note));
        notes.extend(row.code.as_ref().and_then(ResourceUsage::note));
        notes.extend(row.traces.iter().map(|path| format!("trace: {path}")));
        notes.extend(row.command.iter().map(|command| format!("to repeat it: {command}")));
        notes.extend(row.advice.iter().cloned());
        if !notes.is_empty() {
            let heading = escaped(&format!("{} on {}", row.kernel.name, row.device));
            let _ = writeln!(
                text,
                "<details open><summary>{heading}</summary><pre>{}</pre></details>",
                escaped(&notes.join("\n"))
            );
        }
    }
    text
}

pub(super) fn validation(rows: &[Row]) -> String {
    let mut table = Table::new(&["kernel", "device", "status", "compared with the reference"]);
    for row in rows {
        let Some(validation) = &row.validation else { continue };
        let found = match validation {
            Validation::Passed(agreement) => {
                let ulp = agreement.max_ulp.map_or_else(String::new, |ulp| format!(", {ulp} ulp"));
                format!(
                    "{} elements, largest absolute error {:e}{ulp}",
                    agreement.elements, agreement.max_absolute_error
                )
            }
            Validation::Failed(mismatch) => format!(
                "{}{} of {} elements of \"{}\" are wrong, {} of them never written; worst at {:?}: {} instead of {}",
                mismatch.after_calls.map_or_else(String::new, |calls| format!("after {calls} calls, ")),
                mismatch.wrong,
                mismatch.elements,
                mismatch.name.as_deref().unwrap_or("?"),
                mismatch.unwritten,
                mismatch.index,
                mismatch.actual,
                mismatch.expected
            ),
            Validation::Skipped { reason } => reason.clone(),
        };
        table.row(&[&row.kernel.name, &row.device, row.status.name(), &found]);
    }
    table.text()
}

pub(super) fn peaks(peaks: &BTreeMap<Subject, Peak>) -> String {
    let mut table = Table::new(&["device", "what", "best", "median", "clock"]);
    let mut line = |device: &str, what: &str, figure: &Figure, unit: &str| {
        let best = format!("{} {unit}", significant(figure.best));
        let median = format!("{} {unit}", significant(figure.median));
        let median = with_uncertainty(median, figure.median, figure.ci95);
        table.row(&[device, what, &best, &median, &figure.clock]);
    };
    for (subject, peak) in peaks {
        let device = &subject.device;
        // Devices of several machines may have the same device string.
        let is_unique = peaks.keys().filter(|other| other.device == *device).count() == 1;
        let device = match is_unique {
            true => device.clone(),
            false => format!("{device} ({}, {})", subject.name, subject.identity),
        };
        let device = &*device;
        for it in &peak.compute {
            line(
                device,
                &format!("{} ({} units, {})", it.dtype, it.unit.name(), it.format),
                &it.gflops_per_s,
                "GFLOP/s",
            );
        }
        for it in &peak.memory {
            for (how, figure) in [
                ("read", &it.read_gbytes_per_s),
                ("copy", &it.copy_gbytes_per_s),
                ("triad", &it.triad_gbytes_per_s),
            ] {
                if let Some(figure) = figure {
                    line(device, &format!("{}: {how}", it.name), figure, "GB/s");
                }
            }
        }
    }
    table.text()
}

/// The program and each device with all that is known of it.
pub(super) fn machine(report: &Report) -> String {
    let program = &report.runtime;
    let mut text = format!(
        "<p>runtime {}, backend ABI {}, on {} {}</p>\n",
        escaped(&program.text()),
        escaped(&program.abi),
        escaped(&program.os),
        escaped(&program.architecture)
    );
    if let Some(sandbox) = report.origin.as_ref().and_then(|origin| origin.sandbox) {
        let _ = writeln!(text, "<p>Sandbox: {}</p>", sandbox.name().replace('_', " "));
    }
    if !report.device_options.is_empty() {
        let options = Value::Object(report.device_options.clone());
        let _ = writeln!(text, "<p>Devices were opened with {}</p>", escaped(&options.to_string()));
    }
    let mut table = Table::new(&["device", "name", "architecture", "driver", "units", "UUID", "PCI address"]);
    let mut details = String::new();
    let mut known: BTreeSet<(&str, Option<Subject>)> = BTreeSet::new();
    for row in &report.rows {
        let Some(info) = &row.device_info else { continue };
        if !known.insert((&row.device, Subject::of(info))) {
            continue;
        }
        let value = |key: &str| match &info[key] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => "—".to_owned(),
        };
        let keys = ["name", "arch", "driver_version", "compute_units", "uuid", "pci_address"];
        let cells: Vec<String> = std::iter::once(row.device.clone()).chain(keys.map(value)).collect();
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
        let _ = writeln!(
            details,
            "<details><summary>everything about {}</summary><pre>{}</pre></details>",
            escaped(&row.device),
            escaped(&format!("{info:#}"))
        );
    }
    text + &table.text() + &details
}

/// The settings of each row; rows with the same ones are together.
pub(super) fn settings(rows: &[Row]) -> String {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let settings = serde_json::to_string_pretty(&row.settings).unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == settings) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((settings, vec![row])),
        }
    }
    let mut text = String::new();
    for (settings, rows) in &groups {
        let _ = writeln!(
            text,
            "<details open><summary>{}</summary><pre>{}</pre></details>",
            escaped(&who(rows)),
            escaped(settings)
        );
    }
    let mut table = Table::new(&[
        "kernel",
        "spec",
        "code",
        "entry",
        "format",
        "options",
        "parameters",
        "made",
        "commit",
        "SHA-256 of the code",
        "inputs",
    ]);
    for row in rows {
        let options = Value::Object(row.kernel.options.clone());
        let options = if row.kernel.options.is_empty() { "—".to_owned() } else { options.to_string() };
        let parameters: Vec<String> =
            row.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let KernelIdentity { name, path, entry, format, .. } = &row.kernel;
        let of_kernel =
            [name, &row.spec, path, entry, format, &options, &parameters.join(" ")].map(Clone::clone);
        let made = [
            row.time.clone(),
            row.commit.as_ref().map(Commit::to_string),
            row.code_sha256.clone(),
            row.judged.as_ref().map(|judged| judged.inputs.name().to_owned()),
        ];
        let made = made.map(|value| value.unwrap_or_else(|| "—".to_owned()));
        table.row(&of_kernel.iter().chain(&made).map(String::as_str).collect::<Vec<_>>());
    }
    text + &table.text()
}

/// The first few rows with the same settings, and how many more there are.
fn who(rows: &[&Row]) -> String {
    const NAMED: usize = 3;
    let names: Vec<String> =
        rows.iter().take(NAMED).map(|row| format!("{} on {}", row.kernel.name, row.device)).collect();
    let more = if rows.len() > NAMED { format!(", and {} more", rows.len() - NAMED) } else { String::new() };
    format!("{}{more}", names.join(", "))
}
