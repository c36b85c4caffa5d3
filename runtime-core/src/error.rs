//! One error type for everything: kind, operation, message, device, the driver's own code, and a source.

use std::fmt;
use std::sync::Arc;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of failure an [`Error`] is: what a program decides on.
#[non_exhaustive]
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Not on this machine: no driver, no device. The only kind that lets a test be skipped.
    Unavailable = 1,
    /// The device or backend does not do this.
    Unsupported = 2,
    /// An argument is wrong; the message names it.
    InvalidArgument = 3,
    /// A name does not exist; the message lists those that do.
    NotFound = 4,
    /// Code does not compile or link; the message holds the whole log.
    CompileFailed = 5,
    /// Memory is exhausted.
    OutOfMemory = 6,
    /// Another resource is exhausted: threads, registers, queues.
    OutOfResources = 7,
    /// A deadline passed. Nothing is cancelled and nothing is poisoned.
    Timeout = 8,
    /// The device is gone for good; open it again.
    DeviceLost = 9,
    /// The kernel or program reported a failure.
    Failed = 10,
    /// Closed or discarded before it was submitted.
    Cancelled = 11,
    /// A library speaks another version of the seam.
    AbiMismatch = 12,
    /// A file could not be read or written.
    Io = 13,
    /// Any other failure of a driver.
    Driver = 14,
    /// A defect: a caught panic, a broken promise.
    Internal = 15,
}

impl ErrorKind {
    const ALL: [Self; 15] = [
        Self::Unavailable,
        Self::Unsupported,
        Self::InvalidArgument,
        Self::NotFound,
        Self::CompileFailed,
        Self::OutOfMemory,
        Self::OutOfResources,
        Self::Timeout,
        Self::DeviceLost,
        Self::Failed,
        Self::Cancelled,
        Self::AbiMismatch,
        Self::Io,
        Self::Driver,
        Self::Internal,
    ];

    /// The number that crosses the seam.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The kind of a number; a number of the future is a [`ErrorKind::Driver`] error.
    #[must_use]
    pub fn from_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Driver)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A failure, cheap to clone: a failed ticket hands the same error to everybody who waits.
///
/// `Display` is one line that a user can act on:
/// `load: cuModuleLoadData: CUDA_ERROR_INVALID_PTX (218): line 7: …`.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: String,
    message: String,
    device: Option<String>,
    driver: Option<(String, i64)>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error of `kind` with a message that says what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            operation: String::new(),
            message: message.into(),
            device: None,
            driver: None,
            source: None,
        }))
    }

    /// [`ErrorKind::Unsupported`] with a sentence that says what is not done here, and what to do instead.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::InvalidArgument`] with a message that names the argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Puts `operation` in front of what is already there: the outermost stands first.
    #[must_use]
    pub fn in_operation(mut self, operation: &str) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.operation = match inner.operation.as_str() {
            "" => operation.to_owned(),
            old if old == operation => return self,
            old => format!("{operation}: {old}"),
        };
        self
    }

    /// Names the device, unless it is named already.
    #[must_use]
    pub fn on_device(mut self, device: &str) -> Self {
        if self.0.device.is_none() {
            Arc::make_mut(&mut self.0).device = Some(device.to_owned());
        }
        self
    }

    /// Adds the driver's own name and code.
    #[must_use]
    pub fn with_driver(mut self, symbol: impl Into<String>, code: i64) -> Self {
        Arc::make_mut(&mut self.0).driver = Some((symbol.into(), code));
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.0).source = Some(Arc::new(source));
        self
    }

    /// Appends to the message.
    #[must_use]
    pub fn with_note(mut self, note: impl fmt::Display) -> Self {
        let inner = Arc::make_mut(&mut self.0);
        inner.message = format!("{}; {note}", inner.message);
        self
    }

    /// What sort of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed; may be empty.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// What happened and what to do about it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The device concerned, as a device string.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.0.device.as_deref()
    }

    /// The driver's own name of the failure, and its code.
    #[must_use]
    pub fn driver(&self) -> Option<(&str, i64)> {
        self.0.driver.as_ref().map(|(symbol, code)| (symbol.as_str(), *code))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(device) = &inner.device {
            write!(f, "{device}: ")?;
        }
        if !inner.operation.is_empty() {
            write!(f, "{}: ", inner.operation)?;
        }
        match &inner.driver {
            Some((symbol, code)) if symbol.is_empty() => write!(f, "driver error {code}: ")?,
            Some((symbol, code)) => write!(f, "{symbol} ({code}): ")?,
            None => {}
        }
        f.write_str(&inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        if let Some(source) = &self.0.source {
            write!(f, "\n  caused by: {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_outermost_first() {
        let error = Error::new(ErrorKind::CompileFailed, "line 7: syntax")
            .in_operation("cuModuleLoadData")
            .with_driver("CUDA_ERROR_INVALID_PTX", 218)
            .in_operation("load")
            .on_device("cuda:0");
        assert_eq!(
            error.to_string(),
            "cuda:0: load: cuModuleLoadData: CUDA_ERROR_INVALID_PTX (218): line 7: syntax"
        );
    }

    #[test]
    fn kinds_cross_the_seam_by_number() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_code(kind.code()), kind);
        }
        assert_eq!(ErrorKind::from_code(9999), ErrorKind::Driver);
    }
}
