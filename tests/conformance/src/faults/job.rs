//! Requests to a worker and its replies, as one line of JSON each.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use runtime_core::ErrorKind;
use serde_json::{Value, json};

use super::corruption::CORRUPTIONS;
use super::object_tracker::{Fault, Injection};

/// The kinds of error that can be injected, by name.
pub(super) const KINDS: [(&str, ErrorKind); 4] = [
    ("driver", ErrorKind::Driver),
    ("device_lost", ErrorKind::DeviceLost),
    ("out_of_memory", ErrorKind::OutOfMemory),
    ("unsupported", ErrorKind::Unsupported),
];

/// One run of a case.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Path of the backend library.
    pub(super) library: String,
    pub(super) device: String,
    /// `topic::case`.
    pub(super) case: String,
    /// The fault to inject; if `None`, only count calls.
    pub(super) fault: Option<Fault>,
    /// The time limit of the case.
    pub(super) deadline: Duration,
}

/// How the case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunStatus {
    Passed,
    /// It returned an error.
    Error,
    /// It found wrong data.
    Differs,
    /// Another expectation failed.
    Asserts,
    Unsupported,
    Hangs,
    /// The process died.
    Died,
    /// The case could not be started.
    Unusable,
}

const STATUS_NAMES: [(&str, RunStatus); 8] = [
    ("passed", RunStatus::Passed),
    ("error", RunStatus::Error),
    ("differs", RunStatus::Differs),
    ("asserts", RunStatus::Asserts),
    ("unsupported", RunStatus::Unsupported),
    ("hangs", RunStatus::Hangs),
    ("died", RunStatus::Died),
    ("unusable", RunStatus::Unusable),
];

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct RunResult {
    pub(super) status: RunStatus,
    pub(super) text: String,
    /// Whether the faulted call was reached.
    pub(super) reached: bool,
    pub(super) elapsed: Duration,
    /// Objects that were never closed.
    pub(super) leaked: Vec<String>,
    /// Objects that were used or closed when they must not be.
    pub(super) violations: Vec<String>,
    /// Panics in core.
    pub(super) panics: Vec<String>,
    /// Calls of each function, in all and before the case began.
    pub(super) counts: BTreeMap<String, u64>,
    pub(super) setup_counts: BTreeMap<String, u64>,
}

impl Injection {
    fn parse(name: &str) -> Option<Self> {
        let error = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| Self::Error(*kind));
        error.or_else(|| {
            CORRUPTIONS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, corruption)| Self::Corrupt(*corruption))
        })
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Error(kind) => KINDS.iter().find(|(_, known)| known == kind).map(|(name, _)| *name),
            Self::Corrupt(corruption) => {
                CORRUPTIONS.iter().find(|(_, known)| known == corruption).map(|(name, _)| *name)
            }
        };
        f.write_str(name.unwrap_or("unknown"))
    }
}

impl Job {
    pub(super) fn line(&self) -> String {
        let fault = self
            .fault
            .as_ref()
            .map(|fault| json!({"function": fault.function, "nth": fault.nth, "injection": fault.injection.to_string()}));
        json!({
            "library": self.library,
            "device": self.device,
            "case": self.case,
            "fault": fault,
            "deadline_ms": u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX),
        })
        .to_string()
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let job: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| job[key].as_str().map(str::to_owned);
        let fault = match &job["fault"] {
            Value::Null => None,
            fault => Some(Fault {
                function: fault["function"].as_str()?.to_owned(),
                nth: fault["nth"].as_u64()?,
                injection: Injection::parse(fault["injection"].as_str()?)?,
            }),
        };
        Some(Self {
            library: text("library")?,
            device: text("device")?,
            case: text("case")?,
            fault,
            deadline: Duration::from_millis(job["deadline_ms"].as_u64()?),
        })
    }
}

impl RunResult {
    /// The result of a run without observations.
    pub(super) fn new(status: RunStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            reached: false,
            elapsed: Duration::ZERO,
            leaked: Vec::new(),
            violations: Vec::new(),
            panics: Vec::new(),
            counts: BTreeMap::new(),
            setup_counts: BTreeMap::new(),
        }
    }

    /// Whether the worker can run further jobs.
    pub(super) fn leaves_worker_reusable(&self) -> bool {
        self.leaked.is_empty()
            && self.violations.is_empty()
            && self.panics.is_empty()
            && self.status < RunStatus::Hangs
    }

    pub(super) fn line(&self) -> String {
        json!({
            "status": STATUS_NAMES.iter().find(|(_, status)| *status == self.status).map(|(name, _)| *name),
            "text": self.text,
            "reached": self.reached,
            "elapsed_ms": u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            "leaked": self.leaked,
            "violations": self.violations,
            "panics": self.panics,
            "counts": self.counts,
            "setup_counts": self.setup_counts,
        })
        .to_string()
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let result: Value = serde_json::from_str(line).ok()?;
        let texts = |key: &str| -> Option<Vec<String>> {
            result[key].as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let counts = |key: &str| -> Option<BTreeMap<String, u64>> {
            result[key].as_object()?.iter().map(|(name, n)| Some((name.clone(), n.as_u64()?))).collect()
        };
        Some(Self {
            status: STATUS_NAMES.iter().find(|(name, _)| result["status"] == *name)?.1,
            text: result["text"].as_str()?.to_owned(),
            reached: result["reached"].as_bool()?,
            elapsed: Duration::from_millis(result["elapsed_ms"].as_u64()?),
            leaked: texts("leaked")?,
            violations: texts("violations")?,
            panics: texts("panics")?,
            counts: counts("counts")?,
            setup_counts: counts("setup_counts")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_results_round_trip() {
        let fault = Fault {
            function: "queue.signal".into(),
            nth: 3,
            injection: Injection::Error(ErrorKind::DeviceLost),
        };
        let job = Job {
            library: "l.so".into(),
            device: "x:0".into(),
            case: "a::b".into(),
            fault: Some(fault),
            deadline: Duration::from_secs(2),
        };
        assert_eq!(Job::parse(&job.line()).unwrap().line(), job.line());
        for (_, corruption) in CORRUPTIONS {
            let fault =
                Fault { function: "queue.poll".into(), nth: 1, injection: Injection::Corrupt(corruption) };
            let corrupted = Job { fault: Some(fault), ..job.clone() };
            assert_eq!(
                Job::parse(&corrupted.line()).unwrap().fault.unwrap().injection,
                Injection::Corrupt(corruption)
            );
        }
        let mut result = RunResult::new(RunStatus::Error, "two\nlines");
        result.leaked.push("1 queue".into());
        result.counts.insert("queue.signal".into(), 7);
        assert!(!result.leaves_worker_reusable());
        assert_eq!(RunResult::parse(&result.line()).unwrap().line(), result.line());
        assert!(Job::parse("{}").is_none() && RunResult::parse("noise of a kernel").is_none());
    }
}
