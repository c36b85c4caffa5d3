//! The outputs of `runtime eval`, and its baseline.

use std::path::PathBuf;

use runtime_core::Result;
use runtime_harness::origin::SandboxState;
use runtime_harness::{Report, Spec, describe};

use super::{Baseline, EvalArguments, Resumed};
use crate::output::Destination;
use crate::output_paths;
use crate::report::{Columns, Format, Sink};

/// The files that reports are written to, and the one that they are compared with.
pub(super) struct Files {
    pub(super) baseline: Option<Baseline>,
    sinks: Vec<Sink>,
    /// Whether standard output is free for the table.
    shows_table: bool,
}

impl Files {
    /// Reads what an interrupted run has written, then opens all outputs.
    ///
    /// # Errors
    /// Those of [`Resumed::read`] and of the outputs.
    pub(super) fn open(
        arguments: &EvalArguments,
        specs: &[Spec],
        sandbox: Option<SandboxState>,
    ) -> Result<(Self, Resumed)> {
        let json = output_paths::given([("--json", &arguments.json), ("--resume", &arguments.resume)]);
        let mut inputs: Vec<PathBuf> = specs.iter().flat_map(Spec::files).collect();
        inputs.extend(arguments.baseline.clone());
        output_paths::check_against(&[&json[..], &arguments.files.outputs()].concat(), &inputs)?;
        let options = arguments.open.options();
        let resumed = Resumed::read(arguments.resume.as_deref(), &options)?;
        let report = Report::begin(describe::options(&options), sandbox);
        let mut sinks = Vec::new();
        for (_, path) in json {
            sinks.push(Sink::new(Format::Json(Box::new(report.clone())), Destination::open(path)?));
        }
        sinks.extend(arguments.files.open(&report)?);
        let shows_table = !sinks.iter().any(Sink::is_standard);
        let baseline = arguments.baseline.as_deref();
        let read = |path| Baseline::read(path, &arguments.threshold, shows_table, report);
        let baseline = baseline.map(read).transpose()?;
        Ok((Self { baseline, sinks, shows_table }, resumed))
    }

    /// The requested files, and a table unless one of them is standard output.
    pub(super) fn sinks(self, specs: &[Spec], devices: &[String]) -> Vec<Sink> {
        let table = self.shows_table.then(|| {
            let kernels = specs.iter().map(|spec| spec.name.as_str());
            let columns = Columns::new(kernels, devices.iter().map(String::as_str));
            Sink::new(Format::Table(columns), Destination::Standard)
        });
        table.into_iter().chain(self.sinks).collect()
    }
}
