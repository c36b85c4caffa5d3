//! Staging slots in pinned memory: the device copies some slots while a thread fills or empties others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use runtime_core::Result;
use runtime_core::backend::{HostBytes, HostBytesMut};

use crate::driver::{
    CommandBuffer, CommandPool, LogicalDevice, Memory, MemoryLocation, Semaphore, SharedQueue, Submission,
};
use crate::staging::{HostRange, Job};

/// Slots per thread.
const SLOTS: usize = 3;
/// Longest single wait for a slot. Waits repeat; a copy takes only a moment.
const WAIT_SLICE: Duration = Duration::from_secs(1);
/// How long ending a thread waits for copies that it did not wait for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// A slot, free again when the semaphore reaches `busy_until`.
#[derive(Debug)]
struct Slot {
    commands: CommandBuffer,
    offset: u64,
    busy_until: u64,
}

/// The slots of one thread, used in turn.
#[derive(Debug)]
pub(crate) struct StagingSlots {
    logical: Arc<LogicalDevice>,
    slots: Vec<Slot>,
    memory: Memory,
    semaphore: Semaphore,
    /// The semaphore's value when the last copy has completed.
    submitted: u64,
    shared_queue: Arc<SharedQueue>,
    _pool: CommandPool,
}

impl StagingSlots {
    pub(crate) fn new(logical: &Arc<LogicalDevice>, slot_bytes: usize) -> Result<Self> {
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

    /// Uploads pieces of a job until none are left: host to slot, then slot to device.
    pub(crate) fn upload(&mut self, job: &Job, source: &HostBytes) -> Result<()> {
        let result = self.upload_pieces(job, source);
        self.drain_on_error(result)
    }

    fn upload_pieces(&mut self, job: &Job, source: &HostBytes) -> Result<()> {
        let mut slots = (0..SLOTS).cycle();
        while let (Some((offset, bytes)), Some(index)) = (job.next_piece(), slots.next()) {
            self.wait(self.slots[index].busy_until)?;
            let at = self.slots[index].offset;
            if !self.logical.host_borrows.access(|| self.memory.write(at, source, offset, bytes)) {
                return Err(self.logical.device_lost());
            }
            self.submit(index, job, offset, bytes)?;
        }
        self.wait(self.submitted)
    }

    /// Downloads pieces of a job until none are left: device to slot, then slot to host.
    pub(crate) fn download(&mut self, job: &Job, destination: &HostBytesMut) -> Result<()> {
        let result = self.download_pieces(job, destination);
        self.drain_on_error(result)
    }

    fn download_pieces(&mut self, job: &Job, destination: &HostBytesMut) -> Result<()> {
        let mut slots = (0..SLOTS).cycle();
        let mut in_flight: VecDeque<(usize, usize, usize)> = VecDeque::with_capacity(SLOTS);
        loop {
            while in_flight.len() < SLOTS
                && let (Some((offset, bytes)), Some(index)) = (job.next_piece(), slots.next())
            {
                self.submit(index, job, offset, bytes)?;
                in_flight.push_back((index, offset, bytes));
            }
            let Some((index, offset, bytes)) = in_flight.pop_front() else { return Ok(()) };
            self.wait(self.slots[index].busy_until)?;
            let at = self.slots[index].offset;
            if !self.logical.host_borrows.access(|| self.memory.read(at, destination, offset, bytes)) {
                return Err(self.logical.device_lost());
            }
        }
    }

    /// Submits a copy between a slot and the device.
    fn submit(&mut self, index: usize, job: &Job, offset: usize, bytes: usize) -> Result<()> {
        let on_device = (&*job.transfer.memory, job.transfer.offset + offset as u64);
        let slot = &mut self.slots[index];
        let in_slot = (&self.memory, slot.offset);
        slot.commands.begin()?;
        match job.transfer.host {
            HostRange::Source(_) => slot.commands.copy(on_device, in_slot, bytes as u64),
            HostRange::Destination(_) => {
                slot.commands.copy(in_slot, on_device, bytes as u64);
                slot.commands.make_host_visible();
            }
        }
        slot.commands.end()?;
        let signal = (&self.semaphore, self.submitted + 1);
        let submission = Submission { waits: &[], commands: Some(&slot.commands), signal };
        self.shared_queue.submit(&self.logical, &[submission])?;
        self.submitted += 1;
        slot.busy_until = self.submitted;
        Ok(())
    }

    /// After an error, waits for the submitted copies, since their memory may be freed then.
    fn drain_on_error(&self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            // After a second error nothing runs.
            let _ = self.wait(self.submitted);
        }
        result
    }

    fn wait(&self, value: u64) -> Result<()> {
        while !self.semaphore.wait(value, WAIT_SLICE)? {}
        Ok(())
    }
}

impl Drop for StagingSlots {
    fn drop(&mut self) {
        // After an error nothing runs.
        let _ = self.semaphore.wait(self.submitted, SHUTDOWN_TIMEOUT);
        self.shared_queue.release();
    }
}
