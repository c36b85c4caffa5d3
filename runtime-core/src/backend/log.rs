//! Logging from a backend to the host's log.

#![allow(unsafe_code, reason = "calls the host's log function")]

use crate::abi::Str;

/// Writes to the host's log. A backend never prints.
#[derive(Clone, Copy, Debug)]
pub struct Log(pub(crate) Option<unsafe extern "C" fn(u32, Str, Str)>);

/// Severity of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// A failure.
    Error = 1,
    /// An anomaly.
    Warning = 2,
    /// A notable event.
    Info = 3,
    /// For debugging the backend.
    Debug = 4,
    /// Very detailed tracing.
    Trace = 5,
}

impl Log {
    /// A log that discards every record, for unit tests of a backend.
    #[must_use]
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Writes a record. `target` is the backend's name or a component of it, such as `cuda::module`.
    pub fn write(self, level: Level, target: &str, message: &str) {
        if let Some(log) = self.0 {
            // SAFETY: the host's log function is valid for the life of the process, and the strings outlive
            // the call.
            unsafe { log(level as u32, Str::new(target), Str::new(message)) };
        }
    }
}
