//! Host memory between guard pages: an access out of range raises a signal.

#![allow(unsafe_code, reason = "maps memory")]

use std::io::Error;
use std::ptr::{NonNull, null_mut};

/// Memory that ends (or begins) at a guard page.
#[derive(Debug)]
pub struct GuardedMemory {
    mapping: NonNull<u8>,
    mapped: usize,
    offset: usize,
    bytes: usize,
}

impl GuardedMemory {
    /// Memory with this content. With `at_end` it ends at the guard page behind it, as close as `alignment` allows;
    /// otherwise it begins at the one in front of it.
    ///
    /// # Errors
    /// Those of `mmap` and `mprotect`.
    pub fn new(content: &[u8], at_end: bool, alignment: usize) -> Result<Self, Error> {
        let page = 4096;
        let inner = content.len().next_multiple_of(page).max(page);
        let mapped = inner + 2 * page;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: creates a new mapping at an address that the system chooses.
        let start = unsafe { libc::mmap(null_mut(), mapped, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let mapping = NonNull::new(start.cast::<u8>()).ok_or_else(Error::last_os_error)?;
        let offset = if at_end { page + (inner - content.len()) / alignment * alignment } else { page };
        let guarded = Self { mapping, mapped, offset, bytes: content.len() };
        let first = mapping.as_ptr().wrapping_add(page);
        // SAFETY: the range covers the inner pages of the mapping.
        if unsafe { libc::mprotect(first.cast(), inner, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: `offset..offset + bytes` lies in the inner pages, which are not shared yet.
        unsafe { std::ptr::copy_nonoverlapping(content.as_ptr(), guarded.start(), content.len()) };
        Ok(guarded)
    }

    /// The address of its first byte.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.mapping.as_ptr().wrapping_add(self.offset)
    }

    /// Its current content; nothing may write it during the call.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        let mut content = vec![0; self.bytes];
        // SAFETY: as in `new`.
        unsafe { std::ptr::copy_nonoverlapping(self.start(), content.as_mut_ptr(), self.bytes) };
        content
    }
}

impl Drop for GuardedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`; the owner has dropped all tensors on it.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}
