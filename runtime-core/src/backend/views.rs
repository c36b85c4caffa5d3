//! Safe, borrowed views of the launches, arguments and graph nodes that core passes to a backend.
//!
//! Views copy and allocate nothing; each accessor decodes its field.

#![allow(unsafe_code, reason = "reads structures that core keeps valid during the call")]

use std::marker::PhantomData;

use super::{Buffer, FillPattern};
use crate::{Access, DType, Element, Error, Geometry, abi};

/// Geometry and arguments of a kernel launch; valid during the call.
#[derive(Debug)]
pub struct Launch<'a, B> {
    raw: &'a abi::Launch,
    buffers: PhantomData<&'a B>,
}

impl<B> Clone for Launch<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Launch<'_, B> {}

impl<'a, B: Buffer> Launch<'a, B> {
    /// Wraps a launch received from core.
    ///
    /// # Safety
    /// `raw.args` points to `raw.arg_count` valid arguments, whose tensors' buffers are live `B`s, all for `'a`.
    #[inline]
    pub(crate) const unsafe fn new(raw: &'a abi::Launch) -> Self {
        Self { raw, buffers: PhantomData }
    }

    pub(super) const fn raw(&self) -> &'a abi::Launch {
        self.raw
    }

    pub(super) const fn raw_args(&self) -> &'a [abi::Arg] {
        // SAFETY: `new` requires `arg_count` valid arguments.
        unsafe { slice(self.raw.args, self.raw.arg_count) }
    }

    /// Number of groups, per dimension.
    #[must_use]
    #[inline]
    pub const fn groups(&self) -> [u32; 3] {
        self.raw.groups
    }

    /// Work-items per group, per dimension.
    #[must_use]
    #[inline]
    pub const fn group_size(&self) -> [u32; 3] {
        self.raw.group_size
    }

    /// Groups per cluster, per dimension; all 1 without clusters.
    #[must_use]
    #[inline]
    pub const fn cluster(&self) -> [u32; 3] {
        self.raw.cluster
    }

    /// Whether all groups are resident at once and may synchronise with each other.
    #[must_use]
    #[inline]
    pub const fn cooperative(&self) -> bool {
        self.raw.flags & abi::LAUNCH_COOPERATIVE != 0
    }

    /// Half-open range, for kernels that take one.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> Option<[i64; 2]> {
        match self.raw.range {
            [0, 0] => None,
            range => Some(range),
        }
    }

    /// Iterations of the range per call; 0 lets the backend choose.
    #[must_use]
    #[inline]
    pub const fn grain(&self) -> u32 {
        self.raw.grain
    }

    /// The grid of work-groups.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        Geometry {
            groups: self.groups(),
            group_size: self.group_size(),
            cluster: self.cluster(),
            cooperative: self.cooperative(),
        }
    }

    /// The arguments in order.
    #[inline]
    pub fn args(&self) -> impl ExactSizeIterator<Item = ArgRef<'a, B>> + Clone + use<'a, B> {
        self.raw_args().iter().map(ArgRef::new)
    }

    /// Value and size in bytes of each argument that fits a machine word (a tensor's address or a scalar);
    /// `None` for other arguments. For backends that pass these words to kernels unchanged; faster than
    /// [`Launch::args`].
    #[inline]
    pub fn words(&self) -> impl ExactSizeIterator<Item = Option<(u64, usize)>> + Clone + use<'a, B> {
        self.raw_args().iter().map(register_word)
    }
}

#[inline]
fn register_word(raw: &abi::Arg) -> Option<(u64, usize)> {
    if raw.kind == abi::ARG_TENSOR {
        // SAFETY: the kind determines the active member.
        let tensor = unsafe { raw.value.tensor };
        // SAFETY: `Launch::new` requires valid arguments: null or a tensor argument.
        unsafe { tensor.as_ref() }.map(|tensor| (tensor.address, size_of::<u64>()))
    } else if raw.kind == abi::ARG_SCALAR {
        // SAFETY: the kind determines the active member.
        let bits = unsafe { raw.value.scalar };
        Some((bits, DType::from_dlpack(raw.dtype_code, raw.dtype_bits, 1).bytes()))
    } else {
        None
    }
}

