//! Conversion of handles, output parameters and sized structures at the C ABI, with checks for null and
//! alignment.

use std::mem::MaybeUninit;

use super::panic::{catch_panic, guard};
use crate::abi::{self, Handle, Status};
use crate::plugin::negotiate::copy_common_prefix;
use crate::{Error, ErrorKind, Result};

/// Moves an object into a handle for core.
pub(super) fn into_handle<T>(object: T) -> Handle {
    Box::into_raw(Box::new(object)).cast()
}

/// Borrows the object behind a handle.
///
/// # Safety
/// `handle` is null or came from [`into_handle`] with this `T`, or with a `repr(C)` type whose first field is a `T`, and is
/// not passed to [`from_handle`] during `'a`.
#[inline]
pub(super) unsafe fn borrow<'a, T>(handle: Handle) -> Result<&'a T> {
    // SAFETY: guaranteed by the caller.
    unsafe { handle.cast::<T>().as_ref() }.ok_or_else(null_handle::<T>)
}

/// Takes back the object behind a handle; `None` for null.
///
/// # Safety
/// `handle` is null or came from [`into_handle`] with this `T`, and is not used afterwards.
pub(super) unsafe fn from_handle<T>(handle: Handle) -> Option<Box<T>> {
    // SAFETY: as the caller guarantees, an exclusively owned box.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle.cast::<T>()) })
}

#[cold]
fn null_handle<T>() -> Error {
    abi_mismatch(format!("expected a handle of {}, got null", std::any::type_name::<T>()))
}

#[cold]
pub(super) fn abi_mismatch(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::AbiMismatch, message)
}

/// Borrows an output parameter.
///
/// # Safety
/// `out` is null or writable for `'a`.
#[inline]
pub(super) unsafe fn out_param<'a, T>(out: *mut T) -> Result<&'a mut MaybeUninit<T>> {
    if out.is_null() || !out.is_aligned() {
        return Err(abi_mismatch("the output pointer is null or misaligned"));
    }
    // SAFETY: not null, aligned, and writable as the caller guarantees; uninitialised bytes are allowed.
    Ok(unsafe { &mut *out.cast::<MaybeUninit<T>>() })
}

/// A shim that asks the object behind a handle, and writes the answer.
///
/// # Safety
/// As for [`borrow`] and [`out_param`].
#[inline]
pub(super) unsafe fn answer<T, A>(
    slot: &'static str,
    handle: Handle,
    out: *mut A,
    ask: impl FnOnce(&T) -> Result<A>,
) -> Status {
    guard(slot, || {
        // SAFETY: guaranteed by the caller.
        let object = unsafe { borrow::<T>(handle) }?;
        // SAFETY: guaranteed by the caller.
        let out = unsafe { out_param(out) }?;
        out.write(ask(object)?);
        Ok(())
    })
}

