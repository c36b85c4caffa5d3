//! The outputs of `runtime eval`, and its baseline.

use std::path::{Path, PathBuf};

use runtime_core::{Options, Result};
use runtime_harness::{Report, Spec, describe};

use super::Baseline;
use crate::arguments::EvalArguments;
use crate::output::Destination;
use crate::output_paths;
use crate::report::{Columns, Format, Notes, Sink};

/// The files that reports are written to, and the one that they are compared with.
pub(super) struct Files {
    pub(super) baseline: Option<Baseline>,
    json: Option<Destination>,
    csv: Option<Destination>,
    markdown: Option<Destination>,
    plot: Option<Destination>,
    html: Option<Destination>,
    /// Whether standard output is free for the table.
    shows_table: bool,
}

impl Files {
    pub(super) fn open(arguments: &EvalArguments, specs: &[Spec]) -> Result<Self> {
        let outputs = [
            ("--json", &arguments.json),
            ("--resume", &arguments.resume),
            ("--csv", &arguments.csv),
            ("--markdown", &arguments.markdown),
            ("--plot", &arguments.plot),
            ("--html", &arguments.html),
        ];
        let outputs: Vec<(&str, &Path)> =
            outputs.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?))).collect();
        let mut inputs: Vec<PathBuf> = specs.iter().flat_map(Spec::files).collect();
        inputs.extend(arguments.baseline.clone());
        output_paths::check_against(&outputs, &inputs)?;
        let open = |path: &Option<_>| path.as_deref().map(Destination::open).transpose();
        let json = if arguments.resume.is_some() { &arguments.resume } else { &arguments.json };
        let (json, csv, markdown) = (open(json)?, open(&arguments.csv)?, open(&arguments.markdown)?);
        let (plot, html) = (open(&arguments.plot)?, open(&arguments.html)?);
        let shows_table =
            ![&json, &csv, &markdown, &plot, &html].into_iter().flatten().any(Destination::is_standard);
        let baseline = arguments.baseline.as_deref();
        let baseline =
            baseline.map(|path| Baseline::read(path, &arguments.threshold, shows_table)).transpose()?;
        Ok(Self { baseline, json, csv, markdown, plot, html, shows_table })
    }

    /// The requested files, and a table unless one of them is standard output.
    pub(super) fn sinks(self, specs: &[Spec], devices: &[String], options: &Options) -> Vec<Sink> {
        let table = self.shows_table.then(|| {
            let kernels = specs.iter().map(|spec| spec.name.as_str());
            let columns = Columns::new(kernels, devices.iter().map(String::as_str));
            Sink::new(Format::Table(columns), Destination::Standard)
        });
        let json = self.json.map(|file| Sink::new(Format::Json(options.clone()), file));
        let csv = self.csv.map(|file| Sink::new(Format::Csv, file));
        let markdown = self.markdown.map(|file| Sink::new(Format::Markdown(Notes::default()), file));
        let report = Report { device_options: describe::options(options), ..Report::new() };
        let plot = self.plot.map(|file| Sink::new(Format::Plot(Box::new(report.clone())), file));
        let html = self.html.map(|file| Sink::new(Format::Page(Box::new(report)), file));
        table.into_iter().chain(json).chain(csv).chain(markdown).chain(plot).chain(html).collect()
    }
}
