//! The tables of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use runtime_core::evaluate::{Measurement, Validation};
use serde_json::Value;

use super::escape::escaped;
use crate::number_format::{count, duration, significant, uncertainty};
use crate::peak::{Figure, Peak, Subject};
use crate::report::Report;
use crate::row::{ArgumentPlacement, Counts, ResourceUsage, Roofline, Row, headline};

/// A cell with its class; the content is escaped.
pub(super) fn cell(text: &mut String, class: &str, content: &str) {
    let _ = write!(text, "<td class=\"{class}\">{}</td>", escaped(content));
}

/// Columns of numbers, whose headers are aligned like them.
const NUMBERS: [&str; 7] = ["median", "min", "GFLOP/s", "GB/s", "samples × calls", "best", "per call"];

pub(super) fn table(header: &[&str], rows: &str) -> String {
    let class = |name: &str| if NUMBERS.contains(&name) { "number" } else { "" };
    let cell = |name: &&str| format!("<th class=\"{}\">{}</th>", class(name), escaped(name));
    let header: String = header.iter().map(cell).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn with_uncertainty(text: String, median: f64, interval: Option<[f64; 2]>) -> String {
    match interval.filter(|_| median > 0.0) {
        Some(interval) => format!("{text} {}", uncertainty(median, interval)),
        None => text,
    }
}

pub(super) fn results(rows: &[Row]) -> String {
    let header = [
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
    ];
    let mut text = String::new();
    for row in rows {
        text.push_str("<tr>");
        cell(&mut text, "", &row.kernel.name);
        cell(&mut text, "", &row.device);
        cell(&mut text, &format!("status {}", row.status.name()), &row.status.name().replace('_', " "));
        match (&row.measurement, &row.counts) {
            (Some(measurement), _) => figures(&mut text, row, measurement),
            (None, Some(counts)) => counted(&mut text, counts),
            (None, None) => {
                // Notes below the table have the rest.
                let first = headline(row.reason.as_deref().unwrap_or_default());
                let _ = write!(text, "<td colspan=\"7\">{}</td>", escaped(&first));
            }
        }
        text.push_str("</tr>\n");
    }
    table(&header, &text)
}

fn figures(text: &mut String, row: &Row, measurement: &Measurement) {
    let statistics = &measurement.statistics;
    let rate = |rate: Option<f64>| rate.map_or_else(|| "—".to_owned(), significant);
    let median = duration(statistics.median_ns);
    cell(text, "number", &with_uncertainty(median, statistics.median_ns, statistics.median_ci95_ns));
    cell(text, "number", &duration(statistics.min_ns));
    cell(text, "number", &rate(measurement.gflops_per_s()));
    cell(text, "number", &rate(measurement.gbytes_per_s()));
    cell(text, "", &row.roofline.as_ref().map_or_else(|| "—".to_owned(), Roofline::text));
    cell(text, "clock", &format!("{}{}", measurement.clock, if measurement.cold { " (cold)" } else { "" }));
    cell(text, "number", &format!("{} × {}", measurement.samples_ns.len(), measurement.number));
}

/// The figures of a device that counts, without a unit of time.
fn counted(text: &mut String, counts: &Counts) {
    cell(text, "number", &count(counts.median));
    cell(text, "number", &count(counts.min));
    for class in ["number", "number", ""] {
        cell(text, class, "—");
    }
    cell(text, "clock", &counts.clock);
    cell(text, "number", &format!("{} × {}", counts.samples.len(), counts.number));
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
        notes.extend(row.advice.iter().cloned());
        if !notes.is_empty() {
            let place = escaped(&format!("{} on {}", row.kernel.name, row.device));
            let _ = writeln!(
                text,
                "<details open><summary>{place}</summary><pre>{}</pre></details>",
                escaped(&notes.join("\n"))
            );
        }
    }
    text
}

