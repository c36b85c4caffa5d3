//! What is asked of a worker, and what it answers: a line of JSON each.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use runtime_core::ErrorKind;
use serde_json::{Value, json};

use super::lies::LIES;
use super::state::{Fault, Wrong};

/// The kinds of error that a call is refused with.
pub(super) const KINDS: [(&str, ErrorKind); 4] = [
    ("driver", ErrorKind::Driver),
    ("device_lost", ErrorKind::DeviceLost),
    ("out_of_memory", ErrorKind::OutOfMemory),
    ("unsupported", ErrorKind::Unsupported),
];

/// One run of a case.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Path of the backend.
    pub(super) library: String,
    pub(super) device: String,
    /// `topic::case`.
    pub(super) case: String,
    /// The call to refuse; none: only count.
    pub(super) fault: Option<Fault>,
    /// By when the case must have ended.
    pub(super) deadline: Duration,
}

/// How the case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ended {
    Passed,
    /// With an error.
    Error,
    /// With data that is not what it should be.
    Differs,
    /// With another expectation that did not hold.
    Asserts,
    Unsupported,
    Hangs,
    /// The process died.
    Died,
    /// It could not even begin.
    Unusable,
}

const ENDED: [(&str, Ended); 8] = [
    ("passed", Ended::Passed),
    ("error", Ended::Error),
    ("differs", Ended::Differs),
    ("asserts", Ended::Asserts),
    ("unsupported", Ended::Unsupported),
    ("hangs", Ended::Hangs),
    ("died", Ended::Died),
    ("unusable", Ended::Unusable),
];

/// What became of a run.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) ended: Ended,
    pub(super) text: String,
    /// The call to refuse came.
    pub(super) reached: bool,
    pub(super) elapsed: Duration,
    /// Objects that were never closed.
    pub(super) left: Vec<String>,
    /// Objects that were used or closed when they must not be.
    pub(super) broken: Vec<String>,
    /// Panics in core.
    pub(super) panics: Vec<String>,
    /// Calls of each function, and those before the case began.
    pub(super) counts: BTreeMap<String, u64>,
    pub(super) prelude: BTreeMap<String, u64>,
}

impl Wrong {
    fn parse(name: &str) -> Option<Self> {
        let refused = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| Self::Refused(*kind));
        refused.or_else(|| LIES.iter().find(|(known, _)| *known == name).map(|(_, lie)| Self::Lie(*lie)))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Refused(kind) => KINDS.iter().find(|(_, known)| known == kind).map(|(name, _)| *name),
            Self::Lie(lie) => LIES.iter().find(|(_, known)| known == lie).map(|(name, _)| *name),
        };
        f.write_str(name.unwrap_or("unknown"))
    }
}

impl Job {
    pub(super) fn line(&self) -> String {
        let fault = self
            .fault
            .as_ref()
            .map(|fault| json!({"entry": fault.entry, "nth": fault.nth, "wrong": fault.wrong.to_string()}));
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
                entry: fault["entry"].as_str()?.to_owned(),
                nth: fault["nth"].as_u64()?,
                wrong: Wrong::parse(fault["wrong"].as_str()?)?,
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

impl Answer {
    /// An answer of a run that saw nothing.
    pub(super) fn new(ended: Ended, text: impl Into<String>) -> Self {
        Self {
            ended,
            text: text.into(),
            reached: false,
            elapsed: Duration::ZERO,
            left: Vec::new(),
            broken: Vec::new(),
            panics: Vec::new(),
            counts: BTreeMap::new(),
            prelude: BTreeMap::new(),
        }
    }

    /// Whether the process that gave it may be asked again.
    pub(super) fn is_harmless(&self) -> bool {
        self.left.is_empty() && self.broken.is_empty() && self.panics.is_empty() && self.ended < Ended::Hangs
    }

    pub(super) fn line(&self) -> String {
        json!({
            "ended": ENDED.iter().find(|(_, ended)| *ended == self.ended).map(|(name, _)| *name),
            "text": self.text,
            "reached": self.reached,
            "elapsed_ms": u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX),
            "left": self.left,
            "broken": self.broken,
            "panics": self.panics,
            "counts": self.counts,
            "prelude": self.prelude,
        })
        .to_string()
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let answer: Value = serde_json::from_str(line).ok()?;
        let texts = |key: &str| -> Option<Vec<String>> {
            answer[key].as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let counts = |key: &str| -> Option<BTreeMap<String, u64>> {
            answer[key].as_object()?.iter().map(|(name, n)| Some((name.clone(), n.as_u64()?))).collect()
        };
        Some(Self {
            ended: ENDED.iter().find(|(name, _)| answer["ended"] == *name)?.1,
            text: answer["text"].as_str()?.to_owned(),
            reached: answer["reached"].as_bool()?,
            elapsed: Duration::from_millis(answer["elapsed_ms"].as_u64()?),
            left: texts("left")?,
            broken: texts("broken")?,
            panics: texts("panics")?,
            counts: counts("counts")?,
            prelude: counts("prelude")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_and_an_answer_cross_the_pipe() {
        let fault =
            Fault { entry: "queue.mark".into(), nth: 3, wrong: Wrong::Refused(ErrorKind::DeviceLost) };
        let job = Job {
            library: "l.so".into(),
            device: "x:0".into(),
            case: "a::b".into(),
            fault: Some(fault),
            deadline: Duration::from_secs(2),
        };
        assert_eq!(Job::parse(&job.line()).unwrap().line(), job.line());
        for (_, lie) in LIES {
            let fault = Fault { entry: "queue.poll".into(), nth: 1, wrong: Wrong::Lie(lie) };
            let lying = Job { fault: Some(fault), ..job.clone() };
            assert_eq!(Job::parse(&lying.line()).unwrap().fault.unwrap().wrong, Wrong::Lie(lie));
        }
        let mut answer = Answer::new(Ended::Error, "two\nlines");
        answer.left.push("1 queue".into());
        answer.counts.insert("queue.mark".into(), 7);
        assert!(!answer.is_harmless());
        assert_eq!(Answer::parse(&answer.line()).unwrap().line(), answer.line());
        assert!(Job::parse("{}").is_none() && Answer::parse("noise of a kernel").is_none());
    }
}
