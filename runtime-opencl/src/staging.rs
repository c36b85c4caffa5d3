//! Large transfers of pageable memory, staged through mapped buffers (slots), which the device accesses at full speed: threads
//! fill or empty some slots while the device copies others. Used only while the queue is idle. The call blocks until the host has
//! copied the last byte; the driver's own transfer of pageable memory blocks just as long.

#![allow(unsafe_code, reason = "copies to and from memory that core keeps until the ticket ends")]

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::device_caps::MIN_ALIGNMENT;
use crate::driver::Raw;
use crate::driver::handle::{Event, Owned};
use crate::enqueuer::{Enqueuer, Events, Location};
use crate::memory::{OpenClBuffer, Space};

/// Size of a slot.
const SLOT_BYTES: usize = 4 << 20;
/// Number of threads. Each alternates between two slots.
const THREADS: usize = 4;
/// Smallest transfer that is worth the threads.
pub(crate) const STAGED_MIN_BYTES: usize = 4 * SLOT_BYTES;

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

impl Direction {
    /// The two sides of a transfer as `(to, from)`.
    pub(crate) fn order<T>(self, device: T, host: T) -> (T, T) {
        match self {
            Self::ToDevice => (device, host),
            Self::ToHost => (host, device),
        }
    }
}

/// A copy between host memory and a `cl_mem`, on a command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagedCopy {
    pub(crate) queue: Raw,
    pub(crate) direction: Direction,
    pub(crate) host: *mut u8,
    pub(crate) object: (Raw, usize),
    pub(crate) bytes: usize,
}

// SAFETY: any thread may use OpenCL objects. The threads access disjoint pieces of the host memory, which core keeps alive, and
// are joined before the call returns.
unsafe impl Send for StagedCopy {}
// SAFETY: as above.
unsafe impl Sync for StagedCopy {}

/// The slots of a queue, allocated on first use.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<Vec<[OpenClBuffer; 2]>>);

impl Staging {
    /// Makes a copy on an idle queue. Returns the events of its commands, in no order, some of which may still run, and the first
    /// error.
    pub(crate) fn run(&self, context: &Arc<SharedContext>, copy: StagedCopy) -> (Events, Result<()>) {
        let mut pairs = self.0.lock();
        while pairs.len() < THREADS {
            let slot = || OpenClBuffer::allocate(context, Space::Mapped, SLOT_BYTES, MIN_ALIGNMENT);
            match slot().and_then(|first| Ok([first, slot()?])) {
                Ok(pair) => pairs.push(pair),
                Err(error) => return (Events::new(), Err(error)),
            }
        }
        let (mut events, mut outcome) = (Events::new(), Ok(()));
        std::thread::scope(|scope| {
            let workers = pairs.iter().enumerate().map(|(thread, slots)| Worker { context, slots, thread });
            let spawned: Vec<_> = workers
                .map(|worker| {
                    let work = move || worker.run(copy);
                    (worker, std::thread::Builder::new().spawn_scoped(scope, work))
                })
                .collect();
            for (worker, thread) in spawned {
                let panicked = || Err(Error::new(ErrorKind::Internal, "a transfer thread panicked"));
                let (more, result) = match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| (Events::new(), panicked())),
                    // No thread could be spawned: this one does the work.
                    Err(_) => worker.run(copy),
                };
                events.extend(more);
                outcome = std::mem::replace(&mut outcome, Ok(())).and(result);
            }
        });
        (events, outcome)
    }
}

/// One thread of a copy. It handles every [`THREADS`]th piece, alternating between two slots.
#[derive(Clone, Copy)]
struct Worker<'a> {
    context: &'a Arc<SharedContext>,
    slots: &'a [OpenClBuffer; 2],
    thread: usize,
}

impl Worker<'_> {
    fn run(&self, copy: StagedCopy) -> (Events, Result<()>) {
        let mut events = Events::new();
        let outcome = match copy.direction {
            Direction::ToDevice => self.upload(copy, &mut events),
            Direction::ToHost => self.download(copy, &mut events),
        };
        (events, outcome)
    }

    /// Offsets and lengths of this thread's pieces.
    fn pieces(&self, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
        let first = self.thread * SLOT_BYTES;
        let step = THREADS * SLOT_BYTES;
        (first..bytes).step_by(step).map(move |offset| (offset, SLOT_BYTES.min(bytes - offset)))
    }

    /// Enqueues the device's copy of a piece. Commands that were enqueued are in `events` even if this fails.
    fn enqueue_piece(
        &self,
        copy: StagedCopy,
        number: usize,
        (offset, bytes): (usize, usize),
        events: &mut Events,
    ) -> Result<()> {
        let queue = copy.queue;
        let enqueuer = Enqueuer { context: self.context, queue };
        let (object, at) = copy.object;
        let device = Location::Object(object, at + offset);
        let slot = Location::Host(self.slots[number % 2].start());
        let (to, from) = copy.direction.order(device, slot);
        events.extend(enqueuer.copy(to, from, bytes)?);
        // SAFETY: the queue is alive.
        self.context.check("clFlush", |cl| Some(unsafe { (cl.clFlush?)(queue) }))
    }

    /// Copies pieces into slots that the device has finished reading, and enqueues their copies to the device.
    fn upload(&self, copy: StagedCopy, events: &mut Events) -> Result<()> {
        for (number, piece) in self.pieces(copy.bytes).enumerate() {
            if let Some(previous) = number.checked_sub(2) {
                self.wait(&events[previous])?;
            }
            let (from, to) = (copy.host.wrapping_add(piece.0), self.slots[number % 2].start());
            // SAFETY: the piece lies within the host memory, fits the slot, and the device no longer reads the slot.
            unsafe { std::ptr::copy_nonoverlapping(from, to, piece.1) };
            self.enqueue_piece(copy, number, piece, events)?;
        }
        Ok(())
    }

    /// Copies pieces out of slots that the device has written, with the next two copies in flight.
    fn download(&self, copy: StagedCopy, events: &mut Events) -> Result<()> {
        let pieces: Vec<_> = self.pieces(copy.bytes).collect();
        for (number, piece) in pieces.iter().enumerate().take(2) {
            self.enqueue_piece(copy, number, *piece, events)?;
        }
        for (number, (offset, bytes)) in pieces.iter().enumerate() {
            self.wait(&events[number])?;
            let (from, to) = (self.slots[number % 2].start(), copy.host.wrapping_add(*offset));
            // SAFETY: the piece lies within the host memory, and the device has finished writing the slot.
            unsafe { std::ptr::copy_nonoverlapping(from, to, *bytes) };
            if let Some(next) = pieces.get(number + 2) {
                self.enqueue_piece(copy, number + 2, *next, events)?;
            }
        }
        Ok(())
    }

    /// Polls until a command has ended.
    fn wait(&self, event: &Owned<Event>) -> Result<()> {
        loop {
            match self.context.status(event.raw()) {
                1.. => std::thread::yield_now(),
                0 => break,
                code => return Err(self.context.error("staged transfer", code)),
            }
        }
        self.context.synchronise(event.raw());
        Ok(())
    }
}
