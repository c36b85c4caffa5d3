//! Device memory that another library allocated.

#![allow(
    unsafe_code,
    reason = "memory of another library, which core keeps alive for the life of the buffer"
)]

use std::ffi::c_void;

/// Device memory that another library allocated. It lives at least until the buffer created from it is freed.
#[derive(Debug)]
pub struct DeviceBytes {
    memory: *mut c_void,
    len: usize,
}

// SAFETY: only the buffer's work accesses the memory, on whichever thread submits it.
unsafe impl Send for DeviceBytes {}

impl DeviceBytes {
    /// Wraps device memory.
    ///
    /// # Safety
    /// `memory` is the value of DLPack's `data` for the device. It refers to `len` bytes that are not used
    /// elsewhere until the buffer created from them is freed.
    pub(crate) const unsafe fn new(memory: *mut c_void, len: usize) -> Self {
        Self { memory, len }
    }

    /// The driver's handle to the memory: a device pointer, a `cl_mem`, ...
    #[must_use]
    pub const fn as_ptr(&self) -> *mut c_void {
        self.memory
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is zero.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}
