//! Host memory that a submission reads or writes until its ticket ends.

#![allow(unsafe_code, reason = "host memory that core keeps alive until the ticket ends")]

use crate::{Error, Result};

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

    /// Copies all bytes to `destination`.
    ///
    /// # Errors
    /// `InvalidArgument` if the lengths differ.
    pub fn copy_to(&self, destination: &mut [u8]) -> Result<()> {
        check_same_length(self.len, destination.len())?;
        if self.len > 0 {
            // SAFETY: `new` requires `len` readable bytes, and a mutable slice does not alias them.
            unsafe { std::ptr::copy_nonoverlapping(self.ptr, destination.as_mut_ptr(), self.len) };
        }
        Ok(())
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

    /// Overwrites all bytes with `source`.
    ///
    /// # Errors
    /// `InvalidArgument` if the lengths differ.
    pub fn copy_from(&mut self, source: &[u8]) -> Result<()> {
        check_same_length(self.len, source.len())?;
        if self.len > 0 {
            // SAFETY: `new` requires `len` writable bytes that are not accessed elsewhere, so `source` does
            // not overlap them.
            unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.ptr, self.len) };
        }
        Ok(())
    }
}

fn check_same_length(host: usize, other: usize) -> Result<()> {
    if host == other {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "host memory has {host} bytes, but the other side has {other}; pass equal lengths"
    )))
}
