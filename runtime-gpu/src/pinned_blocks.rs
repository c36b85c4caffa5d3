//! A pool of small pinned blocks for small reads: the device copies into a block, and the poll that sees the read complete
//! copies from there to the caller's memory.

#![allow(unsafe_code, reason = "allocates pinned memory through the driver")]

use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

use crate::context::PrimaryContext;
use crate::driver::abi::{DevicePtr, PORTABLE_MAPPED};

/// Bytes of a block. Larger reads are staged by threads.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Blocks per driver allocation.
const BATCH: usize = 16;

/// Address of a block of [`BLOCK_BYTES`].
#[derive(Clone, Copy, Debug)]
struct Address(NonNull<u8>);

// SAFETY: plain memory, handed from thread to thread.
unsafe impl Send for Address {}

/// A pinned block of [`BLOCK_BYTES`], which returns to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct PinnedBlock {
    pool: Arc<PinnedBlockPool>,
    memory: Address,
}

impl PinnedBlock {
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.memory.0.as_ptr()
    }

    /// The block's address, as the driver takes it.
    pub(crate) fn address(&self) -> DevicePtr {
        self.as_ptr().expose_provenance() as DevicePtr
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        self.pool.lists.lock().free.push(self.memory);
    }
}

/// Free blocks, and the allocations that they are parts of.
#[derive(Debug)]
pub(crate) struct PinnedBlockPool {
    primary: Arc<PrimaryContext>,
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    free: Vec<Address>,
    allocations: Vec<Address>,
}

impl PinnedBlockPool {
    pub(crate) fn new(primary: &Arc<PrimaryContext>) -> Self {
        Self { primary: Arc::clone(primary), lists: Mutex::default() }
    }

    /// Takes a free block; allocates a batch of them if there is none.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn allocate(self: &Arc<Self>) -> Result<PinnedBlock> {
        let mut lists = self.lists.lock();
        if lists.free.is_empty() {
            let first = allocate_pinned(&self.primary, BATCH * BLOCK_BYTES)?;
            lists.allocations.push(Address(first));
            for index in 0..BATCH {
                // SAFETY: the allocation has `BATCH` blocks.
                lists.free.push(Address(unsafe { first.add(index * BLOCK_BYTES) }));
            }
        }
        let memory = lists.free.pop().ok_or_else(null_pointer)?;
        Ok(PinnedBlock { pool: Arc::clone(self), memory })
    }
}

impl Drop for PinnedBlockPool {
    fn drop(&mut self) {
        let Ok(_current) = self.primary.make_current() else { return };
        for block in self.lists.get_mut().allocations.drain(..) {
            // SAFETY: allocated by `allocate`, and no longer in use.
            let _ = unsafe { (self.primary.driver.cuMemFreeHost)(block.0.as_ptr().cast()) };
        }
    }
}

/// Allocates pinned memory, cached by the processor: write-combined memory would be slow to read back.
pub(crate) fn allocate_pinned(primary: &PrimaryContext, bytes: usize) -> Result<NonNull<u8>> {
    let memory = primary.query("cuMemHostAlloc", std::ptr::null_mut(), |driver, memory| {
        // SAFETY: the out-parameter is writable, and the context is current.
        unsafe { (driver.cuMemHostAlloc)(memory, bytes, PORTABLE_MAPPED) }
    })?;
    NonNull::new(memory.cast()).ok_or_else(null_pointer)
}

fn null_pointer() -> Error {
    Error::new(ErrorKind::Driver, "cuMemHostAlloc returned a null pointer")
}
