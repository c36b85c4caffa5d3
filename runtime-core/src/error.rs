//! The error type of the crate: kind, operation, message, device, driver code, and source.

use std::fmt;
use std::sync::Arc;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`], for programs to branch on.
///
/// ```
/// # use runtime_core::{Device, Error, ErrorKind, Result, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// /// The first of these devices that this machine has.
/// fn open_any(runtime: &Runtime, names: &[&str]) -> Result<Device> {
///     for name in names {
///         match runtime.open(name) {
///             Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable) => {}
///             opened => return opened, // a device, or an error that is no reason to take another one
///         }
///     }
///     Err(Error::new(ErrorKind::Unavailable, format!("none of {names:?} is on this machine")))
/// }
/// assert_eq!(open_any(&runtime, &["cuda", "null:3", "null:1"])?.device_id().index, 1);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[non_exhaustive]
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Not available on this machine: no driver, no device. The only kind for which a test may be skipped.
    Unavailable = 1,
    /// The device or backend does not support this.
    Unsupported = 2,
    /// An argument is invalid, whatever the kernel; the message names it.
    InvalidArgument = 3,
    /// A name does not exist; the message lists those that do.
    NotFound = 4,
    /// Code does not compile or link; the message contains the log. Of one that is longer than 1 MiB, a compiler that is a program
    /// of its own may leave the middle out, and says so.
    CompileFailed = 5,
    /// Memory is exhausted.
    OutOfMemory = 6,
    /// Another resource is exhausted, e.g. threads or queues; or a kernel needs more of a resource than the device has:
    /// work-group memory, registers (groups too large for this kernel), private memory, bindings. Tuners skip such
    /// candidates. A geometry that no kernel could have on the device is `InvalidArgument`.
    OutOfResources = 7,
    /// A deadline passed. The work is not cancelled, and the device remains usable.
    Timeout = 8,
    /// The device was lost permanently; open it again.
    DeviceLost = 9,
    /// The kernel or program reported a failure.
    Failed = 10,
    /// Closed or discarded before submission.
    Cancelled = 11,
    /// A library violates the ABI or has an incompatible version of it.
    AbiMismatch = 12,
    /// A file could not be read or written.
    Io = 13,
    /// Any other driver failure.
    Driver = 14,
    /// A defect in this project or a backend: a caught panic or a violated invariant.
    Internal = 15,
    /// A program on an embedded device crashed: a trap or fault of its processor. The message has the cause and the place.
    Crashed = 16,
}

impl ErrorKind {
    const ALL: [Self; 16] = [
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
        Self::Crashed,
    ];

    /// The kind as a number, as in the ABI.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The kind with this number; [`ErrorKind::Driver`] for an unknown number.
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

/// An error. Cheap to clone, since every waiter on a failed ticket receives the same error.
///
/// `Display` is a single, actionable line: `load: cuModuleLoadData: CUDA_ERROR_INVALID_PTX (218): line 7: …`.
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let error = device.tensor([3], &[1.0f32, 2.0]).unwrap_err();
/// assert_eq!((error.operation(), error.message()), ("tensor", "shape [3] has 3 elements, data has 2"));
///
/// let error = error.in_operation("load_weights"); // a framework adds what it was doing
/// assert_eq!(error.to_string(), "load_weights: tensor: shape [3] has 3 elements, data has 2");
/// # Ok::<(), runtime_core::Error>(())
/// ```
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
    /// Creates an error. The message states what happened, and the remedy.
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

    /// [`ErrorKind::Unsupported`], with a whole sentence that states what is unsupported and the alternative.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::InvalidArgument`], with a message that names the argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// Prepends `operation` to the operations recorded so far: the outermost comes first.
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

    /// Sets the device, unless one is set already.
    #[must_use]
    pub fn on_device(mut self, device: &str) -> Self {
        if self.0.device.is_none() {
            Arc::make_mut(&mut self.0).device = Some(device.to_owned());
        }
        self
    }

    /// Sets the driver's name and code of the error.
    #[must_use]
    pub fn with_driver(mut self, symbol: impl Into<String>, code: i64) -> Self {
        Arc::make_mut(&mut self.0).driver = Some((symbol.into(), code));
        self
    }

    /// Sets the error that caused this one.
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

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed; may be empty.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// What happened, and the remedy.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The device on which the error occurred, as a device string.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.0.device.as_deref()
    }

    /// The driver's name and code of the error.
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
    fn display_is_one_line_with_the_outermost_operation_first() {
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
    fn kinds_round_trip_as_numbers() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_code(kind.code()), kind);
        }
        assert_eq!(ErrorKind::from_code(9999), ErrorKind::Driver);
    }
}
