//! Small pinned blocks that small reads land in: the device writes them, and whoever sees the read's end copies them on.

#![allow(unsafe_code, reason = "allocates pinned memory through the driver")]

use std::ffi::c_void;
use std::ptr::NonNull;

use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::Primary;
use crate::driver::Driver;
use crate::driver::abi::{Address, PORTABLE_MAPPED};

/// Bytes of a block: what is larger is staged by threads.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Blocks that are allocated at once.
const BATCH: usize = 16;

/// A pinned block of [`BLOCK_BYTES`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block(NonNull<u8>);

// SAFETY: plain memory, handed from thread to thread.
unsafe impl Send for Block {}

impl Block {
    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.0.as_ptr()
    }

    /// The block's address, as the driver takes it.
    pub(crate) fn address(self) -> Address {
        self.0.as_ptr().expose_provenance() as Address
    }
}

/// Free blocks, and what they are parts of.
#[derive(Debug, Default)]
pub(crate) struct Bounces(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    free: Vec<Block>,
    allocations: Vec<Block>,
}

impl Bounces {
    /// A free block.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn take(&self, primary: &Primary) -> Result<Block> {
        let mut lists = self.0.lock();
        if let Some(block) = lists.free.pop() {
            return Ok(block);
        }
        let first = pinned(primary, BATCH * BLOCK_BYTES)?;
        lists.allocations.push(Block(first));
        for index in 1..BATCH {
            // SAFETY: the allocation has `BATCH` blocks.
            lists.free.push(Block(unsafe { first.add(index * BLOCK_BYTES) }));
        }
        Ok(Block(first))
    }

    /// Takes a block back.
    pub(crate) fn give(&self, block: Block) {
        self.0.lock().free.push(block);
    }

    /// Ends all blocks. The context is current.
    pub(crate) fn free(&self, driver: &Driver) {
        let mut lists = self.0.lock();
        lists.free.clear();
        for block in lists.allocations.drain(..) {
            // SAFETY: allocated by `take`, and used by nobody any more.
            let _ = unsafe { (driver.cuMemFreeHost)(block.as_ptr().cast()) };
        }
    }
}

/// Pinned memory, cached by the processor: write-combined memory would be slow to read back.
pub(crate) fn pinned(primary: &Primary, bytes: usize) -> Result<NonNull<u8>> {
    let _current = primary.enter()?;
    let mut memory: *mut c_void = std::ptr::null_mut();
    // SAFETY: the out-parameter is writable, and the context is current.
    let code = unsafe { (primary.driver.cuMemHostAlloc)(&raw mut memory, bytes, PORTABLE_MAPPED) };
    primary.check("cuMemHostAlloc", code)?;
    NonNull::new(memory.cast()).ok_or_else(|| {
        runtime_core::Error::new(runtime_core::ErrorKind::Driver, "cuMemHostAlloc answered a null pointer")
    })
}