pub(super) fn validation(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let Some(validation) = &row.validation else { continue };
        text.push_str("<tr>");
        cell(&mut text, "", &row.kernel.name);
        cell(&mut text, "", &row.device);
        cell(&mut text, &format!("status {}", row.status.name()), row.status.name());
        let found = match validation {
            Validation::Passed(agreement) => {
                format!(
                    "{} elements, largest absolute error {:e}",
                    agreement.elements, agreement.max_absolute_error
                )
            }
            Validation::Failed(mismatch) => format!(
                "{} of {} elements of \"{}\" are wrong, {} of them never written; worst at {:?}: {} instead of {}",
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
        cell(&mut text, "", &found);
        text.push_str("</tr>\n");
    }
    if text.is_empty() {
        text
    } else {
        table(&["kernel", "device", "status", "compared with the reference"], &text)
    }
}

pub(super) fn peaks(peaks: &BTreeMap<Subject, Peak>) -> String {
    let mut text = String::new();
    let mut line = |device: &str, what: &str, figure: &Figure, unit: &str| {
        text.push_str("<tr>");
        cell(&mut text, "", device);
        cell(&mut text, "", what);
        cell(&mut text, "number", &format!("{} {unit}", significant(figure.best)));
        cell(
            &mut text,
            "number",
            &with_uncertainty(format!("{} {unit}", significant(figure.median)), figure.median, figure.ci95),
        );
        cell(&mut text, "", &figure.clock);
        text.push_str("</tr>\n");
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
    if text.is_empty() { text } else { table(&["device", "what", "best", "median", "clock"], &text) }
}

/// The program and each device with all that is known of it.
pub(super) fn machine(report: &Report) -> String {
    let program = &report.runtime;
    let mut text = format!(
        "<p>runtime {} (backend ABI {}) on {} {}</p>\n",
        escaped(&program.version),
        escaped(&program.abi),
        escaped(&program.os),
        escaped(&program.architecture)
    );
    if !report.device_options.is_empty() {
        let options = Value::Object(report.device_options.clone());
        let _ = writeln!(text, "<p>Devices were opened with {}</p>", escaped(&options.to_string()));
    }
    let mut rows = String::new();
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
        rows.push_str("<tr>");
        cell(&mut rows, "", &row.device);
        for key in ["name", "arch", "driver_version", "compute_units", "uuid", "pci_address"] {
            cell(&mut rows, "", &value(key));
        }
        rows.push_str("</tr>\n");
        let _ = writeln!(
            details,
            "<details><summary>everything about {}</summary><pre>{}</pre></details>",
            escaped(&row.device),
            escaped(&format!("{info:#}"))
        );
    }
    text + &table(&["device", "name", "architecture", "driver", "units", "UUID", "PCI address"], &rows)
        + &details
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
    let mut kernels = String::new();
    for row in rows {
        kernels.push_str("<tr>");
        let options = Value::Object(row.kernel.options.clone());
        let options = if row.kernel.options.is_empty() { "—".to_owned() } else { options.to_string() };
        let parameters: Vec<String> =
            row.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for content in [
            &row.kernel.name,
            &row.spec,
            &row.kernel.path,
            &row.kernel.entry,
            &row.kernel.format,
            &options,
            &parameters.join(" "),
        ] {
            cell(&mut kernels, "", content);
        }
        kernels.push_str("</tr>\n");
    }
    text + &table(&["kernel", "spec", "code", "entry", "format", "options", "parameters"], &kernels)
}

/// Whom the settings are of: a count, and the first names.
fn who(rows: &[&Row]) -> String {
    const NAMED: usize = 3;
    let names: Vec<String> =
        rows.iter().take(NAMED).map(|row| format!("{} on {}", row.kernel.name, row.device)).collect();
    let more = if rows.len() > NAMED { format!(", and {} more", rows.len() - NAMED) } else { String::new() };
    format!("{}{more}", names.join(", "))
}
