//! Pinned memory in slots, which the device copies one after the other while a thread fills or empties others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::{HostBytes, HostBytesMut};
use runtime_core::{Error, ErrorKind, Result};

use crate::driver::{Batch, Commands, Home, Lane, Logical, Memory, Pool, Semaphore};
use crate::staging::{Host, Job};

/// Slots of a thread.
const SLOTS: usize = 3;
/// Longest wait for a slot at a time; the device copies one in a moment.
const SLICE: Duration = Duration::from_secs(1);
/// How long ending a thread waits for what it did not wait for.
const FAREWELL: Duration = Duration::from_secs(10);

/// A piece of pinned memory, and the value of the semaphore at which the device is through with it.
#[derive(Debug)]
struct Slot {
    commands: Commands,
    offset: u64,
    until: u64,
}

/// The slots of one thread.
#[derive(Debug)]
pub(crate) struct Slots {
    logical: Arc<Logical>,
    slots: Vec<Slot>,
    memory: Memory,
    semaphore: Semaphore,
    /// What the semaphore is moved to by the last copy.
    value: u64,
    lane: Arc<Lane>,
    _pool: Pool,
}

impl Slots {
    pub(crate) fn new(logical: &Arc<Logical>, slot_bytes: usize) -> Result<Self> {
        let lane = logical.transfer_lane();
        let pool = Pool::new(logical, lane.family)?;
        let bytes = slot_bytes as u64;
        let slot = |index: usize| {
            Ok(Slot { commands: pool.commands(false)?, offset: index as u64 * bytes, until: 0 })
        };
        let slots = (0..SLOTS).map(slot).collect::<Result<_>>()?;
        let memory = Memory::allocate(logical, Home::Pinned, SLOTS as u64 * bytes, 16)?;
        let semaphore = Semaphore::new(logical)?;
        lane.join();
        Ok(Self { logical: Arc::clone(logical), slots, memory, semaphore, value: 0, lane, _pool: pool })
    }

    /// Copies pieces into slots, and has the device copy them on.
    pub(crate) fn fill(&mut self, job: &Job, source: &HostBytes) -> Result<()> {
        let done = self.fill_each(job, source);
        self.settle(done)
    }

    fn fill_each(&mut self, job: &Job, source: &HostBytes) -> Result<()> {
        let mut turn = 0;
        while let Some((offset, bytes)) = job.take() {
            let index = turn % SLOTS;
            turn += 1;
            self.wait(self.slots[index].until)?;
            let at = self.slots[index].offset;
            if !self.logical.lending.copy(|| self.memory.write(at, source, offset, bytes)) {
                return Err(gone(&self.logical));
            }
            self.submit(index, job, offset, bytes)?;
        }
        self.wait(self.value)
    }

    /// Has the device copy pieces into slots, and copies each to the program when it has come.
    pub(crate) fn empty(&mut self, job: &Job, destination: &HostBytesMut) -> Result<()> {
        let done = self.empty_each(job, destination);
        self.settle(done)
    }

    fn empty_each(&mut self, job: &Job, destination: &HostBytesMut) -> Result<()> {
        let mut coming: VecDeque<(usize, usize, usize)> = VecDeque::with_capacity(SLOTS);
        let mut turn = 0;
        loop {
            while coming.len() < SLOTS
                && let Some((offset, bytes)) = job.take()
            {
                let index = turn % SLOTS;
                turn += 1;
                self.submit(index, job, offset, bytes)?;
                coming.push_back((index, offset, bytes));
            }
            let Some((index, offset, bytes)) = coming.pop_front() else { return Ok(()) };
            self.wait(self.slots[index].until)?;
            let at = self.slots[index].offset;
            if !self.logical.lending.copy(|| self.memory.read(at, destination, offset, bytes)) {
                return Err(gone(&self.logical));
            }
        }
    }

    /// Submits a copy between a slot and the device.
    fn submit(&mut self, index: usize, job: &Job, offset: usize, bytes: usize) -> Result<()> {
        let there = (&*job.transfer.memory, job.transfer.offset + offset as u64);
        let slot = &mut self.slots[index];
        let here = (&self.memory, slot.offset);
        slot.commands.begin()?;
        match job.transfer.host {
            Host::Source(_) => slot.commands.copy(there, here, bytes as u64),
            Host::Destination(_) => {
                slot.commands.copy(here, there, bytes as u64);
                slot.commands.publish();
            }
        }
        slot.commands.end()?;
        let signal = (&self.semaphore, self.value + 1);
        self.lane.submit(&self.logical, &[Batch { waits: &[], commands: Some(&slot.commands), signal }])?;
        self.value += 1;
        slot.until = self.value;
        Ok(())
    }

    /// A transfer that fails ends when its own copies have ended: its memory may be freed then.
    fn settle(&self, done: Result<()>) -> Result<()> {
        if done.is_err() {
            // Another error means that nothing runs any more.
            let _ = self.wait(self.value);
        }
        done
    }

    /// Waits until the device has made so many copies.
    fn wait(&self, value: u64) -> Result<()> {
        while !self.semaphore.wait(value, SLICE)? {}
        Ok(())
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // An error means that nothing runs any more.
        let _ = self.semaphore.wait(self.value, FAREWELL);
        self.lane.leave();
    }
}

/// What a copy gives up with when the device is lost: the first error is the device's own. Who is told may take back
/// what was lent, so that other copies are waited for.
pub(crate) fn gone(logical: &Logical) -> Error {
    logical.lending.end();
    let error = || Error::new(ErrorKind::DeviceLost, "the device is lost; open it again");
    logical.check_alive().err().unwrap_or_else(error)
}
