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

/// A verdict: the second argument and the rest say what is wrong if the first is false.
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if $holds { Ok(()) } else { Err(format!($($why)+)) }
    };
}

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

/// The rules of a schedule, each under the name of the file that verifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Order,
    UniformCode,
    Values,
    Variables,
    EarlyExit,
    Independence,
    RowFacts,
    HoistedChecks,
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

/// What is wrong, if anything is.
type Verdict = Result<(), String>;

type Verify = fn(&Evaluated<'_, '_>) -> Verdict;

/// Verifies a schedule.
///
/// # Errors
/// The first rule that it breaks.
pub(super) fn verify(schedule: &Schedule, context: FunctionContext<'_>) -> Result<(), Rejected> {
    let on = Evaluated::new(schedule, context);
    let rules: [(Rule, Verify); 8] = [
        (Rule::Order, order::verify),
        (Rule::UniformCode, uniform_code::verify),
        (Rule::Values, values::verify),
        (Rule::Variables, variables::verify),
        (Rule::EarlyExit, early_exit::verify),
        (Rule::Independence, independence::verify),
        (Rule::RowFacts, row_facts::verify),
        (Rule::HoistedChecks, hoisted_checks::verify),
    ];
    let broken = |(rule, verify): (Rule, Verify)| verify(&on).map_err(|detail| Rejected { rule, detail });
    rules.into_iter().try_for_each(broken)
}
