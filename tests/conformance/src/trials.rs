//! From devices and cases to the trials that the test runner runs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};

use crate::case::{Case, Failure, Verdict};
use crate::context::Context;
use crate::exceptions::{self, Exception, Expectation};
use crate::plan::{Absent, Plan};
use crate::topics::TOPICS;

/// No case takes this long; one that does hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Everything that is reported: a trial per device and case, and one for whatever could not be tested.
pub(crate) fn trials(plan: Plan, table: &'static [Exception]) -> Vec<Trial> {
    let mut trials: Vec<_> = plan.absent.into_iter().map(absent).collect();
    for context in &plan.devices {
        for (topic, cases) in TOPICS {
            trials.extend(cases.iter().map(|case| trial(context, topic, case, table)));
        }
    }
    trials
}

fn absent(absent: Absent) -> Trial {
    let Absent { name, reason, excused } = absent;
    Trial::ignorable_test(format!("{name}::open"), move || {
        if excused { Ok(Completion::ignored_with(reason)) } else { Err(Failed::from(reason)) }
    })
}

fn trial(context: &Arc<Context>, topic: &str, case: &'static Case, table: &'static [Exception]) -> Trial {
    let context = context.clone();
    let case_name = format!("{topic}::{}", case.name);
    let name = format!("{}::{case_name}", context.name());
    let thread = name.clone();
    Trial::ignorable_test(name, move || {
        let exception = exceptions::find(table, &context.target().name, &case_name);
        if let Some(Exception { expectation: Expectation::Unsupported, reason, .. }) = exception {
            return Ok(Completion::ignored_with(reason));
        }
        if let Some(missing) = case.needs.iter().find_map(|need| need.missing(&context)) {
            return Ok(Completion::ignored_with(format!("the device lacks: {missing}")));
        }
        conclude(run(&context, case, thread), exception)
    })
}

/// Turns a verdict into the runner's outcome, in the light of what was expected.
fn conclude(verdict: Verdict, exception: Option<&Exception>) -> Result<Completion, Failed> {
    match (verdict, exception) {
        (Ok(()), None) => Ok(Completion::Completed),
        (Ok(()), Some(exception)) => Err(Failed::from(format!(
            "expected to fail ({}), but it passed: strike it off the table",
            exception.reason
        ))),
        (Err(Failure::Unsupported(reason)), _) => Ok(Completion::ignored_with(reason)),
        (Err(Failure::Failed(text)), Some(exception)) => {
            Ok(Completion::ignored_with(format!("fails as expected ({}): {text}", exception.reason)))
        }
        (Err(failure), None) => Err(Failed::from(failure)),
    }
}

/// Runs a case on a thread of its own, which is left behind if it does not end.
fn run(context: &Arc<Context>, case: &'static Case, thread: String) -> Verdict {
    let (sender, receiver) = mpsc::channel();
    let context = context.clone();
    let body = move || {
        let verdict = catch_unwind(AssertUnwindSafe(|| (case.run)(&context)));
        // Nobody listens to a case that took too long.
        let _ = sender.send(verdict.unwrap_or_else(|panic| Err(Failure::Failed(message(&*panic)))));
    };
    let spawned = std::thread::Builder::new().name(thread).spawn(body);
    spawned.map_err(|error| Failure::Failed(format!("no thread for the case: {error}")))?;
    receiver
        .recv_timeout(DEADLINE)
        .unwrap_or_else(|_| Err(Failure::Failed(format!("it hangs: no end after {DEADLINE:?}"))))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
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
        assert!(conclude(Ok(()), Some(&EXPECTED)).is_err());
        assert!(conclude(Ok(()), None).is_ok());
        assert!(conclude(Err(Failure::Failed("x".into())), None).is_err());
    }

    #[test]
    fn what_is_not_tested_is_ignored_with_its_reason() {
        let reason = |verdict, exception| match conclude(verdict, exception) {
            Ok(Completion::Ignored { reason }) => reason.unwrap_or_default(),
            _ => String::new(),
        };
        assert_eq!(reason(Err(Failure::Unsupported("no such thing".into())), None), "no such thing");
        assert!(reason(Err(Failure::Failed("boom".into())), Some(&EXPECTED)).contains("known"));
    }
}
