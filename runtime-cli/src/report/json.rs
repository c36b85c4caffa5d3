//! The JSON report, version 1.

use runtime_core::{Measurement, Mismatch, Options, Statistics, Validation};
use serde_json::{Value, json};

use super::{KernelIdentity, Outcome, ResourceUsage, Row, describe};

/// The document up to its first row.
pub(super) fn head(options: &Options) -> String {
    let document = json!({
        "schema": "runtime.evaluation",
        "version": 1,
        "runtime": describe::program(),
        "device_options": describe::options(options),
    });
    let text = format!("{document:#}");
    let open = text.strip_suffix("\n}").unwrap_or(&text);
    format!("{open},\n  \"rows\": [")
}

/// A row with its separator from the row before.
pub(super) fn row_text(row: &Row, is_first: bool) -> String {
    // Strings in JSON contain no raw line breaks, so this changes the indentation only.
    let text = format!("{:#}", self::row(row)).replace('\n', "\n    ");
    format!("{}\n    {text}", if is_first { "" } else { "," })
}

/// The document after its last row; `complete` is false if rows are missing.
pub(super) fn tail(complete: bool) -> String {
    format!("\n  ],\n  \"complete\": {complete}\n}}\n")
}

fn row(row: &Row) -> Value {
    let error_kind = match &row.outcome {
        Outcome::NotRun(error) | Outcome::Failed(error) => Some(error.kind().to_string()),
        Outcome::Measured(_) => None,
    };
    json!({
        "spec": row.spec,
        "kernel": kernel(&row.kernel),
        "device": row.device,
        "device_info": row.info.as_ref().map(describe::device),
        "code": row.usage.as_ref().map(ResourceUsage::to_json),
        "settings": row.settings.to_json(),
        "status": row.outcome.status(),
        "reason": row.outcome.reason(),
        "error_kind": error_kind,
        "validation": row.outcome.measurement().map(|measurement| validation(&measurement.validation, &row.names)),
        "measurement": row.outcome.measurement().map(measurement),
    })
}

fn kernel(kernel: &KernelIdentity) -> Value {
    json!({
        "name": kernel.name,
        "path": kernel.path,
        "entry": kernel.entry,
        "format": kernel.format,
        "options": describe::options(&kernel.options),
    })
}

fn validation(validation: &Validation, names: &[String]) -> Value {
    match validation {
        Validation::Passed(agreement) => {
            json!({ "elements": agreement.elements, "max_absolute_error": agreement.max_absolute_error })
        }
        Validation::Failed(mismatch) => self::mismatch(mismatch, names),
        Validation::Skipped { .. } => Value::Null,
    }
}

fn mismatch(mismatch: &Mismatch, names: &[String]) -> Value {
    json!({
        "argument": mismatch.arg,
        "name": names.get(mismatch.arg),
        "elements": mismatch.elements,
        "wrong": mismatch.wrong,
        "unwritten": mismatch.unwritten,
        "worst_index": mismatch.index,
        "actual": mismatch.actual,
        "expected": mismatch.expected,
        "absolute_error": mismatch.absolute_error,
        "relative_error": mismatch.relative_error,
    })
}

fn measurement(measurement: &Measurement) -> Value {
    let transfer = measurement.transfer.as_ref().map(|transfer| {
        json!({
            "bytes_in": transfer.bytes_in,
            "bytes_out": transfer.bytes_out,
            "samples_ns": transfer.samples_ns,
            "statistics": statistics(&transfer.statistics),
        })
    });
    json!({
        "clock": measurement.clock.name(),
        "cold": measurement.cold,
        "repeat": measurement.repeat,
        "number": measurement.number,
        "calls": measurement.calls,
        "samples_ns": measurement.samples_ns,
        "statistics": statistics(&measurement.statistics),
        "overhead_ns": measurement.overhead_ns,
        "transfer": transfer,
        "flops": measurement.cost.flops,
        "bytes": measurement.cost.bytes,
        "gflops_per_s": measurement.gflops_per_s(),
        "gbytes_per_s": measurement.gbytes_per_s(),
    })
}

fn statistics(statistics: &Statistics) -> Value {
    json!({
        "min_ns": statistics.min_ns,
        "median_ns": statistics.median_ns,
        "mean_ns": statistics.mean_ns,
        "max_ns": statistics.max_ns,
        "stddev_ns": statistics.stddev_ns,
        "p5_ns": statistics.p5_ns,
        "p95_ns": statistics.p95_ns,
        "median_ci95_ns": statistics.median_ci95_ns,
        "outliers": statistics.outliers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_any_length_is_a_valid_document() {
        let head = head(&Options::new().with("a", "}"));
        let row = |index: usize| format!("{}\n    {{}}", if index == 0 { "" } else { "," });
        for rows in 0..3 {
            let text = format!("{head}{}{}", (0..rows).map(row).collect::<String>(), tail(rows == 2));
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["rows"].as_array().unwrap().len(), rows);
            assert_eq!(document["complete"], json!(rows == 2));
            assert_eq!(document["device_options"]["a"], json!("}"));
        }
    }
}
