//! The files that a report is written to, in several formats.

use std::path::{Path, PathBuf};

use clap::Args;
use runtime_core::Result;
use runtime_harness::Report;

use super::markdown::Notes;
use super::sink::{Format, Sink};
use crate::output::Destination;
use crate::output_paths;

#[derive(Debug, Args)]
pub(crate) struct ReportFiles {
    /// Write one line per row as CSV; with `-`, to standard output, without the table
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,
    /// Write the table as Markdown; with `-`, to standard output, instead of the plain one
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
    /// Draw rooflines, sweeps and samples as SVG, at the end of the run
    #[arg(long, value_name = "FILE.svg|-")]
    plot: Option<PathBuf>,
    /// Write a web page with tables, pictures, machine and settings, at the end of the run
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
}

impl ReportFiles {
    /// Each output with its option.
    pub(crate) fn outputs(&self) -> Vec<(&'static str, &Path)> {
        output_paths::given([
            ("--csv", &self.csv),
            ("--markdown", &self.markdown),
            ("--plot", &self.plot),
            ("--html", &self.html),
        ])
    }

    /// Opens all outputs right away, so that a wrong path fails before any work is done. `empty` is the report without its rows.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn open(&self, empty: &Report) -> Result<Vec<Sink>> {
        let sink = |(flag, path)| {
            let format = match flag {
                "--csv" => Format::Csv(Box::new(empty.clone())),
                "--markdown" => Format::Markdown(Notes::new(empty)),
                "--plot" => Format::Plot(Box::new(empty.clone())),
                _ => Format::Page(Box::new(empty.clone())),
            };
            Ok(Sink::new(format, Destination::open(path)?))
        };
        self.outputs().into_iter().map(sink).collect()
    }
}
