//! Large transfers of pageable memory: threads copy it through mapped buffers, which the device reaches at full speed, while the
//! device copies. Only on an idle queue, and until the last byte is copied here: the driver's own direction blocks as long.

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

/// Bytes of a slot.
const SLOT_BYTES: usize = 4 << 20;
/// Threads, each with two slots in turn.
const THREADS: usize = 4;
/// Bytes from which on threads are worth it.
pub(crate) const STAGED_MIN_BYTES: usize = 4 * SLOT_BYTES;

/// Which direction bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

/// A copy between memory of the program and an object, on a queue of the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagedCopy {
    pub(crate) queue: Raw,
    pub(crate) direction: Direction,
    pub(crate) host: *mut u8,
    pub(crate) object: (Raw, usize),
    pub(crate) bytes: usize,
}

// SAFETY: any thread may use the driver's objects; the threads touch disjoint pieces of the program's memory, which core keeps,
// and end before the call does.
unsafe impl Send for StagedCopy {}
// SAFETY: as above.
unsafe impl Sync for StagedCopy {}

/// The slots of a queue, made when they are first used.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<Vec<[OpenClBuffer; 2]>>);

impl Staging {
    /// Carries a copy out on an idle queue; answers the commands that may still run, in no order, and what went wrong.
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
                let panicked = || Err(Error::new(ErrorKind::Internal, "a thread of a copy panicked"));
                let (more, result) = match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| (Events::new(), panicked())),
                    // The system has no thread left: this one does the work.
                    Err(_) => worker.run(copy),
                };
                events.extend(more);
                outcome = std::mem::replace(&mut outcome, Ok(())).and(result);
            }
        });
        (events, outcome)
    }
}

/// A thread of a copy: every piece of its number modulo [`THREADS`], through two slots in turn.
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

    /// Offsets and lengths of the pieces of this thread.
    fn pieces(&self, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
        let first = self.thread * SLOT_BYTES;
        let step = THREADS * SLOT_BYTES;
        (first..bytes).step_by(step).map(move |offset| (offset, SLOT_BYTES.min(bytes - offset)))
    }

    /// Begins the device's part of a piece; what has spawned is among the events whatever the answer.
    fn flush_if_needed(
        &self,
        copy: StagedCopy,
        number: usize,
        (offset, bytes): (usize, usize),
        events: &mut Events,
    ) -> Result<()> {
        let queue = copy.queue;
        let enqueuer = Enqueuer { context: self.context, queue };
        let (object, at) = copy.object;
        let there = Location::Object(object, at + offset);
        let here = Location::Host(self.slots[number % 2].start());
        events.extend(match copy.direction {
            Direction::ToDevice => enqueuer.copy(there, here, bytes)?,
            Direction::ToHost => enqueuer.copy(here, there, bytes)?,
        });
        // SAFETY: the queue is alive.
        self.context.check("clFlush", |cl| Some(unsafe { (cl.clFlush?)(queue) }))
    }

    /// Copies piece after piece into a slot that the device has read.
    fn upload(&self, copy: StagedCopy, events: &mut Events) -> Result<()> {
        for (number, piece) in self.pieces(copy.bytes).enumerate() {
            if let Some(before) = number.checked_sub(2) {
                self.wait(&events[before])?;
            }
            let (from, to) = (copy.host.wrapping_add(piece.0), self.slots[number % 2].start());
            // SAFETY: the piece lies within the program's memory, the slot is as large, and the device has let go of it.
            unsafe { std::ptr::copy_nonoverlapping(from, to, piece.1) };
            self.flush_if_needed(copy, number, piece, events)?;
        }
        Ok(())
    }

    /// Copies piece after piece from a slot that the device has written; the next two are on their direction meanwhile.
    fn download(&self, copy: StagedCopy, events: &mut Events) -> Result<()> {
        let pieces: Vec<_> = self.pieces(copy.bytes).collect();
        for (number, piece) in pieces.iter().enumerate().take(2) {
            self.flush_if_needed(copy, number, *piece, events)?;
        }
        for (number, (offset, bytes)) in pieces.iter().enumerate() {
            self.wait(&events[number])?;
            let (from, to) = (self.slots[number % 2].start(), copy.host.wrapping_add(*offset));
            // SAFETY: the piece lies within the program's memory, and the device has written the slot.
            unsafe { std::ptr::copy_nonoverlapping(from, to, *bytes) };
            if let Some(next) = pieces.get(number + 2) {
                self.flush_if_needed(copy, number + 2, *next, events)?;
            }
        }
        Ok(())
    }

    /// Waits for a command that nothing is in front of.
    fn wait(&self, event: &Owned<Event>) -> Result<()> {
        loop {
            match self.context.status(event.raw()) {
                1.. => std::thread::yield_now(),
                0 => break,
                code => return Err(self.context.error("a piece of a copy", code)),
            }
        }
        self.context.synchronise(event.raw());
        Ok(())
    }
}
