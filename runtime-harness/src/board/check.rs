//! Compares the outputs of an embedded device with what is expected.

use runtime_core::evaluate::{Tolerance, Validation};
use runtime_core::{Access, HostArray, Result};

use crate::job::Job;

/// How outputs are checked.
pub(super) struct Check<'j> {
    expected: &'j [(usize, HostArray)],
    tolerance: Tolerance,
    skipped: Option<&'static str>,
}

impl<'j> Check<'j> {
    /// The check of a job.
    ///
    /// # Errors
    /// Why its expected outputs are unknown.
    pub(super) fn of(job: &'j Job, is_wanted: bool) -> Result<Self> {
        let expected = match is_wanted {
            true => job.expected.as_ref().map_err(Clone::clone)?.as_slice(),
            false => &[],
        };
        let skipped = match (is_wanted, expected.is_empty()) {
            (false, _) => Some("validation was not asked for"),
            (true, true) => Some("there is no reference"),
            (true, false) => None,
        };
        Ok(Self { expected, tolerance: job.tolerance(), skipped })
    }

    /// The byte that an output is filled with beforehand, so that elements which are not written are wrong.
    pub(super) fn poison(&self, argument: usize) -> u8 {
        self.tolerance.poison(self.expected, argument)
    }

    /// Compares the outputs of a program that has run once; `read` gives an argument's content, and how it is used.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn compare(&self, read: impl Fn(usize) -> Result<(HostArray, Access)>) -> Result<Validation> {
        if let Some(reason) = self.skipped {
            return Ok(Validation::Skipped { reason: reason.to_owned() });
        }
        self.tolerance.compare_outputs(self.expected, |argument| read(argument).map(Some))
    }
}
