//! Two reports.

use serde::Serialize;

use super::difference::{self, Difference};
use super::{CompareOptions, Comparison, RowKey};
use crate::report::Report;
use crate::row::Row;

/// The schema of comparisons as JSON.
pub const SCHEMA: &str = "runtime.comparison";
/// The version of the schema.
pub const VERSION: u64 = 1;

/// How a report differs from an older one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportComparison {
    /// What differs between the programs and their options.
    pub differences: Vec<Difference>,
    /// The rows that are in both, in the order of the new report.
    pub rows: Vec<Comparison>,
    /// The rows that are in the old report only.
    pub only_old: Vec<RowKey>,
    /// The rows that are in the new report only.
    pub only_new: Vec<RowKey>,
}

impl ReportComparison {
    /// Compares two reports. Of several rows with one kernel name and device, the first is compared with the first, the
    /// second with the second.
    #[must_use]
    pub fn of(old: &Report, new: &Report, options: &CompareOptions) -> Self {
        let mut unmatched: Vec<&Row> = old.rows.iter().collect();
        let (mut rows, mut only_new) = (Vec::new(), Vec::new());
        for row in &new.rows {
            let key = RowKey::of(row);
            match unmatched.iter().position(|old| key.is_of(old)) {
                Some(at) => rows.push(Comparison::of(unmatched.remove(at), row, options)),
                None => only_new.push(key),
            }
        }
        let only_old = unmatched.into_iter().map(RowKey::of).collect();
        Self { differences: difference::of_reports(old, new), rows, only_old, only_new }
    }

    /// Whether a row is slower, or is wrong or failed and was not before.
    #[must_use]
    pub fn has_regression(&self) -> bool {
        self.rows.iter().any(|row| row.regression)
    }
}
