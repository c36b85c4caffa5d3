//! Reads the lists of a backend's native handles.

#![allow(unsafe_code, reason = "reads structures of a backend")]

use crate::Result;
use crate::abi;
use crate::model::native::{NativeHandle, NativeHandles};
use crate::plugin::convert::{borrow_slice, borrow_str};

/// More than any backend lists.
const MOST_HANDLES: usize = 32;

/// Reads a list that a backend passes.
///
/// # Errors
/// `AbiMismatch` for a list or a name that cannot be read.
///
/// # Safety
/// `handles` is null, or points to `count` handles.
pub(crate) unsafe fn read(handles: *const abi::NativeHandle, count: usize) -> Result<NativeHandles> {
    // SAFETY: the caller's promise.
    let listed = unsafe { borrow_slice("the list of native handles", handles, count, MOST_HANDLES) }?;
    let read = |handle: &abi::NativeHandle| {
        // SAFETY: by contract names are static, and a library is never unloaded.
        let name = unsafe { borrow_str::<'static>("NativeHandle.name", handle.name) }?;
        Ok(NativeHandle { name, value: handle.value })
    };
    listed.iter().map(read).collect::<Result<_>>().map(NativeHandles)
}

/// Asks a backend for a list: `ask` gets room for it, and a place for the number of its handles.
///
/// # Errors
/// Those of `ask`, and of [`read`].
pub(crate) fn ask(
    ask: impl FnOnce(*mut abi::NativeHandle, usize, *mut usize) -> Result<()>,
) -> Result<NativeHandles> {
    let mut handles = [abi::NativeHandle { name: abi::Str::EMPTY, value: 0 }; MOST_HANDLES];
    let mut count = 0;
    ask(handles.as_mut_ptr(), MOST_HANDLES, &raw mut count)?;
    // SAFETY: those that the backend did not store are empty.
    unsafe { read(handles.as_ptr(), count) }
}
