//! A run of `runtime eval`: its reports, its progress bar, and what an interrupt does to them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::{Options, Result};
use runtime_harness::{Row, Spec};

use super::{Baseline, Files, Shares};
use crate::progress::Progress;
use crate::report::Reports;
use crate::{interrupt, output};

/// How long an interrupt waits for a row that is being written: the reader of a pipe may have stopped reading.
const ROW_TIMEOUT: Duration = Duration::from_secs(1);

/// The reports and the progress bar of a run.
pub(super) struct Run {
    baseline: Option<Baseline>,
    reports: Arc<Mutex<Reports>>,
    progress: Progress,
    shares: Shares,
}

impl Run {
    /// Begins a run with a row for each spec on each device.
    pub(super) fn begin(mut files: Files, specs: &[Spec], devices: &[String], options: &Options) -> Self {
        let rows = specs.len() * devices.len();
        let baseline = files.baseline.take().map(|baseline| baseline.with_options(options));
        let reports = Arc::new(Mutex::new(Reports::new(files.sinks(specs, devices, options), rows)));
        let interrupted = Arc::clone(&reports);
        interrupt::on_interrupt(move |signal| {
            if let Some(mut reports) = interrupted.try_lock_for(ROW_TIMEOUT) {
                reports.interrupt(signal);
                // The lock is never released, so no further row is added.
                std::mem::forget(reports);
            }
        });
        Self { baseline, reports, progress: Progress::new(rows), shares: Shares::new() }
    }

    /// Shows what is running.
    pub(super) fn announce(&self, what: String) {
        self.progress.set_message(what);
    }

    /// Says what the run is waiting for, or what has gone wrong beside its rows, on standard error.
    pub(super) fn note(&self, text: &str) {
        self.progress.suspend(|| output::print_stderr(text));
    }

    /// Adds a row to every report, with its share of the peak. Returns `false` once no report can be written any more.
    pub(super) fn add(&self, row: &Row) -> Result<bool> {
        self.progress.advance();
        let row = &self.shares.complete(row);
        if let Some(baseline) = &self.baseline {
            baseline.add(row);
        }
        self.progress.suspend(|| self.reports.lock().add(row))
    }

    /// Removes the progress bar.
    pub(super) fn finish_progress(&self) {
        self.progress.finish();
    }

    /// Completes the reports and compares them with the baseline; the exit code tells what is in them.
    pub(super) fn end(self) -> Result<ExitCode> {
        let mut reports = self.reports.lock();
        reports.close()?;
        self.shares.print_hint();
        let has_regression = self.baseline.map_or(Ok(false), Baseline::compare)?;
        Ok(match (reports.has_failed(), reports.is_right() && !has_regression) {
            (true, _) => ExitCode::from(2),
            (false, true) => ExitCode::SUCCESS,
            (false, false) => ExitCode::FAILURE,
        })
    }
}
