//! Handles and structures on their way across: checked for null, copied by their stated size.

use std::mem::MaybeUninit;

use crate::abi::{self, Handle};
use crate::plugin::negotiate::copy_common_prefix;
use crate::{Error, ErrorKind, Result};

/// Gives an object to the other side.
pub(super) fn into_handle<T>(object: T) -> Handle {
    Box::into_raw(Box::new(object)).cast()
}

/// Borrows an object that was given.
///
/// # Safety
/// `handle` is null or came from [`give`] with this `T`, and is not taken back during `'a`.
#[inline]
pub(super) unsafe fn borrow<'a, T>(handle: Handle) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { handle.cast::<T>().as_ref() }.ok_or_else(null_handle::<T>)
}

/// Takes back an object that was given; null is nothing.
///
/// # Safety
/// `handle` is null or came from [`give`] with this `T`, and nobody uses it any more.
pub(super) unsafe fn from_handle<T>(handle: Handle) -> Option<Box<T>> {
    // SAFETY: the caller's promise: a box that nobody else owns.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle.cast::<T>()) })
}

#[cold]
fn null_handle<T>() -> Error {
    abi_mismatch(format!("null handle where a {} is wanted", std::any::type_name::<T>()))
}

#[cold]
pub(super) fn abi_mismatch(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::AbiMismatch, message)
}

/// The place of a plain result.
///
/// # Safety
/// `out` is null or writable for `'a`.
#[inline]
pub(super) unsafe fn out_param<'a, T>(out: *mut T) -> Result<&'a mut MaybeUninit<T>> {
    if out.is_null() || !out.is_aligned() {
        return Err(abi_mismatch("nowhere to put the result: null or misaligned"));
    }
    // SAFETY: not null, aligned, and writable by the caller's promise; uninitialised bytes are allowed.
    Ok(unsafe { &mut *out.cast::<MaybeUninit<T>>() })
}

/// A structure that begins with `struct_size: u32`.
///
/// # Safety
/// `#[repr(C)]`, with `struct_size: u32` first, and valid when all its bytes are zero.
pub(super) unsafe trait SizedStruct: Copy {}

macro_rules! impl_sized_struct {
    ($($ty:ident),*) => {$(
        // SAFETY: so defined in `abi::data`; pointers, integers and arrays of them may be zero.
        unsafe impl SizedStruct for abi::$ty {}
    )*};
}
impl_sized_struct!(
    AllocateRequest,
    Allocation,
    GraphNode,
    KernelInfo,
    MemoryUsage,
    ModuleSource,
    Occupancy,
    QueueOptions,
    RowCopy,
    RunReport
);
impl_sized_struct!(Telemetry, TensorDescription);

/// Reads a structure of the other side's version; what it does not know is zero.
///
/// # Safety
/// `theirs` is null or readable for the size that it states.
pub(super) unsafe fn read_struct<T: SizedStruct>(theirs: *const T) -> Result<T> {
    if theirs.is_null() || !theirs.is_aligned() {
        return Err(abi_mismatch(format!("no {}: null or misaligned", std::any::type_name::<T>())));
    }
    // SAFETY: a `SizedStruct` begins with its size.
    let stated = unsafe { *theirs.cast::<u32>() };
    // SAFETY: readable for what it states, and zero is valid.
    Ok(unsafe { copy_common_prefix(theirs, stated as usize) })
}

/// Writes a structure of this side's version, as far as the other side's `struct_size` has room.
///
/// # Safety
/// `out` is null or writable for the size that it states.
pub(super) unsafe fn write_struct<T: SizedStruct>(out: *mut T, ours: T) -> Result<()> {
    if out.is_null() || !out.is_aligned() {
        return Err(abi_mismatch(format!(
            "nowhere to put {}: null or misaligned",
            std::any::type_name::<T>()
        )));
    }
    // SAFETY: a `SizedStruct` begins with its size, which the caller sets.
    let stated = unsafe { *out.cast::<u32>() } as usize;
    let bytes = stated.min(size_of::<T>());
    if bytes > size_of::<u32>() {
        let from = size_of::<u32>();
        // SAFETY: behind the size, within the structure.
        let ours = unsafe { (&raw const ours).cast::<u8>().add(from) };
        // SAFETY: as above, and within what the other side states.
        let theirs = unsafe { out.cast::<u8>().add(from) };
        // SAFETY: both are valid up to `bytes`, and a local does not overlap foreign memory.
        unsafe { std::ptr::copy_nonoverlapping(ours, theirs, bytes - from) };
    }
    Ok(())
}

/// A byte count as a length.
pub(super) fn byte_len(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid(format!("{bytes} bytes do not fit the address space")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_caller_gets_only_what_it_has_room_for() {
        let ours = abi::MemoryUsage { struct_size: 24, reserved: 0, free_bytes: 7, total_bytes: 9 };
        let mut theirs = abi::MemoryUsage { struct_size: 16, reserved: 0, free_bytes: 0, total_bytes: 1 };
        // SAFETY: states less than it has.
        unsafe { write_struct(&raw mut theirs, ours) }.unwrap();
        assert_eq!((theirs.struct_size, theirs.free_bytes, theirs.total_bytes), (16, 7, 1));
        // SAFETY: null is refused.
        assert!(unsafe { write_struct(std::ptr::null_mut(), ours) }.is_err());
    }

    #[test]
    fn an_older_structure_is_read_with_zeros_behind() {
        let theirs = abi::QueueOptions { struct_size: 8, priority: 3, flags: u64::MAX };
        // SAFETY: states less than it has.
        let read = unsafe { read_struct(&raw const theirs) }.unwrap();
        assert_eq!((read.priority, read.flags), (3, 0));
    }
}
