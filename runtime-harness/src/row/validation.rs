//! Comparisons of outputs with their expected contents, as rows have them.

use runtime_core::evaluate::Validation;

use super::Status;

/// The comparison with the name of the argument, if an output is wrong; `None` if there was none.
pub(super) fn named(ran: &Validation, name: impl Fn(usize) -> Option<String>) -> Option<Validation> {
    let mut found = ran.clone();
    match &mut found {
        Validation::Skipped { .. } => return None,
        Validation::Failed(mismatch) => mismatch.name = name(mismatch.arg),
        Validation::Passed(_) => {}
    }
    Some(found)
}

/// Why a comparison did not find the outputs right.
pub(super) fn reason(validation: &Validation) -> Option<String> {
    match validation {
        Validation::Passed(_) => None,
        Validation::Failed(mismatch) => Some(mismatch.to_string()),
        Validation::Skipped { reason } => Some(reason.clone()),
    }
}

/// The status of a kernel that ran.
#[must_use]
pub const fn status_of(validation: &Validation) -> Status {
    match validation {
        Validation::Passed(_) => Status::Right,
        Validation::Failed(_) => Status::Wrong,
        Validation::Skipped { .. } => Status::Unchecked,
    }
}
