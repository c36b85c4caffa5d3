//! Host memory that a submission reads or writes until its ticket ends.

#![allow(unsafe_code, reason = "host memory that core keeps alive until the ticket ends")]

/// Host memory that a submission reads. It is valid until the submission's ticket ends; drop it before then.
#[derive(Debug)]
pub struct HostBytes {
    ptr: *const u8,
    len: usize,
}

// SAFETY: until the ticket ends, only the owner of this view accesses the memory, on whichever thread that
// is.
unsafe impl Send for HostBytes {}

impl HostBytes {
    /// Wraps host memory.
    ///
    /// # Safety
    /// Until the ticket that the view is created for ends, `ptr` is readable for `len` bytes, and they are
    /// not written.
    pub(crate) const unsafe fn new(ptr: *const u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Address of the first byte, for the driver.
    #[must_use]
    pub const fn as_ptr(&self) -> *const u8 {
        self.ptr
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

/// Host memory that a submission writes. It is valid until the submission's ticket ends; drop it before then.
#[derive(Debug)]
pub struct HostBytesMut {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: until the ticket ends, only the owner of this view accesses the memory, on whichever thread that
// is.
unsafe impl Send for HostBytesMut {}

impl HostBytesMut {
    /// Wraps host memory.
    ///
    /// # Safety
    /// Until the ticket that the view is created for ends (for an import: until the buffer is freed), `ptr`
    /// is readable and writable for `len` bytes, and they are not accessed elsewhere.
    pub(crate) const unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// Address of the first byte, for the driver.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.ptr
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
