//! Argument kinds and access modes.

use serde::{Deserialize, Serialize};

use crate::abi;

/// How a kernel accesses a tensor.
///
/// ```
/// # use runtime_core::{Access, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let saxpy = device.kernel(&unsafe { ModuleSource::native("null", "saxpy_f32") }, "saxpy_f32")?;
/// // Which arguments does y = a x + y change?
/// let params = saxpy.info().params.as_deref().unwrap_or_default(); // x, y, a
/// let changes: Vec<bool> =
///     params.iter().map(|param| param.access.is_some_and(Access::writes)).collect();
/// assert_eq!(changes, [false, true, false]);
/// assert_eq!(params[1].access, Some(Access::ReadWrite));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
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

    /// The access for `abi::ACCESS_*` bits; `Read` if none is set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & (abi::ACCESS_READ | abi::ACCESS_WRITE) {
            abi::ACCESS_WRITE => Self::Write,
            0 | abi::ACCESS_READ => Self::Read,
            _ => Self::ReadWrite,
        }
    }

    /// Whether the kernel writes the tensor.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether the kernel reads the tensor.
    #[must_use]
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Write)
    }
}

/// The kind of an argument or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgKind {
    /// A tensor.
    Tensor,
    /// A scalar.
    Scalar,
    /// Bytes passed by value.
    Bytes,
    /// The size of a block of dynamic work-group memory.
    Local,
}
