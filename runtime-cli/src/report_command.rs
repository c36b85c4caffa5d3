//! `runtime report`: writes a saved report in other formats.

use std::path::{Path, PathBuf};

use clap::Args;
use runtime_core::{Error, Result};
use runtime_harness::Report;

use crate::output::Destination;
use crate::output_paths;
use crate::report::{Columns, Format, Notes, Sink};

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// A report of `runtime eval --json`
    #[arg(value_name = "FILE.json")]
    report: PathBuf,
    /// Write one line per row as CSV
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
    /// Draw rooflines, sweeps and samples as SVG
    #[arg(long, value_name = "FILE.svg|-")]
    plot: Option<PathBuf>,
    /// Write a web page with tables, pictures, machine and settings
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
}

/// Writes the report in each format that is asked for; without one, as a table.
///
/// # Errors
/// Those of [`Report::read`]; `InvalidArgument` if an output is the report or another output; `Io` if one cannot be written.
pub(crate) fn write(arguments: &ReportArguments) -> Result<()> {
    let report = Report::read(&arguments.report)?;
    let ReportArguments { csv, markdown, plot, html, .. } = arguments;
    let outputs = [("--csv", csv), ("--markdown", markdown), ("--plot", plot), ("--html", html)];
    let outputs: Vec<(&str, &Path)> =
        outputs.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?))).collect();
    output_paths::check_against(&outputs, std::slice::from_ref(&arguments.report))?;
    let mut sinks = Vec::new();
    for (flag, path) in outputs {
        sinks.push(Sink::new(format(flag, &report), Destination::open(path)?));
    }
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

fn format(flag: &str, report: &Report) -> Format {
    let whole = || Box::new(Report { rows: Vec::new(), ..report.clone() });
    match flag {
        "--csv" => Format::Csv,
        "--markdown" => Format::Markdown(Notes::default()),
        "--plot" => Format::Plot(whole()),
        _ => Format::Page(whole()),
    }
}