/// One argument of a launch.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArgRef<'a, B> {
    /// A tensor.
    Tensor(TensorArg<'a, B>),
    /// A scalar.
    Scalar {
        /// Its element type.
        dtype: DType,
        /// Its bytes as a little-endian, zero-extended word.
        bits: u64,
    },
    /// Opaque bytes passed by value.
    Bytes(&'a [u8]),
    /// A structure passed by value. Where only its bytes matter, it is like `Bytes`.
    Record {
        /// The types of its fields, in order.
        fields: &'a [DType],
        /// The structure as C lays it out.
        bytes: &'a [u8],
    },
    /// Size in bytes of a block of dynamic work-group memory.
    Local(u64),
    /// An argument kind (`abi::ARG_*`) that this version does not know; reject it with [`unsupported_argument`].
    Unknown(u8),
}

impl<B> Clone for ArgRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for ArgRef<'_, B> {}

impl<'a, B: Buffer> ArgRef<'a, B> {
    #[inline]
    fn new(raw: &'a abi::Arg) -> Self {
        // Two branches for the frequent kinds; a match on all kinds would compile to a jump table.
        if raw.kind == abi::ARG_TENSOR {
            // SAFETY: the kind determines the active member.
            let tensor = unsafe { raw.value.tensor };
            // SAFETY: `Launch::new` requires valid arguments: null or a tensor argument.
            if let Some(raw_tensor) = unsafe { tensor.as_ref() } {
                return Self::Tensor(TensorArg { raw: raw_tensor, access: raw.access, buffers: PhantomData });
            }
        } else if raw.kind == abi::ARG_SCALAR {
            return Self::Scalar {
                dtype: DType::from_dlpack(raw.dtype_code, raw.dtype_bits, 1),
                // SAFETY: the kind determines the active member.
                bits: unsafe { raw.value.scalar },
            };
        }
        Self::decode_uncommon(raw)
    }

    #[inline(never)]
    fn decode_uncommon(raw: &'a abi::Arg) -> Self {
        match raw.kind {
            abi::ARG_BYTES => {
                // SAFETY: the kind determines the active member.
                let data = unsafe { raw.value.data };
                // SAFETY: `Launch::new` requires valid arguments: `bytes` bytes at `data`.
                Self::Bytes(unsafe { slice(data, raw.bytes as usize) })
            }
            abi::ARG_RECORD => {
                // SAFETY: the kind determines the active member.
                let record = unsafe { raw.value.record };
                // SAFETY: `Launch::new` requires valid arguments: null or a record.
                let Some(record) = (unsafe { record.as_ref() }) else { return Self::Unknown(raw.kind) };
                Self::Record {
                    // SAFETY: as above, its fields are valid; `DType` has the layout of its ABI form.
                    fields: unsafe { slice(record.fields.cast(), record.field_count as usize) },
                    // SAFETY: as above, `data_bytes` bytes at `data`.
                    bytes: unsafe { slice(record.data, raw.bytes as usize) },
                }
            }
            // SAFETY: the kind determines the active member.
            abi::ARG_LOCAL => Self::Local(unsafe { raw.value.local_bytes }),
            kind => Self::Unknown(kind),
        }
    }

    /// The tensor, if the argument is one.
    #[must_use]
    #[inline]
    pub fn tensor(self) -> Option<TensorArg<'a, B>> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The size in bytes, if the argument is dynamic work-group memory.
    #[must_use]
    pub const fn local_bytes(self) -> Option<u64> {
        match self {
            Self::Local(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The value, if the argument is a scalar of type `T`.
    #[must_use]
    #[inline]
    pub fn scalar<T: Element>(self) -> Option<T> {
        match self {
            Self::Scalar { dtype, bits } if dtype == T::DTYPE => {
                bits.to_le_bytes().get(..size_of::<T>()).map(bytemuck::pod_read_unaligned)
            }
            _ => None,
        }
    }
}

/// The error for argument `index` of a launch, whose kind the backend does not support.
#[cold]
#[must_use]
pub fn unsupported_argument(index: usize) -> Error {
    Error::unsupported(format!("argument {index} is of a kind that this backend does not support"))
}

/// A tensor argument.
#[derive(Debug)]
pub struct TensorArg<'a, B> {
    raw: &'a abi::TensorArg,
    access: u8,
    buffers: PhantomData<&'a B>,
}

impl<B> Clone for TensorArg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for TensorArg<'_, B> {}

impl<'a, B: Buffer> TensorArg<'a, B> {
    pub(super) const fn raw(&self) -> &'a abi::TensorArg {
        self.raw
    }

    /// The buffer that holds the tensor.
    #[must_use]
    #[inline]
    pub fn buffer(&self) -> &'a B {
        debug_assert!(!self.raw.buffer.is_null(), "core sets the buffer of every tensor argument");
        // SAFETY: the handle is a live buffer of this backend for `'a`, as `Launch::new` requires.
        unsafe { &*self.raw.buffer.cast::<B>() }
    }

    /// Address of the first element for kernels: the buffer's `kernel_address` plus `byte_offset`.
    #[must_use]
    #[inline]
    pub const fn address(&self) -> u64 {
        self.raw.address
    }

    /// Offset of the first element in the buffer, in bytes.
    #[must_use]
    #[inline]
    pub const fn byte_offset(&self) -> u64 {
        self.raw.byte_offset
    }

    /// Bytes from the first element to the end of the element with the highest address: the range to bind at
    /// `byte_offset`, always within the buffer. Elements at lower addresses than the first one (negative
    /// strides) are not included.
    #[must_use]
    #[inline]
    pub const fn span_bytes(&self) -> u64 {
        self.raw.span_bytes
    }

    /// Element type.
    #[must_use]
    #[inline]
    pub const fn dtype(&self) -> DType {
        DType(self.raw.dtype)
    }

    /// Extents in elements.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &'a [i64] {
        // SAFETY: a tensor argument has `ndim` extents.
        unsafe { slice(self.raw.shape, self.raw.ndim as usize) }
    }

    /// Strides in elements.
    #[must_use]
    #[inline]
    pub fn strides(&self) -> &'a [i64] {
        // SAFETY: a tensor argument has `ndim` strides.
        unsafe { slice(self.raw.strides, self.raw.ndim as usize) }
    }

    /// How the launch uses the tensor.
    #[must_use]
    #[inline]
    pub const fn access(&self) -> Access {
        Access::from_bits(self.access)
    }
}

