//! Tables of backends, taken from their libraries: for layers that stand between core and a backend.

use std::mem::MaybeUninit;
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use runtime_core::abi::{self, BackendTable, EntryPoint};
use runtime_core::backend::LinkedBackend;
use runtime_core::{Error, ErrorKind};

/// The table of a library that core has loaded, and found to be right.
///
/// # Errors
/// `Io` if the library is gone; whatever its entry point answers.
pub(crate) fn load(path: &Path) -> Result<LinkedBackend, Error> {
    let loading = |error: libloading::Error| Error::new(ErrorKind::Io, error.to_string());
    // SAFETY: core has loaded this library already, and never closes it.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(loading)?;
    // SAFETY: core found this function in the library, by its manifest of this type.
    let entry = *unsafe { library.get::<EntryPoint>(abi::ENTRY_SYMBOL.as_bytes()) }.map_err(loading)?;
    let mut table: *const BackendTable = std::ptr::null();
    // SAFETY: `table` is writable.
    let status = unsafe { entry(&raw mut table) };
    // SAFETY: null or an owned error.
    unsafe { abi::from_status(status) }?;
    // SAFETY: core has negotiated this table, which lives as long as the library.
    let table = unsafe { &*table };
    // SAFETY: whoever runs the suite asks for this library.
    Ok(unsafe { LinkedBackend::from_table(table) })
}

/// Keeps a value for as long as the process lives, as tables must be.
pub(crate) fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The `struct_size` of a structure.
pub(crate) fn struct_size<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

/// Copies what both sides know of a structure of stated size; the rest is zero.
///
/// # Safety
/// `theirs` is readable for `stated` bytes, and zero is valid in every field.
pub(crate) unsafe fn copy_known<T>(theirs: *const T, stated: u32) -> T {
    let mut ours = MaybeUninit::<T>::zeroed();
    // Half a pointer is none.
    let bytes = (stated as usize / size_of::<usize>() * size_of::<usize>()).min(size_of::<T>());
    // SAFETY: both are readable and writable for so many bytes, and apart.
    unsafe { std::ptr::copy_nonoverlapping(theirs.cast::<u8>(), ours.as_mut_ptr().cast::<u8>(), bytes) };
    // SAFETY: zero, partly replaced by valid fields.
    unsafe { ours.assume_init() }
}

/// Copies a sub-table; null is an empty one.
pub(crate) fn sub_table<T: Default>(theirs: *const T) -> T {
    if theirs.is_null() {
        return T::default();
    }
    // SAFETY: every sub-table is static and begins with its size.
    let stated = unsafe { *theirs.cast::<u32>() };
    // SAFETY: it states its size, and zero is a missing function.
    unsafe { copy_known(theirs, stated) }
}
