//! Staging slots in pinned memory: the device copies some slots while a thread fills or empties others.

use std::sync::Arc;
use std::time::Duration;

use runtime_core::Result;
use runtime_core::backend::{Direction, Piece, Pieces, SHUTDOWN_TIMEOUT, StagingSlots, copy_pieces};

use super::Transfer;
use crate::driver::{
    CommandBuffer, CommandPool, LogicalDevice, Memory, MemoryLocation, Semaphore, SharedQueue, Submission,
};

/// Slots per thread.
const SLOTS: usize = 3;
/// Longest single wait for a slot. Waits repeat; a copy takes only a moment.
const WAIT_SLICE: Duration = Duration::from_secs(1);

/// A slot, free again when the semaphore reaches `busy_until`; 0 if it is known to be free.
#[derive(Debug)]
struct Slot {
    commands: CommandBuffer,
    offset: u64,
    busy_until: u64,
}

/// The slots of one thread, used in turn.
#[derive(Debug)]
pub(crate) struct SlotRing {
    logical: Arc<LogicalDevice>,
    slots: Vec<Slot>,
    memory: Memory,
    semaphore: Semaphore,
    /// The semaphore's value when the last copy has completed.
    submitted: u64,
    shared_queue: Arc<SharedQueue>,
    _pool: CommandPool,
}

impl SlotRing {
    pub(super) fn new(logical: &Arc<LogicalDevice>, slot_bytes: usize) -> Result<Self> {
        let shared_queue = logical.least_used_transfer_queue();
        let pool = CommandPool::new(logical, shared_queue.family)?;
        let bytes = slot_bytes as u64;
        let slot = |index: usize| {
            Ok(Slot { commands: pool.allocate()?, offset: index as u64 * bytes, busy_until: 0 })
        };
        let slots = (0..SLOTS).map(slot).collect::<Result<_>>()?;
        let memory = Memory::allocate(logical, MemoryLocation::Pinned, SLOTS as u64 * bytes, 16)?;
        let semaphore = Semaphore::new(logical)?;
        shared_queue.acquire();
        let logical = Arc::clone(logical);
        Ok(Self { logical, slots, memory, semaphore, submitted: 0, shared_queue, _pool: pool })
    }

    /// Copies pieces until none are left, and waits for the copies that were submitted, also after an error, since their memory
    /// may be freed then.
    pub(super) fn copy(&mut self, transfer: &Transfer, pieces: &Pieces) -> Result<()> {
        let copied = copy_pieces(self, transfer, transfer.host.direction(), pieces);
        // If both fail, nothing runs any more.
        let drained = self.wait_for(self.submitted);
        copied.and(drained)
    }

    fn wait_for(&self, value: u64) -> Result<()> {
        while value > 0 && !self.semaphore.wait(value, WAIT_SLICE)? {}
        Ok(())
    }
}

impl StagingSlots<Transfer> for SlotRing {
    const COUNT: usize = SLOTS;

    fn wait(&mut self, _: &Transfer, slot: usize) -> Result<()> {
        let busy_until = std::mem::take(&mut self.slots[slot].busy_until);
        self.wait_for(busy_until)
    }

    fn copy_host(&mut self, transfer: &Transfer, slot: usize, piece: Piece) -> Result<()> {
        transfer.copy_host(&self.memory, self.slots[slot].offset, piece)
    }

    fn submit(&mut self, transfer: &Transfer, slot: usize, piece: Piece) -> Result<()> {
        let direction = transfer.host.direction();
        let slot = &mut self.slots[slot];
        let on_device = (&*transfer.memory, transfer.offset + piece.offset as u64);
        let (to, from) = direction.order(on_device, (&self.memory, slot.offset));
        slot.commands.begin()?;
        slot.commands.copy(to, from, piece.bytes as u64);
        if direction == Direction::Download {
            slot.commands.make_host_visible();
        }
        slot.commands.end()?;
        let signal = (&self.semaphore, self.submitted + 1);
        let submission = Submission { waits: &[], commands: Some(&slot.commands), signal };
        self.shared_queue.submit(&self.logical, &[submission])?;
        self.submitted += 1;
        slot.busy_until = self.submitted;
        Ok(())
    }
}

impl Drop for SlotRing {
    fn drop(&mut self) {
        // After an error nothing runs.
        let _ = self.semaphore.wait(self.submitted, SHUTDOWN_TIMEOUT);
        self.shared_queue.release();
    }
}
