//! Objects of a driver, for work that the runtime does not submit.

use core::ffi::c_void;

use super::Str;

/// An object of a driver. Frozen. Since minor version 4.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct NativeHandle {
    /// Its type in the driver's API, e.g. `CUstream`, `cl_command_queue`, `VkQueue`. Static.
    pub name: Str,
    /// The handle, an address, or a number.
    pub value: u64,
}

/// Foreign work: submits to the driver through `handles`, which are valid during the call. Never unwinds. Since minor version 4.
pub type NativeWork = unsafe extern "C" fn(context: *mut c_void, handles: *const NativeHandle, count: usize);
