//! Host memory: aligned allocations, huge pages, memory of a NUMA node, and imported memory of the program.

#![allow(unsafe_code, reason = "allocates and frees memory")]

use std::alloc::Layout;

use runtime_core::backend::{Buffer, HostBytesMut, check_range};
use runtime_core::{Error, ErrorKind, Result};

use crate::platform::{self, Mapping};

/// Minimum alignment of an allocation.
pub(crate) const ALIGNMENT_BYTES: usize = 256;

/// Alignment that `calloc` guarantees.
const CALLOC_ALIGNMENT_BYTES: usize = 16;

/// Allocations of at least this size prefer huge pages.
const LARGE_BYTES: usize = 2 << 20;

/// A range of host memory.
#[derive(Debug)]
pub struct HostBuffer {
    start: *mut u8,
    bytes: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// The program; also used for an empty buffer.
    External,
    /// The pointer that the allocator returned, before alignment.
    Heap(*mut u8, Layout),
    Mapped(Mapping),
}

// SAFETY: the buffer is only an address range; the queues order all access to it.
unsafe impl Send for HostBuffer {}
// SAFETY: a shared buffer only exposes its address and size.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Allocates `bytes` zeroed bytes, because a program may read them as a slice before it writes them. Fresh pages of the
    /// system are zero already and are not touched.
    ///
    /// # Errors
    /// `OutOfMemory`; `Unavailable` without huge pages.
    pub(crate) fn allocate(bytes: usize, alignment_bytes: usize, huge_pages: bool) -> Result<Self> {
        let alignment = check(bytes, alignment_bytes)?;
        if bytes == 0 {
            return Ok(Self::empty(alignment));
        }
        if huge_pages {
            return Ok(Self::mapped(platform::map_huge(bytes, alignment)?, bytes));
        }
        if bytes >= LARGE_BYTES
            && let Ok(Some(mapping)) = platform::map_transparent_huge(bytes, alignment)
        {
            return Ok(Self::mapped(mapping, bytes));
        }
        // For a larger alignment, the standard library would not call `calloc` but write every byte.
        let padded =
            bytes.checked_add(alignment - CALLOC_ALIGNMENT_BYTES).ok_or_else(|| out_of_memory(bytes))?;
        let layout =
            Layout::from_size_align(padded, CALLOC_ALIGNMENT_BYTES).map_err(|_| out_of_memory(bytes))?;
        // SAFETY: the layout has a size other than zero.
        let base = unsafe { std::alloc::alloc_zeroed(layout) };
        if base.is_null() {
            return Err(out_of_memory(bytes));
        }
        let start = base.wrapping_add(base.align_offset(alignment));
        Ok(Self { start, bytes, owner: Owner::Heap(base, layout) })
    }

    /// Allocates `bytes` bytes in whole pages, preferably on `node`.
    ///
    /// # Errors
    /// As [`HostBuffer::allocate`]; `Unavailable` if the system does not allow choosing nodes.
    pub(crate) fn allocate_on(
        node: u32,
        bytes: usize,
        alignment_bytes: usize,
        huge_pages: bool,
    ) -> Result<Self> {
        let alignment = check(bytes, alignment_bytes)?;
        if bytes == 0 {
            return Ok(Self::empty(alignment));
        }
        let map = if huge_pages { platform::map_huge } else { platform::map_pages };
        let buffer = Self::mapped(map(bytes, alignment)?, bytes);
        if let Owner::Mapped(mapping) = &buffer.owner {
            platform::prefer_node(mapping, node)?;
        }
        Ok(buffer)
    }

    const fn empty(alignment: usize) -> Self {
        Self { start: std::ptr::without_provenance_mut(alignment), bytes: 0, owner: Owner::External }
    }

    const fn mapped(mapping: Mapping, bytes: usize) -> Self {
        Self { start: mapping.start, bytes, owner: Owner::Mapped(mapping) }
    }

    /// Wraps memory of the program, which outlives the buffer.
    #[expect(clippy::needless_pass_by_value, reason = "the buffer takes over the view's memory")]
    pub(crate) fn import(memory: HostBytesMut) -> Self {
        Self { start: memory.as_ptr(), bytes: memory.len(), owner: Owner::External }
    }

    /// Bytes of the buffer.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// First byte.
    pub(crate) const fn start(&self) -> *mut u8 {
        self.start
    }

    /// The address of byte `offset`, if `bytes` bytes from there on are inside the buffer.
    ///
    /// # Errors
    /// `InvalidArgument`, with `what`.
    pub(crate) fn range(&self, what: &str, offset: u64, bytes: u64) -> Result<*mut u8> {
        check_range(what, offset, bytes, self.bytes as u64)?;
        Ok(self.start.wrapping_add(usize::try_from(offset).unwrap_or(0)))
    }
}