/// As [`answer`], with a list that the object lends.
///
/// # Safety
/// As for [`answer`].
pub(super) unsafe fn answer_list<T, E>(
    slot: &'static str,
    handle: Handle,
    (list, count): (*mut *const E, *mut usize),
    ask: impl FnOnce(&T) -> Result<(*const E, usize)>,
) -> Status {
    let ask = |object: &T| {
        // SAFETY: guaranteed by the caller.
        let count = unsafe { out_param(count) }?;
        let (first, len) = ask(object)?;
        count.write(len);
        Ok(first)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { answer(slot, handle, list, ask) }
}

/// As [`answer`], with a structure that may have fewer fields at the receiver.
///
/// # Safety
/// As for [`borrow`] and [`write_struct`].
pub(super) unsafe fn answer_struct<T, A: SizedStruct>(
    slot: &'static str,
    handle: Handle,
    out: *mut A,
    ask: impl FnOnce(&T) -> Result<A>,
) -> Status {
    guard(slot, || {
        // SAFETY: guaranteed by the caller.
        let answer = ask(unsafe { borrow::<T>(handle) }?)?;
        // SAFETY: guaranteed by the caller.
        unsafe { write_struct(out, answer) }
    })
}

/// A shim that drops the object behind a handle.
///
/// # Safety
/// As for [`from_handle`].
pub(super) unsafe fn release<T>(slot: &'static str, handle: Handle) {
    // The hook logs a panic in `drop`; there is no status to return it in.
    // SAFETY: guaranteed by the caller.
    let _ = catch_panic(slot, || drop(unsafe { from_handle::<T>(handle) }));
}

/// A C structure that begins with `struct_size: u32`.
///
/// # Safety
/// `#[repr(C)]`, with `struct_size: u32` first, and valid when all its bytes are zero.
pub(super) unsafe trait SizedStruct: Copy {}

macro_rules! impl_sized_struct {
    ($($ty:ident),*) => {$(
        // SAFETY: defined like this in `abi`; pointers, integers and arrays of them may be zero.
        unsafe impl SizedStruct for abi::$ty {}
    )*};
}
impl_sized_struct!(
    AllocateRequest,
    Allocation,
    CompiledCode,
    CounterSetInfo,
    GraphNode,
    KernelInfo,
    MemoryUsage,
    ModuleSource,
    Occupancy,
    QueueOptions,
    Copy2D,
    RunReport
);
impl_sized_struct!(Telemetry, TensorDescription);

/// Reads a structure of the sender's version; fields that the sender does not have are zero.
///
/// # Safety
/// `theirs` is null, or readable for its `struct_size`.
pub(super) unsafe fn read_struct<T: SizedStruct>(theirs: *const T) -> Result<T> {
    if theirs.is_null() || !theirs.is_aligned() {
        return Err(abi_mismatch(format!(
            "the pointer to {} is null or misaligned",
            std::any::type_name::<T>()
        )));
    }
    // SAFETY: a `SizedStruct` begins with its size.
    let stated = unsafe { *theirs.cast::<u32>() };
    // SAFETY: readable for its stated size, and zero is valid.
    Ok(unsafe { copy_common_prefix(theirs, stated as usize) })
}

/// Writes a structure of this version, truncated to the receiver's `struct_size`.
///
/// # Safety
/// `out` is null, or writable for its `struct_size`.
pub(super) unsafe fn write_struct<T: SizedStruct>(out: *mut T, ours: T) -> Result<()> {
    if out.is_null() || !out.is_aligned() {
        return Err(abi_mismatch(format!(
            "the output pointer for {} is null or misaligned",
            std::any::type_name::<T>()
        )));
    }
    // SAFETY: a `SizedStruct` begins with its size, which the caller sets.
    let stated = unsafe { *out.cast::<u32>() } as usize;
    let bytes = stated.min(size_of::<T>());
    if bytes > size_of::<u32>() {
        let from = size_of::<u32>();
        // SAFETY: after the size field, within the structure.
        let ours = unsafe { (&raw const ours).cast::<u8>().add(from) };
        // SAFETY: as above, and within the receiver's stated size.
        let theirs = unsafe { out.cast::<u8>().add(from) };
        // SAFETY: both are valid up to `bytes`, and a local variable does not overlap foreign memory.
        unsafe { std::ptr::copy_nonoverlapping(ours, theirs, bytes - from) };
    }
    Ok(())
}

/// Converts a byte count to `usize`.
pub(super) fn byte_len(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid(format!("{bytes} bytes exceed the address space")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_receiver_gets_only_the_fields_it_has() {
        let ours = abi::MemoryUsage { struct_size: 24, reserved: 0, free_bytes: 7, total_bytes: 9 };
        let mut theirs = abi::MemoryUsage { struct_size: 16, reserved: 0, free_bytes: 0, total_bytes: 1 };
        // SAFETY: the stated size is smaller than the structure.
        unsafe { write_struct(&raw mut theirs, ours) }.unwrap();
        assert_eq!((theirs.struct_size, theirs.free_bytes, theirs.total_bytes), (16, 7, 1));
        // SAFETY: null is rejected.
        assert!(unsafe { write_struct(std::ptr::null_mut(), ours) }.is_err());
    }

    #[test]
    fn missing_fields_of_an_older_structure_are_zero() {
        let theirs = abi::QueueOptions { struct_size: 8, priority: 3, flags: u64::MAX };
        // SAFETY: the stated size is smaller than the structure.
        let read = unsafe { read_struct(&raw const theirs) }.unwrap();
        assert_eq!((read.priority, read.flags), (3, 0));
    }
}
