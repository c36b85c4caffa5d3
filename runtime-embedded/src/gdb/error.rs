//! Errors of the client.

use std::fmt;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GdbErrorKind {
    /// The server did not answer before the deadline.
    Timeout,
    /// The server closed the connection.
    Closed,
    /// The server sent something that the protocol does not allow here.
    Protocol,
    /// The server refused the request, with an error number or an empty reply.
    Refused,
    /// An earlier request failed, so the connection is unusable.
    Broken,
    /// The system could not send or receive.
    Io,
}

/// An error of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GdbError {
    kind: GdbErrorKind,
    message: String,
}

/// A result of the client.
pub(crate) type Result<T, E = GdbError> = std::result::Result<T, E>;

impl GdbError {
    pub(crate) fn new(kind: GdbErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(GdbErrorKind::Protocol, message)
    }

    /// What went wrong.
    #[must_use]
    pub const fn kind(&self) -> GdbErrorKind {
        self.kind
    }

    pub(crate) fn during(mut self, request: &str) -> Self {
        self.message = format!("{request}: {}", self.message);
        self
    }
}

impl fmt::Display for GdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for GdbError {}
