//! Loads and copies backend tables, for layers between core and a backend.

use std::mem::MaybeUninit;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use runtime_core::abi::{self, BackendTable, EntryPoint};
use runtime_core::backend::{LinkedBackend, convert};
use runtime_core::{Error, ErrorKind};

/// The table of a library that core has already loaded and validated.
///
/// # Errors
/// `Io` if the library is gone; errors of its entry point.
pub(crate) fn load(path: &Path) -> Result<LinkedBackend, Error> {
    let loading = |error: libloading::Error| Error::new(ErrorKind::Io, error.to_string());
    // SAFETY: core has already loaded this library, and never closes it.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(loading)?;
    // SAFETY: core found this symbol, which has this type according to the manifest.
    let entry = *unsafe { library.get::<EntryPoint>(abi::ENTRY_SYMBOL.as_bytes()) }.map_err(loading)?;
    let mut table: *const BackendTable = std::ptr::null();
    // SAFETY: `table` is writable.
    let status = unsafe { entry(&raw mut table) };
    // SAFETY: `status` is null or an owned error.
    unsafe { convert::from_status(status) }?;
    // SAFETY: core has negotiated this table, which lives as long as the library.
    let table = unsafe { &*table };
    // SAFETY: the user selected this library for the suite.
    Ok(unsafe { LinkedBackend::from_table(table) })
}

/// Leaks a value: tables must live as long as the process.
pub(crate) fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The `struct_size` of a structure.
pub(crate) fn struct_size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

/// Copies the fields of a structure of `stated` bytes that both versions have; the rest is zero.
///
/// # Safety
/// `theirs` is readable for `stated` bytes, and zero is valid in every field.
pub(crate) unsafe fn copy_known<T>(theirs: *const T, stated: u32) -> T {
    let mut ours = MaybeUninit::<T>::zeroed();
    // Round down to whole pointers.
    let bytes = (stated as usize / size_of::<usize>() * size_of::<usize>()).min(size_of::<T>());
    // SAFETY: `theirs` is readable and `ours` writable for `bytes` bytes; they do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(theirs.cast::<u8>(), ours.as_mut_ptr().cast::<u8>(), bytes) };
    // SAFETY: all fields are zero or copied from a valid structure.
    unsafe { ours.assume_init() }
}

/// Copies a sub-table; null gives an empty one.
pub(crate) fn sub_table<T: Default>(theirs: *const T) -> T {
    if theirs.is_null() {
        return T::default();
    }
    // SAFETY: every sub-table is static and begins with its size.
    let stated = unsafe { *theirs.cast::<u32>() };
    // SAFETY: the table states its size, and zero is a missing function.
    unsafe { copy_known(theirs, stated) }
}
