//! The way into the program's log.

#![allow(unsafe_code, reason = "calls the host's log function")]

use crate::abi::Str;

/// A way into the program's log; a backend never prints.
#[derive(Clone, Copy, Debug)]
pub struct Log(pub(crate) Option<unsafe extern "C" fn(u32, Str, Str)>);

/// Severity of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is odd.
    Warning = 2,
    /// Something happened.
    Info = 3,
    /// For the author.
    Debug = 4,
    /// For the patient.
    Trace = 5,
}

impl Log {
    /// A log that goes nowhere: for the unit tests of a backend.
    #[must_use]
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Writes a record; `target` is the backend's name, or a part of it such as `cuda::module`.
    pub fn write(self, level: Level, target: &str, message: &str) {
        if let Some(log) = self.0 {
            // SAFETY: the host's log function lives as long as the process and takes borrowed text.
            unsafe { log(level as u32, Str::new(target), Str::new(message)) };
        }
    }
}
