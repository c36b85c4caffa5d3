//! Verifies a schedule against its function, sharing nothing with the analysis that produced it.
//!
//! | file | what it proves |
//! | --- | --- |
//! | `order` | every statement occurs once, at its place in control flow; those that run ahead of others may do so |
//! | `values` | every value is defined before its use, and stored if another region uses it |
//! | `variables` | variables are stored where all uses find them, with their initial value |
//! | `uniform_code` | what runs once is uniform, and does not touch what invocations write |
//! | `early_exit` | invocations that have returned or jumped ahead execute nothing |
//! | `independence` | loops are declared free of dependences only if they are |
//! | `row_facts` | accesses that a row leaves unchecked are linear, and their inputs are available before the row |
//! | `hoisted_checks` | accesses whose checks are hoisted out of a loop follow its counter |
//!
//! Two things are taken from the analyses: that a condition before an access proves it in range
//! ([`crate::analysis::proof`]), and that a condition is uniform ([`crate::analysis::uniformity`]). Checked here is
//! that the access stays behind that condition, and that the condition is evaluated where the schedule says.

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
use crate::analysis::proof::FunctionContext;

/// The rule that a schedule breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The statements of the program, each once, in the same control flow.
    Order,
    /// Nothing runs ahead of its condition, unless it can neither fail nor be observed.
    Ahead,
    /// Values are defined before they are used.
    Definition,
    /// Values that another region uses are stored per invocation.
    Kept,
    /// Variables are stored where all uses find them.
    Storage,
    /// What runs once is uniform.
    Shared,
    /// Invocations that have returned or jumped ahead execute nothing.
    Leaving,
    /// Loops declared free of dependences have none.
    Promise,
    /// Unchecked accesses are linear in the position of the invocation.
    Claim,
}

/// Why a schedule is rejected.
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

/// Verifies a schedule.
///
/// # Errors
/// The first rule that it breaks.
pub(super) fn verify(schedule: &Schedule, context: FunctionContext<'_>) -> Verdict {
    let walk = Evaluated::new(schedule, context);
    order::verify(&walk)?;
    uniform_code::verify(&walk)?;
    values::verify(&walk)?;
    variables::verify(&walk)?;
    early_exit::verify(&walk)?;
    independence::verify(&walk)?;
    row_facts::verify(&walk)?;
    hoisted_checks::verify(&walk)
}
