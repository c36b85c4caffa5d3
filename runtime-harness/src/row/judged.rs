//! What the verdict about code that is not trusted rests on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a candidate was judged: in a runner, a process of its own, or watched by the worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Whether the sandbox of its process was whole; `None` if it ran in the worker, on a device or as portable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandboxed: Option<bool>,
    /// The inputs that it was called with.
    pub inputs: Inputs,
    /// What the caches held when windows began; `None` in rows of older versions, and if none began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheState>,
    /// Of a row that is rejected: the seed of the fresh inputs, for `--input-seed`. Others stay secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_seed: Option<u64>,
    /// Of a row that is rejected: what has found that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Finding>,
}

/// What the caches hold when a window of calls begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// What a call before it has left there: it was made with the same tensors, and is not timed.
    Warm,
    /// What windows with other tensors have left there: two sets are used in turn.
    Rotating,
}

impl CacheState {
    /// That of a window behind a call with the same tensors, or behind none.
    pub(crate) const fn of(is_warmed: bool) -> Self {
        if is_warmed { Self::Warm } else { Self::Rotating }
    }
}

/// A check that has rejected a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The window of calls that it was about, counted from 1.
    pub window: u64,
}

/// When windows are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The first call with each set of tensors.
    FirstCalls,
    /// A window that may be timed: chosen at random, or because a block of it is wrong.
    TimedWindow,
    /// The last window that is timed.
    LastWindow,
    /// A call behind them on what the one before has left.
    LaterCall,
    /// A single call behind them, in most cases on inputs that the candidate has never seen.
    SingleCall,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let check = match self.check {
            Check::FirstCalls => "a first call",
            Check::TimedWindow => "one of those that are timed",
            Check::LastWindow => "the last one that is timed",
            Check::LaterCall => "a call on the results of the one before",
            Check::SingleCall => "a single call behind those that are timed",
        };
        write!(f, "found in window {}, {check}", self.window)
    }
}

/// The inputs that a candidate was called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inputs {
    /// Those of the spec, and others that it had never seen.
    Fresh,
    /// Always those of the spec: none is random, or what is expected comes from files.
    Fixed,
}

impl Inputs {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Fixed => "fixed",
        }
    }
}
