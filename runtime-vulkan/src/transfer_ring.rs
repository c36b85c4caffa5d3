//! Pinned memory for small transfers: a ring per queue and direction, with dedicated memory where the ring is full.

use std::sync::Arc;

use runtime_core::Result;

use crate::driver::{Memory, MemoryLocation};
use crate::progress::QueueProgress;
use crate::ring_allocator::RingAllocator;

const RING_BYTES: u64 = 4 << 20;
/// Largest transfer that goes through a ring.
pub(crate) const MAX_RING_TRANSFER_BYTES: u64 = RING_BYTES / 8;
const ALIGNMENT_BYTES: u64 = 16;

/// A ring in pinned memory, which is allocated on first use.
#[derive(Debug, Default)]
pub(crate) struct TransferRing(Option<(Arc<Memory>, RingAllocator)>);

impl TransferRing {
    /// `bytes` bytes until `ticket` has completed: memory, and an offset in it.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn allocate(
        &mut self,
        progress: &QueueProgress,
        bytes: u64,
        ticket: u64,
    ) -> Result<(Arc<Memory>, u64)> {
        let logical = &progress.logical;
        let allocate =
            |bytes| Memory::allocate(logical, MemoryLocation::Pinned, bytes, ALIGNMENT_BYTES).map(Arc::new);
        let (memory, ring) = match &mut self.0 {
            Some(ring) => ring,
            none => none.insert((allocate(RING_BYTES)?, RingAllocator::new(RING_BYTES))),
        };
        if let Some(offset) = ring.allocate(bytes, ticket) {
            return Ok((Arc::clone(memory), offset));
        }
        ring.free_until(progress.poll()?);
        match ring.allocate(bytes, ticket) {
            Some(offset) => Ok((Arc::clone(memory), offset)),
            None => Ok((allocate(bytes)?, 0)),
        }
    }

    /// Whether this memory is the ring's, and not dedicated to one transfer.
    pub(crate) fn owns(&self, memory: &Arc<Memory>) -> bool {
        self.0.as_ref().is_some_and(|(own, _)| Arc::ptr_eq(own, memory))
    }
}
