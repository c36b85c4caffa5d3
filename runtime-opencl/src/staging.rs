//! Large transfers of pageable memory, staged through mapped buffers (slots), which the device accesses at full speed: threads
//! fill or empty some slots while the device copies others. Used only while the queue is idle. The call blocks until the host has
//! copied the last byte; the driver's own transfer of pageable memory blocks just as long.

#![allow(unsafe_code, reason = "copies to and from memory that core keeps until the ticket ends")]

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{HostRange, Piece, Pieces, StagingOptions, StagingSlots, copy_pieces};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::device_caps::MIN_ALIGNMENT;
use crate::device_state::DeviceState;
use crate::driver::{Raw, call};
use crate::enqueuer::{Enqueuer, Events, Location};
use crate::memory::OpenClBuffer;
use crate::space::Space;

/// Defaults of the options. A piece is as large as a slot, and a thread alternates between two slots.
pub(crate) const DEFAULTS: StagingOptions = StagingOptions { slot_bytes: 4 << 20, threads: 4 };
/// The smallest transfer that is worth the threads has so many pieces.
const MIN_PIECES: usize = 4;

/// A copy between host memory and a `cl_mem`, on a command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagedCopy<'a> {
    pub(crate) queue: Raw,
    pub(crate) host: &'a HostRange,
    pub(crate) object: (Raw, usize),
}

// SAFETY: any thread may use OpenCL objects.
unsafe impl Send for StagedCopy<'_> {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for StagedCopy<'_> {}

/// The slots of a queue, allocated on first use.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<Vec<[OpenClBuffer; 2]>>);

impl Staging {
    /// Whether a transfer of so many bytes is worth the threads.
    pub(crate) fn is_worth_it(options: StagingOptions, bytes: usize) -> bool {
        bytes >= MIN_PIECES * options.slot_bytes
    }

    /// Makes a copy on an idle queue. Returns the events of its commands, in no order, some of which may still run, and the first
    /// error.
    pub(crate) fn run(&self, shared: &Arc<DeviceState>, copy: StagedCopy<'_>) -> (Events, Result<()>) {
        let StagingOptions { slot_bytes, threads } = shared.staging;
        let mut pairs = self.0.lock();
        while pairs.len() < threads {
            let slot = || OpenClBuffer::allocate(shared, Space::Mapped, slot_bytes, MIN_ALIGNMENT);
            match slot().and_then(|first| Ok([first, slot()?])) {
                Ok(pair) => pairs.push(pair),
                Err(error) => return (Events::new(), Err(error)),
            }
        }
        let pieces = Pieces::new(copy.host.size_bytes(), slot_bytes);
        let (mut events, mut has_panicked) = (Events::new(), false);
        let context = &*shared.context;
        let worker = |slots| Worker { context, slots, in_flight: [None; 2], events: Events::new() };
        let work = |slots| worker(slots).run(&copy, &pieces);
        std::thread::scope(|scope| {
            let spawn = |slots| std::thread::Builder::new().spawn_scoped(scope, move || work(slots));
            let threads: Vec<_> = pairs.iter().map(|slots| (slots, spawn(slots))).collect();
            for (slots, thread) in threads {
                // Where no thread could be spawned, this one does the work.
                match thread.map_or_else(|_| Ok(work(slots)), |thread| thread.join()) {
                    Ok(more) => events.extend(more),
                    Err(_) => has_panicked = true,
                }
            }
        });
        if has_panicked {
            // Whatever else failed: the thread's commands are unknown.
            return (events, Err(Error::new(ErrorKind::Internal, "a transfer thread panicked")));
        }
        (events, pieces.take_failure().map_or(Ok(()), Err))
    }
}

/// One thread of a copy, with its slots.
struct Worker<'a> {
    context: &'a SharedContext,
    slots: &'a [OpenClBuffer; 2],
    /// The number of the event of the command that uses a slot.
    in_flight: [Option<usize>; 2],
    /// All commands that were enqueued.
    events: Events,
}

impl Worker<'_> {
    /// Copies pieces until none are left; returns the events of its commands.
    fn run(mut self, copy: &StagedCopy<'_>, pieces: &Pieces) -> Events {
        if let Err(error) = copy_pieces(&mut self, copy, copy.host.direction(), pieces) {
            pieces.fail(error);
        }
        self.events
    }
}

impl StagingSlots<StagedCopy<'_>> for Worker<'_> {
    const COUNT: usize = 2;

    /// Polls until the command has ended.
    fn wait(&mut self, _: &StagedCopy<'_>, slot: usize) -> Result<()> {
        let Some(number) = self.in_flight[slot].take() else { return Ok(()) };
        let event = self.events[number].raw();
        loop {
            match self.context.status(event) {
                1.. => std::thread::yield_now(),
                0 => break,
                code => return Err(self.context.error("staged transfer", code)),
            }
        }
        self.context.synchronise(event);
        Ok(())
    }

    fn copy_host(&mut self, copy: &StagedCopy<'_>, slot: usize, piece: Piece) -> Result<()> {
        // SAFETY: core keeps the host memory until the ticket ends, and this thread took the piece, which fits the slot; the
        // device has finished with it.
        unsafe { copy.host.copy_piece(self.slots[slot].start, piece) };
        Ok(())
    }

    fn submit(&mut self, copy: &StagedCopy<'_>, slot: usize, piece: Piece) -> Result<()> {
        let (queue, (object, at)) = (copy.queue, copy.object);
        let on_device = Location::Object(object, at + piece.offset);
        let in_slot = Location::Host(self.slots[slot].start);
        let (to, from) = copy.host.direction().order(on_device, in_slot);
        self.in_flight[slot] = Some(self.events.len());
        self.events.extend(Enqueuer { context: self.context, queue }.copy(to, from, piece.bytes)?);
        // SAFETY: the queue is alive.
        unsafe { call!(self.context.check, clFlush(queue)) }
    }
}
