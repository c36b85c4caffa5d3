//! Compares measurements of two reports, row by row. `docs/output.md` documents the result.
//!
//! A [`Comparison`] is about one kernel on one device, a [`ReportComparison`] about all rows of two reports. Each has
//! the ratio of the medians with its interval, a [`Verdict`], and what else differs between the two.

mod bootstrap;
#[cfg(test)]
mod bootstrap_scipy_tests;
mod comparison;
mod difference;
mod independence;
mod report_comparison;
mod row_key;
mod side;
#[cfg(test)]
mod simulation_tests;
#[cfg(test)]
mod tests;
mod verdict;

pub use comparison::Comparison;
pub use difference::Difference;
pub use report_comparison::{ReportComparison, SCHEMA, VERSION};
pub use row_key::RowKey;
pub use side::Side;
pub use verdict::{CompareOptions, Estimate, Verdict};
