//! The text of `runtime fuse`: a chain on a device, one by one beside fused.

use std::fmt::Write;

use runtime_core::backend::counted;
use runtime_core::evaluate::{Measurement, Validation};
use runtime_harness::Row;
use runtime_harness::number_format::{median, significant};
use runtime_harness::printable::indented;
use runtime_harness::row::{ChainRun, Fusion, TensorCheck, headline};

/// The lines of a row; the first one begins with the links.
pub(super) fn text(row: &Row, is_first: bool) -> String {
    let (Some(fusion), Some(fused)) = (&row.fusion, &row.measurement) else { return failure(row) };
    let mut text = String::new();
    if is_first {
        fusion.links.iter().for_each(|link| line(&mut text, link));
    }
    let of_run = |run: ChainRun| format!("{} on {}", run.text(), row.device);
    for check in &fusion.checks {
        line(&mut text, &format!("{}: {}", of_run(check.run), check_text(check)));
    }
    for tensor in &fusion.promoted {
        line(&mut text, &format!("{}: {tensor} is not written", of_run(ChainRun::Fused)));
    }
    if !fusion.same_bits {
        line(&mut text, &format!("fused and one by one on {} differ in bits", row.device));
    }
    line(&mut text, &fusion.report);
    for (run, kernels, measurement) in [
        (ChainRun::OneByOne, fusion.launches.len(), &fusion.one_by_one),
        (ChainRun::Fused, fusion.kernels.len(), fused),
    ] {
        line(&mut text, &format!("{}: {}", of_run(run), times(kernels, measurement)));
    }
    line(&mut text, &format!("{}: {}", of_run(ChainRun::Fused), speed(fusion)));
    row.advice.iter().for_each(|advice| line(&mut text, &format!("{}: {advice}", row.device)));
    text
}

fn line(text: &mut String, line: &str) {
    let _ = writeln!(text, "{line}");
}

/// The line of a row without figures, and the whole reason if it has several lines.
fn failure(row: &Row) -> String {
    let reason = row.reason.as_deref().unwrap_or_default();
    let how = if row.status == runtime_harness::Status::NotRun { "not run" } else { "failed" };
    let details = if reason.contains('\n') { format!("    {}\n", indented(reason)) } else { String::new() };
    format!("{} on {}: {how}: {}\n{details}", row.kernel.name, row.device, headline(reason))
}

fn check_text(TensorCheck { tensor, validation, reason, .. }: &TensorCheck) -> String {
    let reason = reason.as_deref().unwrap_or_default();
    match validation {
        Some(Validation::Passed(agreement)) => format!(
            "{tensor} right ({}, largest error {:.1e})",
            counted(agreement.elements, "element"),
            agreement.max_absolute_error
        ),
        Some(Validation::Failed(_)) => format!("{tensor} wrong: {reason}"),
        Some(Validation::Skipped { .. }) | None => format!("{tensor} unchecked: {reason}"),
    }
}

fn times(kernels: usize, measurement: &Measurement) -> String {
    let rate = measurement.gbytes_per_s().zip(measurement.cost.bytes);
    let rate = rate.map(|(rate, bytes)| {
        format!(", {} GB/s of the {} MB that they must move", significant(rate), significant(bytes / 1e6))
    });
    let rate = rate.unwrap_or_default();
    let rate = if kernels == 1 { rate.replace("they", "it") } else { rate };
    format!("{}, {} by {}{rate}", counted(kernels, "kernel"), median(measurement), measurement.clock)
}

/// How many times as fast the fused chain is; below 1 it is slower.
fn speed(fusion: &Fusion) -> String {
    let Some(ratio) = fusion.ratio.filter(|ratio| *ratio > 0.0) else {
        return "the times have no ratio: they are shorter than the clock can resolve".to_owned();
    };
    let range =
        fusion.ratio_interval.map_or(" (too few samples for an interval)".to_owned(), |[low, high]| {
            format!(" (99%: {}× to {}×)", significant(1.0 / high), significant(1.0 / low))
        });
    format!("{}× as fast as one by one{range}", significant(1.0 / ratio))
}