/// The `len` elements at `ptr`; an empty slice if `ptr` is null.
#[inline]
const unsafe fn slice<'a, T>(ptr: *const T, len: usize) -> &'a [T] {
    if ptr.is_null() {
        return &[];
    }
    // SAFETY: not null, and the caller promises `len` valid elements for `'a`.
    unsafe { std::slice::from_raw_parts(ptr, len) }
}

/// A node of a graph; valid during the call.
#[derive(Debug)]
pub struct GraphNode<'a, B, K> {
    /// The work of the node.
    pub work: GraphWork<'a, B, K>,
    /// Indices of the earlier nodes that must end first.
    pub dependencies: &'a [u32],
}

/// The work of a graph node.
#[derive(Debug)]
pub enum GraphWork<'a, B, K> {
    /// Launches a kernel.
    Launch {
        /// The kernel.
        kernel: &'a K,
        /// Geometry and arguments.
        launch: Launch<'a, B>,
    },
    /// Copies between buffers.
    Copy {
        /// Destination buffer, and offset of the first byte written.
        destination: (&'a B, u64),
        /// Source buffer, and offset of the first byte read.
        source: (&'a B, u64),
        /// Number of bytes.
        bytes: u64,
    },
    /// Fills with a pattern.
    Fill {
        /// Destination buffer, and offset of the first byte written.
        destination: (&'a B, u64),
        /// Number of bytes.
        bytes: u64,
        /// The pattern.
        pattern: FillPattern,
    },
}
