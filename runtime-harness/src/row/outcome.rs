//! How an evaluation ended.

use runtime_core::evaluate::Mismatch;
use runtime_core::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use super::{Bound, is_skipped};
use crate::number_format::duration;
use crate::printable::printable;

/// How an evaluation ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// It ran, and its outputs are right or were not checked.
    Ok,
    /// It ran, and an output is wrong.
    WrongResult(Mismatch),
    /// It ran, and its outputs are right or were not checked, but a single call takes much longer than one of a batch: not all calls of
    /// a batch do the work.
    Inconsistent {
        /// A call of a batch, in nanoseconds.
        batch_ns: f64,
        /// The shortest of the single calls on inputs that it had never seen, in nanoseconds.
        single_ns: f64,
    },
    /// It ran, and its outputs are right or were not checked, but no program does on this device in this time what `[cost]` says that
    /// a call needs.
    Impossible {
        /// A call, in nanoseconds: the median.
        median_ns: f64,
        /// The least that it takes.
        #[serde(flatten)]
        bound: Bound,
    },
    /// Its code does not compile or link.
    CompileFailed {
        /// The complete log.
        log: String,
    },
    /// It could not be prepared or launched, reported a failure, or trapped on an embedded device.
    LaunchFailed {
        /// The error.
        message: String,
    },
    /// A deadline passed.
    Timeout {
        /// What was running.
        phase: Phase,
    },
    /// Its process was ended by a signal.
    Crashed {
        /// The signal.
        signal: i32,
        /// What was running.
        operation: Option<String>,
        /// The last lines that the process wrote.
        output: String,
    },
    /// It ended its process.
    Exited {
        /// The exit code.
        code: i32,
        /// What was running.
        operation: Option<String>,
        /// The last lines that the process wrote.
        output: String,
    },
    /// The device was lost.
    DeviceLost,
    /// Memory was exhausted.
    OutOfMemory,
    /// Another resource was exhausted, e.g. registers or work-group memory.
    OutOfResources,
    /// It did not run: the device is unavailable or cannot run it.
    Skipped {
        /// The reason.
        reason: String,
    },
}

/// A part of an evaluation, which has a deadline of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Initial data and the expected outputs; opening the device.
    Prepare,
    /// Loading the code and placing its tensors.
    Compile,
    /// Waiting for another process to release the device. It has no deadline.
    Wait,
    /// Checking and timing.
    Run,
}

/// The status of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every output matches.
    Right,
    /// An output is wrong.
    Wrong,
    /// Its times contradict each other.
    Inconsistent,
    /// Its time is below what its device can do.
    Impossible,
    /// It ran unchecked.
    Unchecked,
    /// The device cannot run it.
    NotRun,
    /// It should have run but did not.
    Failed,
}

impl Status {
    /// All of them, in the order of summaries.
    pub const ALL: [Self; 7] = [
        Self::Right,
        Self::Wrong,
        Self::Inconsistent,
        Self::Impossible,
        Self::Unchecked,
        Self::Failed,
        Self::NotRun,
    ];

    /// Whether it runs against what was expected: exit codes and comparisons tell.
    #[must_use]
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Wrong | Self::Inconsistent | Self::Impossible | Self::Failed)
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::Inconsistent => "inconsistent",
            Self::Impossible => "impossible",
            Self::Unchecked => "unchecked",
            Self::NotRun => "not_run",
            Self::Failed => "failed",
        }
    }
}

impl Outcome {
    /// The outcome of an evaluation that failed in `phase`.
    #[must_use]
    pub fn of_error(error: &Error, phase: Phase) -> Self {
        match error.kind() {
            kind if is_skipped(kind) => Self::Skipped { reason: error_text(error) },
            ErrorKind::CompileFailed => Self::CompileFailed { log: error_text(error) },
            ErrorKind::Timeout => Self::Timeout { phase },
            ErrorKind::DeviceLost => Self::DeviceLost,
            ErrorKind::OutOfMemory => Self::OutOfMemory,
            ErrorKind::OutOfResources => Self::OutOfResources,
            _ => Self::LaunchFailed { message: error_text(error) },
        }
    }

