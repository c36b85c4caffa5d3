//! The CSV report: a header and one line per row.

use runtime_core::evaluate::{Measurement, Validation};
use runtime_core::{Error, ErrorKind, Result};

use super::Report;
use crate::commit::Commit;
use crate::printable::printable_lines;
use crate::row::{Counts, Roofline, Row};

/// A column: its name, and its value for a row that has one.
type Column = (&'static str, fn(&Row) -> Option<String>);

const COLUMNS: [Column; 50] = [
    ("spec", |row| Some(row.spec.clone())),
    ("kernel", |row| Some(row.kernel.name.clone())),
    ("entry", |row| Some(row.kernel.entry.clone())),
    ("format", |row| Some(row.kernel.format.clone())),
    ("device", |row| Some(row.device.clone())),
    ("device_name", |row| device_text(row, "name")),
    ("device_arch", |row| device_text(row, "arch")),
    ("status", |row| Some(row.status.name().to_owned())),
    ("reason", |row| row.reason.clone()),
    ("clock", |row| measured(row, |it| Some(it.clock)).or_else(|| counted(row, |it| Some(it.clock.clone())))),
    ("cold", |row| measured(row, |it| Some(it.cold))),
    ("samples", |row| {
        measured(row, |it| Some(it.samples_ns.len())).or_else(|| counted(row, |it| Some(it.samples.len())))
    }),
    ("number", |row| measured(row, |it| Some(it.number)).or_else(|| counted(row, |it| Some(it.number)))),
    ("calls", |row| measured(row, |it| Some(it.calls)).or_else(|| counted(row, |it| Some(it.calls)))),
    ("median_ns", |row| measured(row, |it| Some(it.statistics.median_ns))),
    ("median_ci95_low_ns", |row| {
        measured(row, |it| it.statistics.median_ci95_ns.map(|interval| interval[0]))
    }),
    ("median_ci95_high_ns", |row| {
        measured(row, |it| it.statistics.median_ci95_ns.map(|interval| interval[1]))
    }),
    ("min_ns", |row| measured(row, |it| Some(it.statistics.min_ns))),
    ("mean_ns", |row| measured(row, |it| Some(it.statistics.mean_ns))),
    ("max_ns", |row| measured(row, |it| Some(it.statistics.max_ns))),
    ("stddev_ns", |row| measured(row, |it| it.statistics.stddev_ns)),
    ("p5_ns", |row| measured(row, |it| Some(it.statistics.p5_ns))),
    ("p95_ns", |row| measured(row, |it| Some(it.statistics.p95_ns))),
    ("outliers", |row| measured(row, |it| Some(it.statistics.outliers))),
    ("overhead_ns", |row| measured(row, |it| it.overhead_ns)),
    ("transfer_median_ns", |row| {
        measured(row, |it| it.transfer.as_ref().map(|transfer| transfer.statistics.median_ns))
    }),
    ("gflops_per_s", |row| measured(row, |it| it.gflops_per_s())),
    ("gbytes_per_s", |row| measured(row, |it| it.gbytes_per_s())),
    ("max_absolute_error", max_absolute_error),
    ("wrong_elements", wrong_elements),
    ("roofline_share", |row| row.roofline.as_ref().map(|roofline| roofline.share.to_string())),
    ("roofline_limit", |row| row.roofline.as_ref().map(Roofline::limit_text)),
    ("energy_uj", |row| Some(row.energy.as_ref()?.microjoules_per_call?.to_string())),
    ("count_median", |row| counted(row, |it| Some(it.median))),
    ("count_min", |row| counted(row, |it| Some(it.min))),
    ("count_max", |row| counted(row, |it| Some(it.max))),
    ("count_per_element", |row| counted(row, |it| it.per_element)),
    ("code_bytes", |row| counted(row, |it| it.image.map(|image| image.sizes.code_bytes))),
    ("constant_bytes", |row| counted(row, |it| it.image.map(|image| image.sizes.constant_bytes))),
    ("data_bytes", |row| counted(row, |it| it.image.map(|image| image.sizes.data_bytes))),
    ("zeroed_bytes", |row| counted(row, |it| it.image.map(|image| image.sizes.zeroed_bytes))),
    ("stack_bytes", |row| counted(row, |it| it.stack.map(|stack| stack.used_bytes))),
    ("max_ulp", max_ulp),
    ("command", |row| row.command.clone()),
    ("time", |row| row.time.clone()),
    ("commit", |row| row.commit.as_ref().map(Commit::to_string)),
    ("code_sha256", |row| row.code_sha256.clone()),
    ("driver_version", |row| device_text(row, "driver_version")),
    ("compiler", |row| Some(row.device_info.as_ref()?["properties"]["compiler"].as_str()?.to_owned())),
    ("inputs", |row| row.judged.as_ref().map(|judged| judged.inputs.name().to_owned())),
];

/// A column with the same value in all rows.
type HeadColumn = (&'static str, fn(&Report) -> Option<String>);

const HEAD_COLUMNS: [HeadColumn; 4] = [
    ("program", |report| Some(report.runtime.text())),
    ("host", |report| report.origin.as_ref()?.host.clone()),
    ("command_line", |report| report.origin.as_ref()?.command.clone()),
    ("sandbox", |report| Some(report.origin.as_ref()?.sandbox?.name().to_owned())),
];

fn counted<T: ToString>(row: &Row, value: fn(&Counts) -> Option<T>) -> Option<String> {
    row.counts.as_deref().and_then(value).map(|value| value.to_string())
}

fn measured<T: ToString>(row: &Row, value: fn(&Measurement) -> Option<T>) -> Option<String> {
    row.measurement.as_ref().and_then(value).map(|value| value.to_string())
}

fn device_text(row: &Row, key: &str) -> Option<String> {
    row.device_info.as_ref()?.get(key)?.as_str().map(str::to_owned)
}

fn max_absolute_error(row: &Row) -> Option<String> {
    match row.validation.as_ref()? {
        Validation::Passed(agreement) => Some(agreement.max_absolute_error.to_string()),
        Validation::Failed(mismatch) => Some(mismatch.absolute_error.to_string()),
        Validation::Skipped { .. } => None,
    }
}

fn max_ulp(row: &Row) -> Option<String> {
    match row.validation.as_ref()? {
        Validation::Passed(agreement) => agreement.max_ulp.map(|ulp| ulp.to_string()),
        _ => None,
    }
}

fn wrong_elements(row: &Row) -> Option<String> {
    match row.validation.as_ref()? {
        Validation::Passed(_) => Some("0".to_owned()),
        Validation::Failed(mismatch) => Some(mismatch.wrong.to_string()),
        Validation::Skipped { .. } => None,
    }
}

/// The header line.
///
/// # Errors
/// `Internal` if it cannot be written as CSV.
pub fn header() -> Result<String> {
    record(COLUMNS.map(|(name, _)| name).into_iter().chain(HEAD_COLUMNS.map(|(name, _)| name)))
}

/// The line for a row of a report, whose own rows do not matter.
///
/// # Errors
/// `Internal` if it cannot be written as CSV.
pub fn line(row: &Row, report: &Report) -> Result<String> {
    let cells = COLUMNS.map(|(_, value)| value(row)).into_iter();
    let cells = cells.chain(HEAD_COLUMNS.map(|(_, value)| value(report)));
    record(cells.map(|value| cell(&value.unwrap_or_default())))
}

/// A cell on one line that no spreadsheet takes for a formula: text that begins like one gets an apostrophe.
fn cell(text: &str) -> String {
    let text = printable_lines(text).replace(['\n', '\t'], " ");
    let is_number = text.parse::<f64>().is_ok();
    match text.trim_start().starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
        && !is_number
    {
        true => format!("'{text}"),
        false => text,
    }
}

fn record(cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<String> {
    write(cells).map_err(|error| Error::new(ErrorKind::Internal, format!("CSV: {error}")))
}

fn write(cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<String, Box<dyn std::error::Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn no_cell_is_a_formula_or_an_instruction() {
        for formula in ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", " =1", "\u{ff1d}1", "-", "--1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for plain in ["-1", "-1.5e-7", "+3", "-inf", "a=b", "1-2", "", "k n=-1"] {
            assert_eq!(cell(plain), plain);
        }
        assert_eq!(cell("\r=1\u{1b}[2J"), "\u{fffd}=1\u{fffd}[2J");
        assert_eq!(
            [cell("a\nk,host:0,right\n"), cell("\t=1"), cell("\n=1")],
            ["a k,host:0,right ", "' =1", "' =1"]
        );
    }
}
