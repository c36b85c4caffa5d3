//! The types of arguments, which select an overload.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::code::arg::ArgValue;
use crate::tensor::{CONTIGUOUS, type_word};
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, DType, Result};

/// The type of an argument: what distinguishes one overload of a kernel from another.
///
/// ```
/// # use runtime_core::{DType, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let source = unsafe { ModuleSource::native("null", "scale_f32") };
/// use runtime_core::dispatch::{ArgType, Dispatcher};
///
/// let scale = Dispatcher::new(source, "scale_f32");
/// // While the program starts, for the first call not to wait for a compiler.
/// scale.precompile(&*device, &[ArgType::tensor(DType::F32, 1), ArgType::Scalar(DType::F32)])?;
/// scale.call(1, (&device.tensor([1], &[1.0f32])?, 2.0f32))?;
/// assert_eq!(scale.misses(), 1); // that of `precompile`
/// assert_eq!(scale.overloads()[0].to_string(), "scale_f32(f32[1], f32) on null:0");
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgType {
    /// A tensor.
    Tensor {
        /// Its element type.
        dtype: DType,
        /// Its number of dimensions.
        rank: usize,
        /// Whether it is row-major without gaps, or passed as [`Arg::strided`].
        contiguous: bool,
        /// Its memory space; empty for the device's default space.
        space: String,
    },
    /// A scalar.
    Scalar(DType),
    /// A structure, or bytes by value.
    Bytes,
    /// Dynamic work-group memory.
    Local,
}

impl ArgType {
    /// A contiguous tensor in the device's default memory space.
    #[must_use]
    pub const fn tensor(dtype: DType, rank: usize) -> Self {
        Self::Tensor { dtype, rank, contiguous: true, space: String::new() }
    }

    /// The type of an argument.
    pub(super) fn of(arg: &Arg<'_>) -> Self {
        match arg.value {
            ArgValue::Tensor(tensor, _, strided) => Self::Tensor {
                dtype: tensor.dtype(),
                rank: tensor.shape().len(),
                contiguous: tensor.is_contiguous() || strided,
                space: tensor.space().to_owned(),
            },
            ArgValue::Scalar(dtype, _) => Self::Scalar(dtype),
            ArgValue::Bytes(_) | ArgValue::Record(_) => Self::Bytes,
            ArgValue::Local(_) => Self::Local,
        }
    }

    /// The element type of a tensor or scalar.
    pub(super) const fn dtype(&self) -> Option<DType> {
        match self {
            Self::Tensor { dtype, .. } | Self::Scalar(dtype) => Some(*dtype),
            Self::Bytes | Self::Local => None,
        }
    }

    /// The number that [`word`] gives an argument of this type.
    fn word(&self, device: &OpenDevice) -> Result<u64> {
        Ok(match self {
            Self::Tensor { dtype, rank, contiguous, space } => {
                let space = if space.is_empty() { 0 } else { device.info.space_index(space)? };
                TENSOR | type_word(*dtype, *rank, *contiguous, space)
            }
            Self::Scalar(dtype) => scalar_word(*dtype),
            Self::Bytes => BYTES,
            Self::Local => LOCAL,
        })
    }
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor { dtype, rank, contiguous, space } => {
                let gaps = if *contiguous { "" } else { " strided" };
                write!(f, "{dtype}[{rank}]{gaps}")?;
                if space.is_empty() { Ok(()) } else { write!(f, " in {space}") }
            }
            Self::Scalar(dtype) => write!(f, "{dtype}"),
            Self::Bytes => f.write_str("bytes"),
            Self::Local => f.write_str("local"),
        }
    }
}

const TENSOR: u64 = 1 << 62;
const SCALAR: u64 = 2 << 62;
const BYTES: u64 = 3 << 62;
const LOCAL: u64 = BYTES | 1;

/// The number of an argument's type: equal for equal types on the same device.
#[inline]
fn word(arg: &Arg<'_>) -> u64 {
    match arg.value {
        ArgValue::Tensor(tensor, _, false) => TENSOR | tensor.type_word(),
        ArgValue::Tensor(tensor, _, true) => TENSOR | CONTIGUOUS | tensor.type_word(),
        ArgValue::Scalar(dtype, _) => scalar_word(dtype),
        ArgValue::Bytes(_) | ArgValue::Record(_) => BYTES,
        ArgValue::Local(_) => LOCAL,
    }
}

#[inline]
fn scalar_word(dtype: DType) -> u64 {
    let (code, bits, lanes) = dtype.dlpack();
    SCALAR | u64::from(code) << 24 | u64::from(bits) << 16 | u64::from(lanes)
}

/// What identifies an overload: the device, the variant of the kernel, and a number for the type of each argument.
pub(super) struct Key {
    inline: [u64; INLINE],
    /// The words if there are more.
    more: Vec<u64>,
    length: usize,
}

/// Words of a key that need no allocation: 16 arguments.
const INLINE: usize = 18;

impl Key {
    /// The key of a call.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a copy of the key costs more than the rest of it")]
    pub(super) fn of(device: &Arc<OpenDevice>, variant: u64, args: &[Arg<'_>]) -> Self {
        Self::new(device, variant, args.iter().map(word))
    }

    /// The key of calls with arguments of these types.
    ///
    /// # Errors
    /// `InvalidArgument` for a memory space that the device does not have.
    pub(super) fn of_types(device: &Arc<OpenDevice>, variant: u64, types: &[ArgType]) -> Result<Self> {
        let words = types.iter().map(|given| given.word(device)).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(device, variant, words.into_iter()))
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "as for `of`")]
    fn new(device: &Arc<OpenDevice>, variant: u64, types: impl ExactSizeIterator<Item = u64>) -> Self {
        let head = [Arc::as_ptr(device).addr() as u64, variant];
        let mut key = Self { inline: [0; INLINE], more: Vec::new(), length: head.len() + types.len() };
        let words = head.into_iter().chain(types);
        match key.inline.get_mut(..key.length) {
            Some(inline) => inline.iter_mut().zip(words).for_each(|(slot, word)| *slot = word),
            None => key.more = words.collect(),
        }
        key
    }
}

impl Deref for Key {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        self.inline.get(..self.length).unwrap_or(&self.more)
    }
}