    /// The status of a row with this outcome, before its outputs are considered.
    pub(super) const fn status(&self) -> Status {
        match self {
            Self::Ok => Status::Unchecked,
            Self::WrongResult(_) => Status::Wrong,
            Self::Inconsistent { .. } => Status::Inconsistent,
            Self::Impossible { .. } => Status::Impossible,
            Self::Skipped { .. } => Status::NotRun,
            _ => Status::Failed,
        }
    }

    /// The kind of error that it stands for; `None` if its process ended, or there was none.
    pub(super) const fn error_kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Ok
            | Self::WrongResult(_)
            | Self::Inconsistent { .. }
            | Self::Impossible { .. }
            | Self::Crashed { .. }
            | Self::Exited { .. } => None,
            Self::CompileFailed { .. } => Some(ErrorKind::CompileFailed),
            Self::LaunchFailed { .. } => Some(ErrorKind::Failed),
            Self::Timeout { .. } => Some(ErrorKind::Timeout),
            Self::DeviceLost => Some(ErrorKind::DeviceLost),
            Self::OutOfMemory => Some(ErrorKind::OutOfMemory),
            Self::OutOfResources => Some(ErrorKind::OutOfResources),
            Self::Skipped { .. } => Some(ErrorKind::Unavailable),
        }
    }

    /// The outcome in words; `None` for `Ok`.
    pub(crate) fn reason(&self) -> Option<String> {
        let ended = |how: String, operation: &Option<String>, output: &str| {
            let operation = operation.as_ref().map_or(String::new(), |operation| format!(" {operation}"));
            let output = if output.is_empty() { String::new() } else { format!("\n{output}") };
            Some(format!("{how}{operation}{output}"))
        };
        match self {
            Self::Ok | Self::WrongResult(_) => None,
            Self::Inconsistent { batch_ns, single_ns } => Some(format!(
                "a call of a batch takes {}, and a single one on inputs that it has never seen {}: not all calls do the work",
                duration(*batch_ns),
                duration(*single_ns)
            )),
            Self::Impossible { median_ns, bound } => Some(bound.broken_by(*median_ns)),
            Self::CompileFailed { log } => Some(log.clone()),
            Self::LaunchFailed { message } => Some(message.clone()),
            Self::Timeout { phase } => Some(format!("the deadline passed {}", phase.activity())),
            Self::Crashed { signal, operation, output } => ended(signal_name(*signal), operation, output),
            Self::Exited { code, operation, output } => {
                ended(format!("the process exited with code {code}"), operation, output)
            }
            Self::DeviceLost => Some("the device was lost".to_owned()),
            Self::OutOfMemory => Some("out of memory".to_owned()),
            Self::OutOfResources => Some("out of resources".to_owned()),
            Self::Skipped { reason } => Some(reason.clone()),
        }
    }
}

impl Phase {
    const fn activity(self) -> &'static str {
        match self {
            Self::Prepare => "while the data and the expected outputs were prepared",
            Self::Compile => "while the kernel was loaded",
            Self::Wait => "while another process used the device",
            Self::Run => "while the kernel ran",
        }
    }
}

/// The error text, with a prefix that identifies a lack of memory.
#[must_use]
pub fn error_text(error: &Error) -> String {
    match error.kind() {
        ErrorKind::OutOfMemory if !error.message().starts_with("out of memory") => {
            format!("out of memory: {error}")
        }
        _ => error.to_string(),
    }
}

