//! `--baseline`: compares the rows of a run with those of an earlier report.

use std::cell::RefCell;
use std::path::Path;

use runtime_core::Result;
use runtime_harness::compare::{CompareOptions, ReportComparison};
use runtime_harness::{Report, Row};

use crate::compare::{ThresholdArgument, check_overlap, comparison_text};
use crate::output;

/// An earlier report, and the rows to compare with it.
pub(super) struct Baseline {
    name: String,
    report: Report,
    options: CompareOptions,
    /// Standard output is a table, which the comparison is added to.
    shows_table: bool,
    current: RefCell<Report>,
}

impl Baseline {
    /// Reads the report, before anything is measured. `current` has no rows yet.
    pub(super) fn read(
        path: &Path,
        threshold: &ThresholdArgument,
        shows_table: bool,
        current: Report,
    ) -> Result<Self> {
        Ok(Self {
            name: path.display().to_string(),
            report: Report::read(path)?,
            options: threshold.options(),
            shows_table,
            current: RefCell::new(current),
        })
    }

    pub(super) fn add(&self, row: &Row) {
        self.current.borrow_mut().rows.push(row.clone());
    }

    /// Prints the comparison; returns whether a row has become worse.
    ///
    /// # Errors
    /// `InvalidArgument` if no row is in the baseline: a comparison of nothing must not pass for a success.
    pub(super) fn compare(self) -> Result<bool> {
        let comparison = ReportComparison::of(&self.report, &self.current.into_inner(), &self.options);
        check_overlap(&self.name, "this run", &comparison)?;
        let text = comparison_text(&self.name, "this run", &comparison, false);
        match self.shows_table {
            true => output::print(&format!("\n{text}"))?,
            // Standard output contains the report only.
            false => output::print_stderr(text.trim_end()),
        }
        Ok(comparison.has_regression())
    }
}
