//! Turns devices and cases into the trials of the test runner.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};

use crate::case::{Case, Failure, Verdict};
use crate::context::Context;
use crate::exceptions::{self, Exception, Expectation};
use crate::output::StopFlag;
use crate::plan::{Absent, Plan};
use crate::report::{Outcome, Records};
use crate::runner::run_case;
use crate::topics::TOPICS;

/// A case that takes longer than this hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Read-locked by every running case; write-locked by one that must run alone.
static TURN: RwLock<()> = RwLock::new(());

/// One trial per device and case, and one for each device that cannot be tested. Outcomes are added to `records`.
pub(crate) fn trials(
    plan: &Plan,
    table: &'static [Exception],
    records: &Records,
    stop: &StopFlag,
) -> Vec<Trial> {
    let mut trials: Vec<_> = plan.absent.iter().map(absent).collect();
    for context in &plan.devices {
        for (topic, cases) in TOPICS {
            trials.extend(cases.iter().map(|case| trial(context, topic, case, table, (records, stop))));
        }
    }
    trials
}

fn absent(absent: &Absent) -> Trial {
    let Absent { name, reason, excused } = absent.clone();
    let reason = format!("{reason}; {} cases are not run", crate::case_count());
    Trial::ignorable_test(format!("{name}::open"), move || {
        if excused { Ok(Completion::ignored_with(reason)) } else { Err(Failed::from(reason)) }
    })
}

fn trial(
    context: &Arc<Context>,
    topic: &str,
    case: &'static Case,
    table: &'static [Exception],
    (records, stop): (&Records, &StopFlag),
) -> Trial {
    let (context, records, stop) = (context.clone(), records.clone(), stop.clone());
    let case_name = format!("{topic}::{}", case.name);
    let name = format!("{}::{case_name}", context.name());
    let thread = name.clone();
    Trial::ignorable_test(name, move || {
        if stop.is_set() {
            return Ok(Completion::ignored_with("the run was stopped"));
        }
        let exception = exceptions::find(table, &context.target().name, &case_name);
        let outcome = outcome(&context, case, &thread, exception);
        let completion = outcome.completion();
        records.push(context.name(), &case_name, outcome);
        completion
    })
}

fn outcome(
    context: &Arc<Context>,
    case: &'static Case,
    thread: &str,
    exception: Option<&Exception>,
) -> Outcome {
    if let Some(Exception { expectation: Expectation::Unsupported, reason, .. }) = exception {
        return Outcome::Unsupported((*reason).to_owned());
    }
    let missing = case.missing(context);
    if !missing.is_empty() {
        return Outcome::Missing(missing);
    }
    let _alone = case.is_alone().then(|| TURN.write());
    let _beside_others = (!case.is_alone()).then(|| TURN.read());
    conclude(run_case(context.clone(), case, thread, DEADLINE).into(), exception)
}

/// Turns a verdict into an outcome, taking the expected exception into account.
fn conclude(verdict: Verdict, exception: Option<&Exception>) -> Outcome {
    match (verdict, exception) {
        (Ok(()), None) => Outcome::Passed,
        (Ok(()), Some(exception)) => Outcome::Failed(format!(
            "expected to fail ({}), but passed: remove it from the table of exceptions",
            exception.reason
        )),
        (Err(Failure::Unsupported(reason)), _) => Outcome::Unsupported(reason),
        (Err(failure), Some(exception)) => {
            Outcome::FailedAsExpected(exception.reason.to_owned(), failure.to_string())
        }
        (Err(failure), None) => Outcome::Failed(failure.to_string()),
    }
}

impl Outcome {
    /// The outcome as the test runner reports it: passed, failed or ignored.
    fn completion(&self) -> Result<Completion, Failed> {
        match self {
            Self::Passed => Ok(Completion::Completed),
            Self::Failed(text) => Err(Failed::from(text)),
            Self::Unsupported(reason) => Ok(Completion::ignored_with(reason)),
            Self::Missing(missing) => {
                let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
                Ok(Completion::ignored_with(format!("the device lacks: {}", missing.join(", "))))
            }
            Self::FailedAsExpected(reason, text) => {
                Ok(Completion::ignored_with(format!("fails as expected ({reason}): {text}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: Exception = Exception {
        backend: "b",
        pattern: "t::c",
        expectation: Expectation::ExpectedFailure,
        reason: "known",
    };

    #[test]
    fn an_expected_failure_that_passes_fails() {
        assert!(conclude(Ok(()), Some(&EXPECTED)).completion().is_err());
        assert!(conclude(Ok(()), None).completion().is_ok());
        assert!(conclude(Err(Failure::Failed("x".into())), None).completion().is_err());
    }

    #[test]
    fn what_is_not_tested_is_ignored_with_its_reason() {
        let reason = |outcome: Outcome| match outcome.completion() {
            Ok(Completion::Ignored { reason }) => reason.unwrap_or_default(),
            _ => String::new(),
        };
        assert_eq!(
            reason(conclude(Err(Failure::Unsupported("no such thing".into())), None)),
            "no such thing"
        );
        assert!(reason(conclude(Err(Failure::Failed("boom".into())), Some(&EXPECTED))).contains("known"));
    }
}