/// The most informative line of an error: a compiler's first error, which notes and warnings may precede.
#[must_use]
pub fn headline(text: &str) -> String {
    let is_error = |line: &&str| line.contains(": error:") || line.contains(": fatal error:");
    let found = text.lines().find(is_error).or_else(|| text.lines().find(|line| !line.trim().is_empty()));
    printable(found.unwrap_or_default()).trim().to_owned()
}

fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 9] = [
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    let known = NAMES.iter().find(|(number, _)| *number == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Limit;

    #[test]
    fn every_kind_of_error_has_an_outcome() {
        let outcome = |kind| Outcome::of_error(&Error::new(kind, "why"), Phase::Run);
        let text = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
        for (kind, json) in [
            (ErrorKind::Unsupported, r#"{"kind":"skipped","reason":"why"}"#),
            (ErrorKind::CompileFailed, r#"{"kind":"compile_failed","log":"why"}"#),
            (ErrorKind::Timeout, r#"{"kind":"timeout","phase":"run"}"#),
            (ErrorKind::DeviceLost, r#"{"kind":"device_lost"}"#),
            (ErrorKind::OutOfResources, r#"{"kind":"out_of_resources"}"#),
            (ErrorKind::Driver, r#"{"kind":"launch_failed","message":"why"}"#),
            // Older versions read reports, too; they know no other form.
            (ErrorKind::Crashed, r#"{"kind":"launch_failed","message":"why"}"#),
        ] {
            assert_eq!(text(&outcome(kind)), json);
            assert_eq!(serde_json::from_str::<Outcome>(json).unwrap(), outcome(kind));
        }
    }

    #[test]
    fn a_crash_says_what_was_running() {
        let crashed = Outcome::Crashed {
            signal: libc::SIGSEGV,
            operation: Some("while \"k\" ran on host:0".to_owned()),
            output: "last words".to_owned(),
        };
        assert_eq!(crashed.reason().unwrap(), "SIGSEGV while \"k\" ran on host:0\nlast words");
        assert_eq!((crashed.status(), crashed.error_kind()), (Status::Failed, None));
    }

    #[test]
    fn times_that_contradict_each_other_are_both_told() {
        let doubt = Outcome::Inconsistent { batch_ns: 1500.0, single_ns: 2.5e6 };
        let reason = doubt.reason().unwrap();
        assert!(reason.contains("a batch takes 1.500 µs") && reason.contains("seen 2.500 ms"), "{reason}");
        assert_eq!((doubt.status(), doubt.error_kind()), (Status::Inconsistent, None));
    }

    #[test]
    fn an_impossible_time_is_told_with_what_forbids_it() {
        let bound = Bound {
            limit: Limit::Memory,
            least_ns: 2.5e6,
            peak: "L3 bandwidth".to_owned(),
            rate: 70.0,
            slack: 2.0,
        };
        let outcome = Outcome::Impossible { median_ns: 1500.0, bound };
        let reason = outcome.reason().unwrap();
        for part in ["takes 1.500 µs", "bytes", "2.500 ms at 2 times", "L3 bandwidth", "error of the spec"] {
            assert!(reason.contains(part), "{part}: {reason}");
        }
        assert_eq!((outcome.status(), outcome.error_kind()), (Status::Impossible, None));
        let json = r#"{"kind":"impossible","median_ns":1500.0,"limit":"memory","least_ns":2500000.0,"peak":"L3 bandwidth","rate":70.0,"slack":2.0}"#;
        assert_eq!(serde_json::to_string(&outcome).unwrap(), json);
        assert_eq!(serde_json::from_str::<Outcome>(json).unwrap(), outcome);
    }

    #[test]
    fn the_headline_is_the_compilers_first_error() {
        let log =
            "k.c: In function 'f':\nk.c:1:2: warning: x\nk.c:1:20: error: 'u' undeclared\nexit status: 1: cc";
        assert_eq!(headline(log), "k.c:1:20: error: 'u' undeclared");
        assert_eq!(headline("x: 8 bytes\x1b[2J"), "x: 8 bytes [2J");
    }
}
