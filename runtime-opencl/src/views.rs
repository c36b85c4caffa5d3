//! Views as kernel arguments: how a kernel accesses memory at an offset into a buffer.
//!
//! In order of preference: as the buffer itself (offset 0), through a pointer where the memory has one, as a sub-buffer where the
//! device's alignment allows it. Other views are copied to a buffer of their own before the launch, and back after it.

use std::sync::Arc;

use runtime_core::backend::TensorArg;
use runtime_core::{Error, ErrorKind, Result};

use crate::driver::Raw;
use crate::memory::{BufferAccess, OpenClBuffer};
use crate::sub_buffers::SubBuffer;

/// How a kernel accesses a view, with the unique number of the buffer or sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewAccess {
    /// As a `cl_mem`.
    Object(Raw, u64),
    /// As a pointer to shared virtual memory.
    Svm(*mut u8, u64),
    /// As a pointer to unified shared memory.
    Usm(*mut u8, u64),
    /// Not at all: it must be copied.
    NeedsCopy,
}

// SAFETY: the pointers are only compared or passed to the driver, which any thread may call.
#[allow(unsafe_code, reason = "pointers are not `Send` by themselves")]
unsafe impl Send for ViewAccess {}

impl ViewAccess {
    /// How a kernel accesses a tensor. A sub-buffer is added to `sub_buffers`, since setting an argument does not retain it.
    ///
    /// # Errors
    /// `InvalidArgument` for a range outside the buffer; the driver's error for a sub-buffer.
    #[inline]
    pub(crate) fn of(
        tensor: &TensorArg<'_, OpenClBuffer>,
        sub_buffers: &mut Vec<Arc<SubBuffer>>,
    ) -> Result<Self> {
        let buffer = tensor.buffer();
        let (offset, bytes) = buffer.range("a tensor", tensor.byte_offset(), tensor.span_bytes())?;
        Ok(match buffer.access() {
            // A kernel accesses nothing of a tensor of 0 bytes.
            BufferAccess::Object(raw) if offset == 0 || bytes == 0 => Self::Object(raw, buffer.id),
            BufferAccess::Object(raw) => Self::sub_buffer(buffer, raw, (offset, bytes), sub_buffers)?,
            BufferAccess::Svm(start) => Self::Svm(start.wrapping_add(offset), buffer.id),
            BufferAccess::Usm(start) => Self::Usm(start.wrapping_add(offset), buffer.id),
            BufferAccess::Mapped => Self::NeedsCopy,
        })
    }

    fn sub_buffer(
        buffer: &OpenClBuffer,
        raw: Raw,
        (offset, bytes): (usize, usize),
        sub_buffers: &mut Vec<Arc<SubBuffer>>,
    ) -> Result<Self> {
        if !buffer.kernel_pointer().is_null() {
            return Ok(Self::Svm(buffer.kernel_pointer().wrapping_add(offset), buffer.id));
        }
        if !offset.is_multiple_of(buffer.context().caps.alignment_bytes) {
            return Ok(Self::NeedsCopy);
        }
        let sub_buffer = buffer.sub_buffers.get(buffer.context(), raw, offset, bytes)?;
        let view = Self::Object(sub_buffer.object.raw(), sub_buffer.id);
        sub_buffers.push(sub_buffer);
        Ok(view)
    }
}

/// Checks that a view that is copied for a launch does not overlap another argument, if either is written: each would see a copy
/// of its own.
///
/// # Errors
/// `Unsupported`, with the remedy.
pub(crate) fn check_no_alias(
    copied: (usize, &TensorArg<'_, OpenClBuffer>),
    other: (usize, &TensorArg<'_, OpenClBuffer>),
) -> Result<()> {
    let (a, b) = (copied.1, other.1);
    let overlap = std::ptr::eq(a.buffer(), b.buffer())
        && a.byte_offset() < b.byte_offset() + b.span_bytes()
        && b.byte_offset() < a.byte_offset() + a.span_bytes();
    if !overlap || !(a.access().writes() || b.access().writes()) {
        return Ok(());
    }
    let message = format!(
        "arguments {} and {} overlap and one of them is written, but the kernel gets a copy of the first, because of its offset of \
         {} bytes; pass a copy of the tensor, or allocate it in a space with addresses (`shared`, where available)",
        copied.0,
        other.0,
        a.byte_offset()
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}
