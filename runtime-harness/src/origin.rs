//! When, where and how a report was made: what is the same for all of its rows.

use std::time::SystemTime;

use runtime_core::backend::{SandboxPolicy, missing_sandbox_parts};
use serde::{Deserialize, Serialize};

/// How a report was made. [`Program`](crate::describe::Program) says by what, rows say of which code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// When the command began (RFC 3339, UTC).
    pub time: String,
    /// The name of the machine that ran the command; `None` if the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The command line, as a shell takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The sandbox of compilers of kernels, and of runners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxState>,
}

/// How much of a sandbox programs had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// All of it.
    Whole,
    /// What the system has of it.
    PartlyMissing,
    /// None was asked for.
    Off,
}

impl SandboxState {
    /// What a policy means on this system.
    #[must_use]
    pub fn of(policy: SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::Off => Self::Off,
            SandboxPolicy::BestEffort if !missing_sandbox_parts().is_empty() => Self::PartlyMissing,
            SandboxPolicy::BestEffort | SandboxPolicy::Required => Self::Whole,
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::PartlyMissing => "partly_missing",
            Self::Off => "off",
        }
    }
}

impl Origin {
    /// That of what this process does from now on.
    #[must_use]
    pub fn of_process(sandbox: Option<SandboxState>) -> Self {
        // Where the program is says nothing of what it did.
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = std::iter::once("runtime".to_owned()).chain(words).collect();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        Self {
            time: now(),
            host: host.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
            command: shlex::try_join(words.iter().map(String::as_str)).ok(),
            sandbox,
        }
    }

    /// When, and where.
    #[must_use]
    pub fn time_and_host(&self) -> String {
        self.host.as_ref().map_or_else(|| self.time.clone(), |host| format!("{} on {host}", self.time))
    }
}

/// The time in reports: RFC 3339, UTC.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
