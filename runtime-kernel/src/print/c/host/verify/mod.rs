//! Checks a schedule against the function that it is a schedule of, without any of the analysis that made it.
//!
//! | file | what it proves |
//! | --- | --- |
//! | `order` | every statement is there once, in its place in control flow; what runs ahead of others may |
//! | `values` | every value is defined before it is used, and kept where another region uses it |
//! | `variables` | variables live where all their uses find them, with their initial value |
//! | `shared` | what runs once is the same for all items, and touches nothing that they write |
//! | `leaving` | items that have returned or skipped ahead execute nothing |
//! | `promise` | no dependences are promised only where there are none |
//! | `row_facts` | accesses that a row leaves unchecked are linear, and what is computed before a row is known there |
//! | `hoisted` | accesses that are checked before a loop follow its counter |
//!
//! That a condition which stands before an access proves it in range is the business of [`crate::analysis::proof`]; that the
//! access stays behind the condition is checked here. So is not that a condition is uniform: `crate::analysis::uniformity`
//! says that, and here only that it is evaluated where the schedule says.

mod early_exit;
mod evaluated;
mod hoisted_checks;
mod independence;
mod order;
mod row_facts;
#[cfg(test)]
mod tests;
mod uniform_code;
mod values;
mod variables;

use std::fmt;

use self::evaluated::Evaluated;
use super::schedule::Schedule;
use crate::analysis::proof::Frame;

/// What a schedule breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The statements of the program, each once, in the same control flow.
    Order,
    /// Nothing runs ahead of what decides whether it runs, unless it can neither fail nor be noticed.
    Ahead,
    /// Values are defined before they are used.
    Definition,
    /// What another region uses is kept per item.
    Kept,
    /// Variables live where all uses find them.
    Home,
    /// What runs once is the same for all items.
    Shared,
    /// Items that have returned or skipped ahead execute nothing.
    Leaving,
    /// The promise that a loop has no dependences.
    Promise,
    /// Accesses without checks are linear in the place of the item.
    Claim,
}

/// Why a schedule is not printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) rule: Rule,
    pub(super) detail: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

type Verdict = Result<(), Rejected>;

/// Fails unless a condition holds.
fn ensure(holds: bool, rule: Rule, detail: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Rejected { rule, detail: detail() }) }
}

/// Proves that a schedule does what the function does.
///
/// # Errors
/// The first rule that it breaks.
pub(super) fn verify(schedule: &Schedule, frame: Frame<'_>) -> Verdict {
    let walk = Evaluated::new(schedule, frame);
    order::verify(&walk)?;
    uniform_code::verify(&walk)?;
    values::verify(&walk)?;
    variables::verify(&walk)?;
    early_exit::verify(&walk)?;
    independence::verify(&walk)?;
    row_facts::verify(&walk)?;
    hoisted_checks::verify(&walk)
}
