//! How a kernel uses its arguments.

use crate::abi;

/// How a launch uses a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Reads and writes.
    ReadWrite,
}

impl Access {
    /// The `abi::ACCESS_*` bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Read => abi::ACCESS_READ,
            Self::Write => abi::ACCESS_WRITE,
            Self::ReadWrite => abi::ACCESS_READ | abi::ACCESS_WRITE,
        }
    }

    /// The access of `abi::ACCESS_*` bits; no bits are a read.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & (abi::ACCESS_READ | abi::ACCESS_WRITE) {
            abi::ACCESS_WRITE => Self::Write,
            0 | abi::ACCESS_READ => Self::Read,
            _ => Self::ReadWrite,
        }
    }

    /// Whether it writes.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether it reads.
    #[must_use]
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Write)
    }
}

/// What an argument or a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// A tensor.
    Tensor,
    /// A scalar.
    Scalar,
    /// Bytes by value.
    Bytes,
    /// A size of dynamic work-group memory.
    Local,
}
