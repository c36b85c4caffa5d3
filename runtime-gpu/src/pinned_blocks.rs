//! A pool of small pinned blocks for small reads: the device copies into a block, and the poll that sees the read complete
//! copies from there to the caller's memory.

#![allow(unsafe_code, reason = "allocates pinned memory through the driver")]

use std::ffi::c_void;
use std::ptr::NonNull;

use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::PrimaryContext;
use crate::driver::Driver;
use crate::driver::abi::{DevicePtr, PORTABLE_MAPPED};

/// Bytes of a block. Larger reads are staged by threads.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Blocks per driver allocation.
const BATCH: usize = 16;

/// A pinned block of [`BLOCK_BYTES`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedBlock(NonNull<u8>);

// SAFETY: plain memory, handed from thread to thread.
unsafe impl Send for PinnedBlock {}

impl PinnedBlock {
    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// The block's address, as the driver takes it.
    pub(crate) fn address(self) -> DevicePtr {
        self.0.as_ptr().expose_provenance() as DevicePtr
    }
}

/// Free blocks, and the allocations that they are parts of.
#[derive(Debug, Default)]
pub(crate) struct PinnedBlockPool(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    free: Vec<PinnedBlock>,
    allocations: Vec<PinnedBlock>,
}

impl PinnedBlockPool {
    /// Takes a free block; allocates a batch of them if there is none.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn allocate(&self, primary: &PrimaryContext) -> Result<PinnedBlock> {
        let mut lists = self.0.lock();
        if let Some(block) = lists.free.pop() {
            return Ok(block);
        }
        let first = allocate_pinned(primary, BATCH * BLOCK_BYTES)?;
        lists.allocations.push(PinnedBlock(first));
        for index in 1..BATCH {
            // SAFETY: the allocation has `BATCH` blocks.
            lists.free.push(PinnedBlock(unsafe { first.add(index * BLOCK_BYTES) }));
        }
        Ok(PinnedBlock(first))
    }

    /// Returns a block to the pool.
    pub(crate) fn free(&self, block: PinnedBlock) {
        self.0.lock().free.push(block);
    }

    /// Frees all allocations. The context is current.
    pub(crate) fn close(&self, driver: &Driver) {
        let mut lists = self.0.lock();
        lists.free.clear();
        for block in lists.allocations.drain(..) {
            // SAFETY: allocated by `allocate`, and no longer in use.
            let _ = unsafe { (driver.cuMemFreeHost)(block.as_ptr().cast()) };
        }
    }
}

/// Allocates pinned memory, cached by the processor: write-combined memory would be slow to read back.
pub(crate) fn allocate_pinned(primary: &PrimaryContext, bytes: usize) -> Result<NonNull<u8>> {
    let _current = primary.make_current()?;
    let mut memory: *mut c_void = std::ptr::null_mut();
    // SAFETY: the out-parameter is writable, and the context is current.
    let code = unsafe { (primary.driver.cuMemHostAlloc)(&raw mut memory, bytes, PORTABLE_MAPPED) };
    primary.check("cuMemHostAlloc", code)?;
    NonNull::new(memory.cast()).ok_or_else(|| {
        runtime_core::Error::new(runtime_core::ErrorKind::Driver, "cuMemHostAlloc returned a null pointer")
    })
}
