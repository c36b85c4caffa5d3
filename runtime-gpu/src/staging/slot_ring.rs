//! The pinned slots of a staging thread: one is filled or emptied while the other is on the bus.

#![allow(
    unsafe_code,
    reason = "calls the driver, and copies host memory that core keeps until the ticket ends"
)]

use std::time::Instant;

use runtime_core::Result;
use runtime_core::backend::{Piece, StagingSlots, backoff};

use super::Transfer;
use crate::context::PrimaryContext;
use crate::driver::Driver;
use crate::driver::abi::{DevicePtr, Event};
use crate::pinned_blocks::allocate_pinned;

/// Slots of a thread.
const SLOTS: usize = 2;

/// A pinned slot, and the event that completes when the device has finished with it.
#[derive(Debug)]
struct Slot {
    memory: *mut u8,
    event: Event,
    /// A copy from or to the slot was submitted and not waited for.
    in_flight: bool,
}

/// The slots of one thread.
#[derive(Debug)]
pub(super) struct SlotRing {
    driver: &'static Driver,
    slots: Vec<Slot>,
    memory: *mut u8,
}

impl SlotRing {
    /// Allocates the slots of this staging thread, and makes the context current on it for good.
    pub(super) fn allocate(primary: &PrimaryContext, slot_bytes: usize) -> Result<Self> {
        let driver = primary.driver;
        // SAFETY: the context is retained as long as there are threads, and this thread is ours.
        let _ = unsafe { (driver.cuCtxSetCurrent)(primary.context.0) };
        let memory = allocate_pinned(primary, SLOTS * slot_bytes)?.as_ptr();
        // On an error its drop frees what exists so far.
        let mut ring = Self { driver, slots: Vec::with_capacity(SLOTS), memory };
        for index in 0..SLOTS {
            let memory = memory.wrapping_add(index * slot_bytes);
            ring.slots.push(Slot { memory, event: primary.open_event(false)?, in_flight: false });
        }
        Ok(ring)
    }
}

impl StagingSlots<Transfer> for SlotRing {
    const COUNT: usize = SLOTS;

    fn wait(&mut self, transfer: &Transfer, slot: usize) -> Result<()> {
        let slot = &mut self.slots[slot];
        let begin = Instant::now();
        while slot.in_flight {
            if transfer.state.primary.is_event_complete(slot.event)? {
                slot.in_flight = false;
            } else {
                backoff(begin.elapsed(), true);
            }
        }
        Ok(())
    }

    fn copy_host(&mut self, transfer: &Transfer, slot: usize, piece: Piece) -> Result<()> {
        let memory = self.slots[slot].memory;
        transfer.state.primary.access_borrowed(|| {
            // SAFETY: the ticket ends after this, this thread took the piece, and the slot, which is free, holds a piece.
            unsafe { transfer.host.copy_piece(memory, piece) };
        })
    }

    fn submit(&mut self, transfer: &Transfer, slot: usize, piece: Piece) -> Result<()> {
        let (primary, stream) = (&*transfer.state.primary, transfer.state.stream);
        let slot = &mut self.slots[slot];
        let on_device = transfer.at + piece.offset as DevicePtr;
        let in_slot = slot.memory.expose_provenance() as DevicePtr;
        let (to, from) = transfer.host.direction().order(on_device, in_slot);
        // SAFETY: both ranges are live memory, which is kept until the slot's event has completed.
        let code = unsafe { (primary.driver.cuMemcpyAsync)(to, from, piece.bytes, stream.0) };
        primary.check("cuMemcpyAsync", code)?;
        slot.in_flight = true;
        // SAFETY: event and stream are alive and of one context.
        let code = unsafe { (primary.driver.cuEventRecord)(slot.event.0, stream.0) };
        primary.check("cuEventRecord", code)
    }
}

impl Drop for SlotRing {
    fn drop(&mut self) {
        for slot in &self.slots {
            // SAFETY: ours, and no longer in use.
            let _ = unsafe { (self.driver.cuEventDestroy_v2)(slot.event.0) };
        }
        // SAFETY: ours; the driver waits for copies in flight.
        let _ = unsafe { (self.driver.cuMemFreeHost)(self.memory.cast()) };
    }
}
