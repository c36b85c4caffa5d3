//! Memory of a device that another library allocated.

#![allow(unsafe_code, reason = "memory of another library, which core keeps alive as long as the buffer")]

use std::ffi::c_void;

/// Memory of a device that another library allocated: it lives at least until the buffer made of it is freed.
#[derive(Debug)]
pub struct DeviceBytes {
    memory: *mut c_void,
    len: usize,
}

// SAFETY: it is memory that only the buffer's work touches, on whatever thread that is submitted.
unsafe impl Send for DeviceBytes {}

impl DeviceBytes {
    /// Names device memory.
    ///
    /// # Safety
    /// `memory` is what DLPack's `data` holds for the device, of `len` bytes that nobody else uses until the buffer
    /// that it is made for is freed.
    pub(crate) const unsafe fn new(memory: *mut c_void, len: usize) -> Self {
        Self { memory, len }
    }

    /// What the driver calls it: a device pointer, a `cl_mem`, ...
    #[must_use]
    pub const fn as_ptr(&self) -> *mut c_void {
        self.memory
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}
