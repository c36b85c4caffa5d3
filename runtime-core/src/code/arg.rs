//! Launch arguments: tensors, scalars, structures and bytes by value, and sizes of dynamic work-group memory.

use std::mem::MaybeUninit;

use crate::code::record::Record;
use crate::code::scalar::Scalar;
use crate::model::access::ArgKind;
use crate::tensor::Tensor;
use crate::tensor::number::Number;
use crate::{Access, DType, Error, Result, abi};

/// One argument of a launch.
///
/// A tuple such as `(&x, 2.0f32)` says the same in fewer words ([`Arguments`](crate::code::Arguments)). A list
/// of `Arg`s is for code that learns the number and the types of the arguments when it runs.
///
/// ```
/// # use runtime_core::{Arg, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let saxpy = device.kernel(&unsafe { ModuleSource::native("null", "saxpy_f32") }, "saxpy_f32")?;
/// let x = device.tensor([2], &[1.0f32, 2.0])?;
/// let y = device.zeros::<f32>([2])?;
/// let mut args = vec![Arg::read(&x), Arg::read_write(&y)];
/// args.push(Arg::number(x.dtype(), 3)?); // a scalar of the tensor's type
/// device.queue()?.call(&saxpy, (1, 1), &args)?; // y = 3 x + y
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 6.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a> {
    pub(crate) value: ArgValue<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgValue<'a> {
    /// With its access, and whether the kernel handles its strides.
    Tensor(&'a Tensor, Access, bool),
    Scalar(DType, u64),
    Bytes(&'a [u8]),
    Record(&'a Record),
    Local(u64),
}

impl<'a> Arg<'a> {
    /// A tensor that the kernel only reads.
    #[must_use]
    pub const fn read(tensor: &'a Tensor) -> Self {
        Self::tensor(tensor, Access::Read)
    }

    /// A tensor that the kernel only writes.
    #[must_use]
    pub const fn write(tensor: &'a Tensor) -> Self {
        Self::tensor(tensor, Access::Write)
    }

    /// A tensor that the kernel reads and writes.
    #[must_use]
    pub const fn read_write(tensor: &'a Tensor) -> Self {
        Self::tensor(tensor, Access::ReadWrite)
    }

    /// A tensor with the given access.
    #[must_use]
    pub const fn tensor(tensor: &'a Tensor, access: Access) -> Self {
        Self { value: ArgValue::Tensor(tensor, access, false) }
    }

    /// Declares that the kernel handles the strides of this tensor, which may then be a view with gaps:
    /// transposed, repeated, every other element. Otherwise such a view is refused, because a kernel unaware of
    /// the strides would access the wrong elements; [`Queue::contiguous`](crate::Queue::contiguous) makes a
    /// copy for it.
    ///
    /// Portable kernels, and kernels on devices that bind buffers by handle, can only address memory from the
    /// first element upwards: there, a tensor with elements before its first one is still refused. Has no
    /// effect on arguments other than tensors.
    #[must_use]
    pub const fn strided(self) -> Self {
        match self.value {
            ArgValue::Tensor(tensor, access, _) => Self { value: ArgValue::Tensor(tensor, access, true) },
            _ => self,
        }
    }

    /// A scalar.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        Self::scalar_bits(T::DTYPE, value.bits())
    }

    /// A scalar of an element type that is chosen at run time.
    ///
    /// # Errors
    /// As [`Number::bits`].
    pub fn number(dtype: DType, value: impl Into<Number>) -> Result<Self> {
        let bits = value.into().bits(dtype).map_err(|error| error.in_operation("number"))?;
        Ok(Self::scalar_bits(dtype, bits))
    }

    /// A scalar of up to 8 bytes, given by its element type and its bytes as a little-endian word.
    #[must_use]
    pub const fn scalar_bits(dtype: DType, bits: u64) -> Self {
        Self { value: ArgValue::Scalar(dtype, bits) }
    }

    /// A structure passed by value.
    #[must_use]
    pub const fn record(record: &'a Record) -> Self {
        Self { value: ArgValue::Record(record) }
    }

    /// Opaque bytes passed by value, such as a descriptor. The host needs the field types of a structure to pass
    /// it: use [`Arg::record`].
    #[must_use]
    pub const fn bytes(bytes: &'a [u8]) -> Self {
        Self { value: ArgValue::Bytes(bytes) }
    }

    /// Dynamic work-group memory of the given size in bytes.
    #[must_use]
    pub const fn local(bytes: u64) -> Self {
        Self { value: ArgValue::Local(bytes) }
    }

    /// The kind of argument.
    #[must_use]
    pub const fn kind(&self) -> ArgKind {
        match self.value {
            ArgValue::Tensor(..) => ArgKind::Tensor,
            ArgValue::Scalar(..) => ArgKind::Scalar,
            ArgValue::Bytes(_) | ArgValue::Record(_) => ArgKind::Bytes,
            ArgValue::Local(_) => ArgKind::Local,
        }
    }

    /// The element type of a tensor or scalar.
    #[must_use]
    pub fn dtype(&self) -> Option<DType> {
        match self.value {
            ArgValue::Tensor(tensor, ..) => Some(tensor.dtype()),
            ArgValue::Scalar(dtype, _) => Some(dtype),
            _ => None,
        }
    }

    /// The bytes of a scalar as a little-endian word.
    #[must_use]
    pub const fn bits(&self) -> Option<u64> {
        match self.value {
            ArgValue::Scalar(_, bits) => Some(bits),
            _ => None,
        }
    }

    /// Writes the ABI form directly into its final place: building it elsewhere and moving it would cost more
    /// than everything else here.
    #[inline]
    pub(crate) fn write_abi(&self, slot: &mut MaybeUninit<abi::Arg>) -> Result<()> {
        // The two common cases are two branches; a match on all of them would compile to a jump table.
        if let ArgValue::Tensor(tensor, access, _) = self.value {
            slot.write(abi::Arg {
                kind: abi::ARG_TENSOR,
                access: access.bits(),
                dtype_code: 0,
                dtype_bits: 0,
                bytes: 0,
                value: abi::ArgValue { tensor: tensor.raw() },
            });
        } else if let ArgValue::Scalar(dtype, bits) = self.value {
            slot.write(abi::Arg {
                kind: abi::ARG_SCALAR,
                access: 0,
                dtype_code: dtype.0.code,
                dtype_bits: dtype.0.bits,
                bytes: scalar_bytes(dtype)?,
                value: abi::ArgValue { scalar: bits },
            });
        } else {
            self.write_uncommon(slot);
        }
        Ok(())
    }

    #[inline(never)]
    fn write_uncommon(&self, slot: &mut MaybeUninit<abi::Arg>) {
        let (kind, bytes, value) = match self.value {
            ArgValue::Bytes(bytes) => (abi::ARG_BYTES, bytes.len(), abi::ArgValue { data: bytes.as_ptr() }),
            ArgValue::Record(record) => {
                (abi::ARG_RECORD, record.as_bytes().len(), abi::ArgValue { record: record.raw() })
            }
            ArgValue::Local(bytes) => (abi::ARG_LOCAL, 0, abi::ArgValue { local_bytes: bytes }),
            ArgValue::Tensor(..) | ArgValue::Scalar(..) => (u8::MAX, 0, abi::ArgValue { scalar: 0 }),
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        slot.write(abi::Arg { kind, access: 0, dtype_code: 0, dtype_bits: 0, bytes, value });
    }
}

#[inline]
fn scalar_bytes(dtype: DType) -> Result<u32> {
    match u32::try_from(dtype.bytes()) {
        Ok(bytes @ 1..=8) => Ok(bytes),
        _ => Err(too_wide(dtype)),
    }
}

#[cold]
fn too_wide(dtype: DType) -> Error {
    let bytes = dtype.bytes();
    Error::invalid(format!("a scalar of {dtype} has {bytes} bytes; pass a structure as Arg::record"))
}
