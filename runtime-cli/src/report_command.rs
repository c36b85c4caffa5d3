//! `runtime report`: writes a saved report in other formats.

use std::path::PathBuf;

use clap::Args;
use runtime_core::{Error, Result};
use runtime_harness::Report;

use crate::output::Destination;
use crate::output_paths;
use crate::report::{Columns, Format, ReportFiles, Sink};

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// A report of `runtime eval --json`
    #[arg(value_name = "FILE.json")]
    report: PathBuf,
    #[command(flatten)]
    files: ReportFiles,
}

/// Writes the report in each format that is asked for; without one, as a table.
///
/// # Errors
/// Those of [`Report::read`]; `InvalidArgument` if an output is the report or another output; `Io` if one cannot be written.
pub(crate) fn write(arguments: &ReportArguments) -> Result<()> {
    let report = Report::read(&arguments.report)?;
    output_paths::check_against(&arguments.files.outputs(), std::slice::from_ref(&arguments.report))?;
    let mut sinks = arguments.files.open(&Report { rows: Vec::new(), ..report.clone() })?;
    if sinks.is_empty() {
        let kernels = report.rows.iter().map(|row| &*row.kernel.name);
        let columns = Columns::new(kernels, report.rows.iter().map(|row| &*row.device));
        sinks.push(Sink::new(Format::Table(columns), Destination::Standard));
    }
    for sink in &mut sinks {
        report.rows.iter().try_for_each(|row| sink.add(row, false))?;
        sink.close(report.complete)?;
    }
    match sinks.iter().any(Sink::has_failed) {
        // The reason was printed.
        true => Err(Error::new(runtime_core::ErrorKind::Io, "an output is not complete")),
        false => Ok(()),
    }
}
