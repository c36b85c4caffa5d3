//! Host memory that a submission reads or writes while it is under way.

#![allow(unsafe_code, reason = "memory of the program, which core keeps alive until the ticket ends")]

use crate::{Error, Result};

/// Host memory that a submission reads: it lives until the submission's ticket ends, so give it up before.
#[derive(Debug)]
pub struct HostBytes {
    ptr: *const u8,
    len: usize,
}

// SAFETY: it is memory that only this view's owner touches until the ticket ends, on whatever thread that is.
unsafe impl Send for HostBytes {}

impl HostBytes {
    /// Views host memory.
    ///
    /// # Safety
    /// `ptr` is readable for `len` bytes, and nobody writes them, until the ticket that it is made for ends.
    pub(crate) const unsafe fn new(ptr: *const u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// First byte; for the driver.
    #[must_use]
    pub const fn as_ptr(&self) -> *const u8 {
        self.ptr
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

    /// Copies everything into `destination`.
    ///
    /// # Errors
    /// `InvalidArgument` if the lengths differ.
    pub fn copy_to(&self, destination: &mut [u8]) -> Result<()> {
        check_same_length(self.len, destination.len())?;
        if self.len > 0 {
            // SAFETY: `new` demands `len` readable bytes, and a mutable slice overlaps nothing.
            unsafe { std::ptr::copy_nonoverlapping(self.ptr, destination.as_mut_ptr(), self.len) };
        }
        Ok(())
    }
}

/// Host memory that a submission writes: it lives until the submission's ticket ends, so give it up before.
#[derive(Debug)]
pub struct HostBytesMut {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: it is memory that only this view's owner touches until the ticket ends, on whatever thread that is.
unsafe impl Send for HostBytesMut {}

impl HostBytesMut {
    /// Views host memory.
    ///
    /// # Safety
    /// `ptr` is readable and writable for `len` bytes, and nobody else touches them, until the ticket (for an
    /// import: the buffer) that it is made for ends.
    pub(crate) const unsafe fn new(ptr: *mut u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// First byte; for the driver.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.ptr
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

    /// Overwrites everything with `source`.
    ///
    /// # Errors
    /// `InvalidArgument` if the lengths differ.
    pub fn copy_from(&mut self, source: &[u8]) -> Result<()> {
        check_same_length(self.len, source.len())?;
        if self.len > 0 {
            // SAFETY: `new` demands `len` writable bytes that nobody else touches, so `source` is elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.ptr, self.len) };
        }
        Ok(())
    }
}

fn check_same_length(host: usize, other: usize) -> Result<()> {
    if host == other {
        return Ok(());
    }
    Err(Error::invalid(format!("host memory has {host} bytes, the other side {other}; pass equal lengths")))
}
