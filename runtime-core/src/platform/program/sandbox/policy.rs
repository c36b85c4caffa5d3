//! Whether programs run in a sandbox.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// The variable that tells a process, and the backends in it, whether compilers of candidates run in a sandbox.
pub const SANDBOX_VARIABLE: &str = "RUNTIME_SANDBOX";

/// Whether programs that process code of strangers run in a [`Sandbox`](super::Sandbox).
///
/// Of two, the stricter one is the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SandboxPolicy {
    /// They do not: the code is the user's own.
    #[default]
    Off,
    /// With the parts that the system has.
    BestEffort,
    /// They do, or they do not run.
    Required,
}

impl SandboxPolicy {
    /// The policy of this process: that of the variable [`SANDBOX_VARIABLE`].
    ///
    /// # Errors
    /// `InvalidArgument` for another value than those of [`SandboxPolicy::from_str`].
    pub fn of_process() -> Result<Self> {
        match std::env::var_os(SANDBOX_VARIABLE) {
            None => Ok(Self::Off),
            Some(value) if value.is_empty() => Ok(Self::Off),
            Some(value) => {
                value.to_string_lossy().parse().map_err(|error: Error| error.in_operation(SANDBOX_VARIABLE))
            }
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::BestEffort => "best-effort",
            Self::Required => "required",
        }
    }
}

impl fmt::Display for SandboxPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SandboxPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::Off, Self::BestEffort, Self::Required];
        all.into_iter().find(|policy| policy.name() == text).ok_or_else(|| {
            Error::invalid(format!("unknown sandbox \"{text}\"; give required, best-effort or off"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for policy in [SandboxPolicy::Off, SandboxPolicy::BestEffort, SandboxPolicy::Required] {
            assert_eq!(policy.to_string().parse::<SandboxPolicy>().unwrap(), policy);
        }
        assert!("on".parse::<SandboxPolicy>().unwrap_err().message().contains("best-effort"));
    }
}
