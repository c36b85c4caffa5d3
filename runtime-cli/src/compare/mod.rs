//! `runtime compare`: compares reports of `runtime eval --json`.

mod history;
mod json;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use runtime_core::{Error, Result};
use runtime_harness::Report;
use runtime_harness::compare::{CompareOptions, ReportComparison};

use crate::output::{self, Destination};
use crate::output_paths;
pub(crate) use text::comparison_text;

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The report that the others are compared with
    #[arg(value_name = "OLD.json")]
    old: PathBuf,
    /// The new report; with several, the table has a column for each
    #[arg(value_name = "NEW.json", required = true)]
    new: Vec<PathBuf>,
    #[command(flatten)]
    threshold: ThresholdArgument,
    /// Write the comparison as JSON; with `-`, to standard output, without the table
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ThresholdArgument {
    /// The change of a kernel's time that matters [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    threshold: Option<f64>,
}

impl ThresholdArgument {
    pub(crate) const fn is_given(&self) -> bool {
        self.threshold.is_some()
    }

    pub(crate) fn options(&self) -> CompareOptions {
        let options = CompareOptions::default();
        CompareOptions { threshold: self.threshold.unwrap_or(options.threshold), ..options }
    }
}

/// Parses `2%` as 0.02. Without the sign, 0.02 and 2 would be ambiguous.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    let percent = number.filter(|percent| *percent >= 0.0 && percent.is_finite());
    percent.map(|percent| percent / 100.0).ok_or_else(|| "expected a percentage, e.g. `2%`".to_owned())
}

/// A file that is compared with the first one.
struct Compared {
    file: String,
    complete: bool,
    comparison: ReportComparison,
}

/// Compares the files; the exit code says whether a kernel has become worse.
///
/// # Errors
/// `Io` or `InvalidArgument` if a file is not a report, has no row in common with the first one, or cannot be written.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode> {
    let inputs: Vec<PathBuf> = [&arguments.old].into_iter().chain(&arguments.new).cloned().collect();
    let json = arguments.json.as_deref();
    output_paths::check_against(&output_paths::given([("--json", &arguments.json)]), &inputs)?;
    let old = Report::read(&arguments.old)?;
    let options = arguments.threshold.options();
    let compare = |path: &PathBuf| compare_with(&old, path, &options);
    let all: Vec<Compared> = arguments.new.iter().map(compare).collect::<Result<_>>()?;
    let old_file = arguments.old.display().to_string();
    for one in &all {
        check_overlap(&old_file, &one.file, &one.comparison)?;
    }
    let is_standard = json == Some(Path::new("-"));
    if let Some(path) = json {
        Destination::open(path)?.write(&json::document(&old_file, old.complete, &options, &all))?;
    }
    if !is_standard {
        output::print(&table(&old_file, &all))?;
    }
    let has_regression = all.iter().any(|one| one.comparison.has_regression());
    Ok(if has_regression { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn compare_with(old: &Report, path: &Path, options: &CompareOptions) -> Result<Compared> {
    let new = Report::read(path)?;
    Ok(Compared {
        file: path.display().to_string(),
        complete: new.complete,
        comparison: ReportComparison::of(old, &new, options),
    })
}

fn table(old: &str, all: &[Compared]) -> String {
    match all {
        [one] => comparison_text(old, &one.file, &one.comparison, true),
        several => history::text(old, several),
    }
}

/// Rejects reports without a common row.
///
/// # Errors
/// `InvalidArgument` with a row of each.
pub(crate) fn check_overlap(old: &str, new: &str, comparison: &ReportComparison) -> Result<()> {
    if !comparison.rows.is_empty() {
        return Ok(());
    }
    let example = |rows: &[runtime_harness::compare::RowKey]| {
        rows.first().map_or_else(|| "is empty".to_owned(), |row| format!("has {row}"))
    };
    Err(Error::invalid(format!(
        "{old} and {new} have no row in common: the first {}, the second {}",
        example(&comparison.only_old),
        example(&comparison.only_new)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_a_percentage() {
        for (text, value) in [("2%", 0.02), ("0%", 0.0), ("2.5 %", 0.025), ("150%", 1.5)] {
            assert_eq!(parse_percent(text), Ok(value), "{text}");
        }
        for text in ["2", "0.02", "-1%", "%", "NaN%", "inf%", "x%"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
