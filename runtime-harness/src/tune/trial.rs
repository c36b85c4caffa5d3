//! A candidate that was evaluated.

use crate::row::{Outcome, Row, Status};
use crate::spec::Overrides;

/// A candidate that was evaluated, or refused before.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What it changes in the spec.
    pub overrides: Overrides,
    /// Whether it has the spec's own values.
    pub is_default: bool,
    /// The round in which it was measured, from 0.
    pub rung: usize,
    /// Whether the result comes from the log of an earlier run.
    pub is_logged: bool,
    /// The result.
    pub row: Row,
}

/// How a trial counts in the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialClass {
    /// It ran, and its outputs are right or were not checked.
    Ran,
    /// The device cannot run it: it lacks resources, or its geometry is refused.
    Skipped,
    /// Its outputs are wrong, its times contradict each other, or nothing is as fast as it claims to be.
    Wrong,
    /// It did not compile, crashed, timed out or failed in another way.
    Failed,
}

impl Trial {
    /// How it counts in the ranking.
    #[must_use]
    pub fn class(&self) -> TrialClass {
        let is_refused = |kind: &str| matches!(kind, "InvalidArgument" | "Unsupported" | "Unavailable");
        match (&self.row.outcome, self.row.status) {
            (_, Status::Right | Status::Unchecked) if self.row.measurement.is_some() => TrialClass::Ran,
            (_, Status::Wrong | Status::Inconsistent | Status::Impossible) => TrialClass::Wrong,
            (Outcome::Skipped { .. } | Outcome::OutOfResources, _) => TrialClass::Skipped,
            _ if self.row.error_kind.as_deref().is_some_and(is_refused) => TrialClass::Skipped,
            _ => TrialClass::Failed,
        }
    }

    /// The median, if it ran.
    #[must_use]
    pub fn median_ns(&self) -> Option<f64> {
        let measurement = self.row.measurement.as_ref().filter(|_| self.class() == TrialClass::Ran)?;
        Some(measurement.statistics.median_ns)
    }

    pub(super) fn samples(&self) -> &[f64] {
        self.row.measurement.as_ref().map_or(&[], |measurement| &measurement.samples_ns)
    }
}