/// Checks the size of an allocation, and returns its alignment.
fn check(bytes: usize, alignment_bytes: usize) -> Result<usize> {
    if bytes as u64 > platform::memory_and_swap_bytes() {
        let note = format!("this machine has {} bytes", platform::memory_and_swap_bytes());
        return Err(out_of_memory(bytes).with_note(note));
    }
    Ok(alignment_bytes.max(ALIGNMENT_BYTES))
}

fn out_of_memory(bytes: usize) -> Error {
    Error::new(
        ErrorKind::OutOfMemory,
        format!("cannot allocate {bytes} bytes; free tensors or allocate less"),
    )
}

impl Buffer for HostBuffer {
    fn kernel_address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        match &self.owner {
            Owner::External => {}
            // SAFETY: the pointer was allocated with this layout, and the buffer is its only owner.
            Owner::Heap(base, layout) => unsafe { std::alloc::dealloc(*base, *layout) },
            Owner::Mapped(mapping) => platform::unmap(mapping),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_kept() {
        for alignment in [1, 64, 256, 4096, 1 << 21] {
            let buffer = HostBuffer::allocate(100, alignment, false).unwrap();
            assert_eq!(buffer.kernel_address() % alignment.max(ALIGNMENT_BYTES) as u64, 0);
        }
    }

    #[test]
    fn allocations_are_zeroed_even_if_the_memory_is_reused() {
        for bytes in [1, 100, 4096, 100_000, 300_000, LARGE_BYTES] {
            for alignment in [1, 4096] {
                for _ in 0..4 {
                    let buffer = HostBuffer::allocate(bytes, alignment, false).unwrap();
                    // SAFETY: the buffer's own memory, which nothing else uses.
                    let memory = unsafe { std::slice::from_raw_parts_mut(buffer.start(), bytes) };
                    assert!(memory.iter().all(|byte| *byte == 0), "{bytes} bytes");
                    memory.fill(0xa5);
                }
            }
        }
    }

    #[test]
    fn an_empty_allocation_is_valid() {
        let buffer = HostBuffer::allocate(0, 4096, true).unwrap();
        assert_eq!(buffer.kernel_address(), 4096);
        assert!(buffer.range("source", 0, 0).is_ok());
        assert!(buffer.range("source", 0, 1).is_err());
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 50] {
            for huge_pages in [false, true] {
                let error = HostBuffer::allocate(bytes, 256, huge_pages).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
            }
        }
    }

    #[test]
    fn huge_pages_are_writable_or_the_error_names_the_remedy() {
        match HostBuffer::allocate((2 << 20) + 1, 1 << 22, true) {
            Ok(buffer) => {
                assert_eq!(buffer.kernel_address() % (1 << 22), 0);
                // SAFETY: the last byte of the buffer.
                unsafe { buffer.start().wrapping_add(2 << 20).write(7) };
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert!(error.message().contains("nr_hugepages"), "{error}");
            }
        }
    }

    #[test]
    fn large_allocations_begin_on_a_huge_page() {
        // Where the system has none, there is nothing to test.
        if let Ok(Some(mapping)) = platform::map_transparent_huge(LARGE_BYTES, 1) {
            platform::unmap(&mapping);
            let buffer = HostBuffer::allocate(LARGE_BYTES, 1, false).unwrap();
            assert_eq!(buffer.kernel_address() % platform::huge_page_bytes(), 0);
        }
    }

    #[test]
    fn a_range_outside_the_buffer_is_rejected() {
        let buffer = HostBuffer::allocate(16, 256, false).unwrap();
        assert!(buffer.range("source", 8, 8).is_ok());
        assert!(buffer.range("source", u64::MAX, 2).is_err());
        assert!(buffer.range("source", 9, 8).unwrap_err().message().contains("buffer of 16 bytes"));
    }

    #[test]
    fn memory_of_a_node_is_requested() {
        for (bytes, alignment) in [(1, 1), (100_000, 4096), (1 << 20, 1 << 16)] {
            let buffer = HostBuffer::allocate_on(0, bytes, alignment, false).unwrap();
            assert_eq!(buffer.kernel_address() % alignment.max(4096) as u64, 0);
            let mut policy = -1_i32;
            let mut mask = [0_u64; 16];
            let at = buffer.start();
            // SAFETY: queries the policy (flag 2: of an address) of mapped memory.
            let asked = unsafe {
                libc::syscall(libc::SYS_get_mempolicy, &raw mut policy, mask.as_mut_ptr(), 1024, at, 2)
            };
            assert_eq!((asked, policy, mask[0]), (0, libc::MPOL_PREFERRED, 1));
            // SAFETY: the last byte of the buffer.
            unsafe { at.wrapping_add(bytes - 1).write(7) };
        }
        let error = HostBuffer::allocate_on(999, 1, 1, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("node 999: mbind"), "{error}");
    }
}
