//! The pinned slots of a staging thread: one is filled or emptied while the other is on the bus.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::time::Instant;

use runtime_core::Result;
use runtime_core::backend::backoff;

use super::{Direction, Job};
use crate::context::PrimaryContext;
use crate::driver::Driver;
use crate::driver::abi::{DevicePtr, Event, NO_TIMING, PORTABLE_MAPPED};

/// Slots of a thread.
const SLOTS: usize = 2;

/// A pinned slot, and the event that completes when the device has finished with it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    memory: *mut u8,
    event: Event,
    /// A copy from or to the slot was submitted and not waited for.
    in_flight: bool,
}

impl Slot {
    fn address(&self) -> DevicePtr {
        self.memory.expose_provenance() as DevicePtr
    }

    /// Submits a copy between the slot and the device.
    fn submit(&mut self, job: &Job, (to, from): (DevicePtr, DevicePtr), bytes: usize) -> Result<()> {
        let (primary, stream) = (&*job.state.primary, job.state.stream);
        // SAFETY: both ranges are live memory, which is kept until the slot's event has completed.
        let code = unsafe { (primary.driver.cuMemcpyAsync)(to, from, bytes, stream.0) };
        primary.check("cuMemcpyAsync", code)?;
        self.in_flight = true;
        // SAFETY: event and stream are alive and of one context.
        let code = unsafe { (primary.driver.cuEventRecord)(self.event.0, stream.0) };
        primary.check("cuEventRecord", code)
    }

    /// Waits for the copy in flight, if there is one.
    fn wait(&mut self, primary: &PrimaryContext) -> Result<()> {
        let begin = Instant::now();
        while self.in_flight {
            if primary.is_event_complete(self.event)? {
                self.in_flight = false;
            } else {
                backoff(begin.elapsed(), true);
            }
        }
        Ok(())
    }
}

/// The slots of one thread.
#[derive(Debug, Default)]
pub(super) struct SlotRing {
    slots: Vec<Slot>,
    memory: Option<*mut c_void>,
}

impl SlotRing {
    /// Copies pieces of a job until none are left. The context is current.
    ///
    /// # Errors
    /// Any error of the driver; the recorded fault if the device is lost.
    pub(super) fn transfer(&mut self, job: &Job, slot_bytes: usize) -> Result<()> {
        self.allocate(&job.state.primary, slot_bytes)?;
        match job.transfer.direction {
            Direction::Upload => self.upload(job),
            Direction::Download => self.download(job),
        }
    }

    /// Allocates the slots on first use.
    fn allocate(&mut self, primary: &PrimaryContext, slot_bytes: usize) -> Result<()> {
        if self.slots.len() == SLOTS {
            return Ok(());
        }
        let memory = match self.memory {
            Some(memory) => memory,
            None => {
                let mut memory = std::ptr::null_mut();
                // SAFETY: the out-parameter is writable, and the context is current on this thread.
                let code = unsafe {
                    (primary.driver.cuMemHostAlloc)(&raw mut memory, SLOTS * slot_bytes, PORTABLE_MAPPED)
                };
                primary.check("cuMemHostAlloc", code)?;
                *self.memory.insert(memory)
            }
        };
        while self.slots.len() < SLOTS {
            let mut event = Event::NULL;
            // SAFETY: the out-parameter is writable, and the context is current on this thread.
            let code = unsafe { (primary.driver.cuEventCreate)(&raw mut event.0, NO_TIMING) };
            primary.check("cuEventCreate", code)?;
            let memory = memory.cast::<u8>().wrapping_add(self.slots.len() * slot_bytes);
            self.slots.push(Slot { memory, event, in_flight: false });
        }
        Ok(())
    }

    /// Copies pieces into slots, and submits their copies to the device.
    fn upload(&mut self, job: &Job) -> Result<()> {
        let primary = &*job.state.primary;
        let mut turns = (0..SLOTS).cycle();
        while let (Some((offset, bytes)), Some(index)) = (job.take_piece(), turns.next()) {
            let slot = &mut self.slots[index];
            slot.wait(primary)?;
            let (from, to) = (job.transfer.host.wrapping_add(offset), slot.memory);
            primary.access_borrowed(|| {
                // SAFETY: the piece lies within the host memory, and the slot, which is free, holds a piece.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            })?;
            slot.submit(job, (job.transfer.device + offset as DevicePtr, slot.address()), bytes)?;
        }
        Ok(())
    }

    /// Submits the copies of pieces into slots, and copies each piece to the host memory when it has arrived.
    fn download(&mut self, job: &Job) -> Result<()> {
        let primary = &*job.state.primary;
        let mut arriving: VecDeque<(usize, usize, usize)> = VecDeque::with_capacity(SLOTS);
        let mut turns = (0..SLOTS).cycle();
        loop {
            while arriving.len() < SLOTS
                && let (Some((offset, bytes)), Some(index)) = (job.take_piece(), turns.next())
            {
                let slot = &mut self.slots[index];
                slot.wait(primary)?;
                slot.submit(job, (slot.address(), job.transfer.device + offset as DevicePtr), bytes)?;
                arriving.push_back((index, offset, bytes));
            }
            let Some((index, offset, bytes)) = arriving.pop_front() else { return Ok(()) };
            let slot = &mut self.slots[index];
            slot.wait(primary)?;
            let (from, to) = (slot.memory, job.transfer.host.wrapping_add(offset));
            primary.access_borrowed(|| {
                // SAFETY: the piece lies within the host memory, and has arrived in the slot.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            })?;
        }
    }

    /// Destroys the slots.
    pub(super) fn close(&mut self, driver: &Driver) {
        for slot in self.slots.drain(..) {
            // SAFETY: ours, and no longer in use.
            let _ = unsafe { (driver.cuEventDestroy_v2)(slot.event.0) };
        }
        if let Some(memory) = self.memory.take() {
            // SAFETY: as above; the driver waits for copies in flight.
            let _ = unsafe { (driver.cuMemFreeHost)(memory) };
        }
    }
}
