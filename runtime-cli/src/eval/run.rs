//! A run of `runtime eval`: its reports, its progress bar, and what an interrupt does to them.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};
use runtime_harness::printable::indented;
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Row, Spec};

use super::{Baseline, Files, MissingPeaks};
use crate::progress::Progress;
use crate::report::{Reports, Sink};
use crate::{interrupt, output};

/// How long an interrupt waits for a row that is being written: the reader of a pipe may have stopped reading.
const ROW_TIMEOUT: Duration = Duration::from_secs(1);

/// The reports and the progress bar of a run.
pub(crate) struct Run {
    baseline: Option<Baseline>,
    reports: Arc<Mutex<Reports>>,
    progress: Progress,
    missing_peaks: MissingPeaks,
}

impl Run {
    /// Begins a run with a row for each spec on each device.
    pub(super) fn begin(mut files: Files, specs: &[Spec], devices: &[String]) -> Self {
        let rows = specs.len() * devices.len();
        let baseline = files.baseline.take();
        Self { baseline, ..Self::of_rows(files.sinks(specs, devices), rows) }
    }

    /// Begins a run with this number of rows.
    pub(crate) fn of_rows(sinks: Vec<Sink>, rows: usize) -> Self {
        let reports = Arc::new(Mutex::new(Reports::new(sinks, rows)));
        let interrupted = Arc::clone(&reports);
        interrupt::on_interrupt(move |signal| {
            if let Some(mut reports) = interrupted.try_lock_for(ROW_TIMEOUT) {
                reports.interrupt(signal);
                // The lock is never released, so no further row is added.
                std::mem::forget(reports);
            }
        });
        let missing_peaks = MissingPeaks::default();
        Self { baseline: None, reports, progress: Progress::new(rows), missing_peaks }
    }

    /// Shows what is running.
    pub(crate) fn announce(&self, what: &str) {
        self.progress.set_message(what);
    }

    /// Says what the run is waiting for, or what has gone wrong beside its rows, on standard error.
    pub(super) fn note(&self, text: &str) {
        self.progress.suspend(|| output::print_stderr(&indented(text)));
    }

    /// Adds a row to every report. Returns `false` once no report can be written any more.
    pub(crate) fn add(&self, row: &Row) -> Result<bool> {
        self.progress.advance();
        self.missing_peaks.note(row);
        if let Some(baseline) = &self.baseline {
            baseline.add(row);
        }
        self.progress.suspend(|| self.reports.lock().add(row))
    }

    /// Removes the progress bar.
    pub(crate) fn finish_progress(&self) {
        self.progress.finish();
    }

    /// The next row of a pool of workers; notes what they wait for.
    ///
    /// # Errors
    /// `InvalidArgument` for a candidate that cannot be evaluated; `Internal` if the pool has ended.
    pub(crate) fn next_row(&self, replies: &Receiver<Reply>) -> Result<Row> {
        for reply in replies {
            if let Some(note) = reply.note() {
                self.note(&note);
            }
            match reply {
                Reply::Row { row, .. } => return Ok(*row),
                Reply::Error { error, .. } => return Err(Error::invalid(error)),
                _ => {}
            }
        }
        Err(Error::new(ErrorKind::Internal, "the pool of workers has ended"))
    }

    /// Completes the reports and compares them with the baseline; the exit code reflects their rows.
    pub(crate) fn end(self) -> Result<ExitCode> {
        let mut reports = self.reports.lock();
        reports.close()?;
        self.missing_peaks.print_hint();
        let has_regression = self.baseline.map_or(Ok(false), Baseline::compare)?;
        Ok(match (reports.has_failed(), reports.is_right() && !has_regression) {
            (true, _) => ExitCode::from(2),
            (false, true) => ExitCode::SUCCESS,
            (false, false) => ExitCode::FAILURE,
        })
    }
}
