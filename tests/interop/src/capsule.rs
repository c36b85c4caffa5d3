//! Destructors of Python capsules. Native code, since they also run while an exception is pending, when Python code cannot.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::dlpack::delete;

type IsValid = unsafe extern "C" fn(capsule: *mut c_void, name: *const c_char) -> c_int;
type GetPointer = unsafe extern "C" fn(capsule: *mut c_void, name: *const c_char) -> *mut c_void;

static PYTHON: OnceLock<(IsValid, GetPointer)> = OnceLock::new();

/// Takes the interpreter's `PyCapsule_IsValid` and `PyCapsule_GetPointer`.
#[unsafe(no_mangle)]
pub extern "C" fn interop_python(is_valid: IsValid, get_pointer: GetPointer) {
    // Set once: there is one interpreter.
    let _ = PYTHON.set((is_valid, get_pointer));
}

/// Destructor of a capsule `dltensor_versioned`.
///
/// # Safety
/// Called by the interpreter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_destroy_versioned(capsule: *mut c_void) {
    // SAFETY: the interpreter's promise.
    unsafe { destroy(capsule, c"dltensor_versioned", true) };
}

/// Destructor of a capsule `dltensor`.
///
/// # Safety
/// Called by the interpreter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn interop_destroy_unversioned(capsule: *mut c_void) {
    // SAFETY: the interpreter's promise.
    unsafe { destroy(capsule, c"dltensor", false) };
}

/// Releases a tensor that was not consumed; a consumer renames the capsule.
unsafe fn destroy(capsule: *mut c_void, name: &CStr, versioned: bool) {
    let Some((is_valid, get_pointer)) = PYTHON.get() else { return };
    // SAFETY: a capsule, and the interpreter's own function.
    if unsafe { is_valid(capsule, name.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: as above.
    let managed = unsafe { get_pointer(capsule, name.as_ptr()) };
    // SAFETY: `interop_export` made it.
    unsafe { delete(managed, versioned) };
}
