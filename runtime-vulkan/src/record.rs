//! Batching: submissions become commands at once, and are handed to the driver a segment at a time.
//!
//! A segment is a list of commands that ends with one signal, to the ticket of its last submission. Somebody who marks
//! a ticket ends a segment there; else one grows until it is handed over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use runtime_core::abi::Place;
use runtime_core::{Error, ErrorKind, Result};
use smallvec::SmallVec;

use crate::driver::{Batch, Commands, Home, Lane, Memory, Pool, Semaphore};
use crate::progress::Shared;
use crate::ring::Ring;

/// Submissions that are handed over together at most.
const FULL: u32 = 512;
/// How much more is gathered each time until the device is looked at.
const GROWTH: u32 = 8;
/// Segments that are handed over without an allocation.
const INLINE: usize = 8;
/// Bytes of a ring for small transfers, each way, and of the largest that goes through it.
const RING_BYTES: u64 = 4 << 20;
pub(crate) const RING_PIECE_BYTES: u64 = RING_BYTES / 8;
/// Segments under way before the oldest is looked at for commands to use again.
const UNDER_WAY: usize = 2;
/// How long a queue that is closed waits for what core did not wait for.
const FAREWELL: Duration = Duration::from_secs(10);

/// What must live until a segment has ended.
pub(crate) type Keep = Arc<dyn std::any::Any + Send + Sync>;

type Waits = SmallVec<[(Arc<Semaphore>, u64); 2]>;

/// Commands with one signal at their end.
struct Segment {
    commands: Option<Commands>,
    waits: Waits,
    _keeps: Vec<Keep>,
    /// The last ticket in it.
    last: u64,
}

/// A block of memory for small transfers.
struct Block {
    memory: Arc<Memory>,
    ring: Ring,
}

/// What a queue has recorded and not yet seen to end.
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    lane: Arc<Lane>,
    pool: Pool,
    free: Vec<Commands>,
    open: Option<Commands>,
    waits: Waits,
    keeps: Vec<Keep>,
    sealed: VecDeque<Segment>,
    in_flight: VecDeque<Segment>,
    tail: u64,
    sealed_to: u64,
    handed_to: u64,
    /// The last ticket that the driver has, or that ended without it.
    settled_to: u64,
    /// Every ticket up to this one lies before a barrier, which is for kernels alone behind the second.
    covered: u64,
    covered_for_kernels: u64,
    /// The last ticket that copies something.
    copied: u64,
    /// The last timestamp.
    stamped: u64,
    /// The program may look at memory that was written since the last segment ended.
    seen: bool,
    /// Submissions since the last that were handed over, and how many are gathered until the device is looked at.
    pending: u32,
    gathered: u32,
    uploads: Option<Block>,
    downloads: Option<Block>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("tail", &self.tail)
            .field("handed_to", &self.handed_to)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Self> {
        let logical = &shared.context.logical;
        let lane = logical.pick_lane();
        let pool = Pool::new(logical, lane.family)?;
        lane.join();
        Ok(Self {
            shared: Arc::clone(shared),
            lane,
            pool,
            free: Vec::new(),
            open: None,
            waits: Waits::new(),
            keeps: Vec::new(),
            sealed: VecDeque::new(),
            in_flight: VecDeque::new(),
            tail: 0,
            sealed_to: 0,
            handed_to: 0,
            settled_to: 0,
            covered: 0,
            covered_for_kernels: 0,
            copied: 0,
            stamped: 0,
            seen: false,
            pending: 0,
            gathered: 1,
            uploads: None,
            downloads: None,
        })
    }

    /// Commands to record a submission into, behind whatever it depends on.
    pub(crate) fn commands(&mut self, place: Place) -> Result<&mut Commands> {
        self.ready()?;
        self.copied = place.ticket;
        if self.needed(place) > self.covered {
            self.cover(place.ticket - 1);
        }
        self.open()
    }

    /// The same for one that does nothing but run a kernel.
    #[inline]
    pub(crate) fn commands_of_kernel(&mut self, place: Place) -> Result<&mut Commands> {
        self.ready()?;
        if self.needed(place) > self.covered_for_kernels {
            match &self.open {
                Some(open) if self.copied <= self.covered_for_kernels => {
                    open.barrier_of_kernels();
                    self.covered_for_kernels = place.ticket - 1;
                }
                _ => self.cover(place.ticket - 1),
            }
        }
        self.open()
    }

    /// The last ticket that must lie before a barrier: what comes after a timestamp begins after what came before it.
    #[inline]
    fn needed(&self, place: Place) -> u64 {
        place.after.max(self.stamped.saturating_sub(1))
    }

    /// Puts a barrier behind all that was recorded.
    fn cover(&mut self, last: u64) {
        if let Some(open) = &self.open {
            open.barrier();
            (self.covered, self.covered_for_kernels) = (last, last);
        }
    }

    /// Commands to record a timestamp into, which is taken when all before it has ended.
    pub(crate) fn commands_of_stamp(&mut self) -> Result<&mut Commands> {
        self.ready()?;
        self.open()
    }

    /// Notes that a timestamp was recorded: what is timed is handed over as one, so that the program's own time is not in it.
    pub(crate) fn stamped(&mut self, ticket: u64) {
        self.stamped = ticket;
        self.gathered = FULL;
    }

    /// Notes that the next ticket writes memory that the program may look at.
    #[inline]
    pub(crate) fn writes_seen(&mut self, seen: bool) {
        self.seen |= seen;
    }

    /// Keeps something until the next ticket has ended.
    pub(crate) fn keep(&mut self, keep: Keep) {
        self.keeps.push(keep);
    }

    /// Notes that `ticket` was recorded; hands work over if there is enough, or if the device has none.
    #[inline]
    pub(crate) fn took(&mut self, ticket: u64) {
        self.tail = ticket;
        self.shared.took(ticket);
        self.pending += 1;
        if self.pending >= self.gathered {
            self.look();
        }
    }

    /// Each look costs a call of the driver, and each handing over costs many: a burst has few of both.
    fn look(&mut self) {
        let gathered = (self.gathered * GROWTH).min(FULL);
        if self.pending >= FULL || self.shared.is_idle().unwrap_or(true) {
            self.hand_over();
        }
        self.gathered = gathered;
    }

    /// Ends the segment, so that its last ticket is seen to end by itself. A timestamp is not worth that: what it takes
    /// would be measured. It is seen to end with what follows it in its batch.
    pub(crate) fn mark(&mut self) {
        if self.stamped != self.tail {
            self.seal();
        }
    }

    fn seal(&mut self) {
        if self.tail == self.sealed_to {
            return;
        }
        let commands = self.open.take();
        if let (Some(commands), true) = (&commands, self.seen) {
            commands.publish();
            self.seen = false;
        }
        let ended = commands.as_ref().map_or(Ok(()), Commands::end);
        self.sealed.push_back(Segment {
            commands,
            waits: std::mem::take(&mut self.waits),
            _keeps: std::mem::take(&mut self.keeps),
            last: self.tail,
        });
        self.sealed_to = self.tail;
        if let Err(error) = ended {
            self.abandon(Some(error));
        }
    }

    /// Whether nothing lies behind `ticket` in its segment, so that it is seen to end by itself.
    pub(crate) fn is_end(&self, ticket: u64) -> bool {
        let mut segments = self.in_flight.iter().chain(&self.sealed);
        self.tail == ticket || segments.any(|segment| segment.last == ticket)
    }

    /// Hands over everything; somebody is about to wait.
    pub(crate) fn flush(&mut self) {
        self.hand_over();
        self.gathered = 1;
    }

    fn hand_over(&mut self) {
        self.seal();
        self.pending = 0;
        let Some(last) = self.sealed.back().map(|segment| segment.last) else { return };
        self.shared.settle();
        if self.shared.first_failed() != 0 || self.shared.context.logical.check_alive().is_err() {
            return self.abandon(None);
        }
        let semaphore = &*self.shared.semaphore;
        let batches: SmallVec<[Batch<'_>; INLINE]> = self
            .sealed
            .iter()
            .map(|segment| Batch {
                waits: &segment.waits,
                commands: segment.commands.as_ref(),
                signal: (semaphore, segment.last),
            })
            .collect();
        match self.lane.submit(&self.shared.context.logical, &batches) {
            Ok(()) => {
                drop(batches);
                self.shared.handed(last);
                (self.handed_to, self.settled_to) = (last, last);
                self.in_flight.append(&mut self.sealed);
            }
            Err(error) => {
                drop(batches);
                self.abandon(Some(error));
            }
        }
    }

    /// Gives up what the driver did not take, and fails it. It ends no earlier than what it should have waited for:
    /// whoever sees it end takes that to have ended too.
    fn abandon(&mut self, error: Option<Error>) {
        for segment in self.sealed.drain(..) {
            self.shared.abandon(segment.last, segment.waits);
        }
        if let Some(error) = error {
            self.shared.fail(self.settled_to + 1, error);
        }
    }

    /// Makes later submissions wait until `semaphore` stands at `value`.
    pub(crate) fn wait_for(&mut self, semaphore: &Arc<Semaphore>, value: u64) {
        self.seal();
        self.waits.push((Arc::clone(semaphore), value));
    }

    /// What must have ended before the next submission, if that is no work of the device; all of it is handed over.
    pub(crate) fn before(&mut self) -> Vec<(Arc<Semaphore>, u64)> {
        self.flush();
        let mut before = vec![(Arc::clone(&self.shared.semaphore), self.handed_to)];
        before.extend(std::mem::take(&mut self.waits));
        before.extend(self.shared.abandoned());
        before
    }

    /// Whether nothing is under way, and nothing is waited for.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.shared.settle();
        Ok(self.waits.is_empty()
            && self.tail == self.sealed_to
            && self.sealed.is_empty()
            // Not by the semaphore alone: reads before this must be with the program, too.
            && self.shared.poll()? == self.tail)
    }

    /// Notes that the program itself has ended `ticket`, all before it having ended.
    pub(crate) fn ended(&mut self, ticket: u64) {
        self.settle_at(ticket);
        self.gathered = 1;
        self.shared.ended(ticket);
    }

    /// Notes that threads will end `ticket`.
    pub(crate) fn staged(&mut self, ticket: u64) {
        self.settle_at(ticket);
        self.handed_to = ticket;
        self.shared.took(ticket);
        self.shared.handed(ticket);
    }

    /// Nothing up to `ticket` is left to record or to order.
    fn settle_at(&mut self, ticket: u64) {
        (self.tail, self.sealed_to, self.settled_to) = (ticket, ticket, ticket);
        (self.covered, self.covered_for_kernels) = (ticket, ticket);
    }

    /// Memory that the program writes and the device reads, until `ticket` has ended: `bytes` bytes at the offset.
    pub(crate) fn upload(&mut self, bytes: u64, ticket: u64) -> Result<(Arc<Memory>, u64)> {
        let (memory, offset) = piece(&mut self.uploads, &self.shared, bytes, ticket)?;
        // A block of its own ends with the ticket.
        if self.uploads.as_ref().is_none_or(|block| !Arc::ptr_eq(&block.memory, &memory)) {
            self.keep(Arc::clone(&memory) as Keep);
        }
        Ok((memory, offset))
    }

    /// Memory that the device writes and the program reads, until `ticket` has ended.
    pub(crate) fn download(&mut self, bytes: u64, ticket: u64) -> Result<(Arc<Memory>, u64)> {
        self.seen = true;
        piece(&mut self.downloads, &self.shared, bytes, ticket)
    }

    #[inline]
    fn open(&mut self) -> Result<&mut Commands> {
        self.open.as_mut().ok_or_else(|| Error::new(ErrorKind::Internal, "no commands are being recorded"))
    }

    /// Sees to it that there are commands to record into.
    #[inline]
    fn ready(&mut self) -> Result<()> {
        self.shared.context.logical.check_alive()?;
        self.shared.settle();
        if self.open.is_some() { Ok(()) } else { self.begin() }
    }

    fn begin(&mut self) -> Result<()> {
        self.recycle()?;
        let mut commands = match self.free.pop() {
            Some(commands) => commands,
            None => self.pool.commands(false)?,
        };
        // What has ended by now is seen by all that is recorded from here on.
        let completed = self.shared.completed();
        self.covered = self.covered.max(completed);
        self.covered_for_kernels = self.covered_for_kernels.max(completed);
        commands.begin()?;
        self.open = Some(commands);
        Ok(())
    }

    /// Takes back what has ended.
    fn recycle(&mut self) -> Result<()> {
        let mut ended = self.shared.completed();
        if self.free.is_empty() && self.in_flight.len() >= UNDER_WAY {
            ended = ended.max(self.shared.semaphore.value()?);
        }
        let before = self.free.len();
        while self.in_flight.front().is_some_and(|segment| segment.last <= ended) {
            let segment = self.in_flight.pop_front();
            self.free.extend(segment.and_then(|segment| segment.commands));
        }
        // The first is taken first again: drivers keep the memory of a list, so that what was long had better be long again.
        self.free[before..].reverse();
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
        // An error means that nothing runs any more.
        let _ = self.shared.semaphore.wait(self.handed_to, FAREWELL);
        self.lane.leave();
    }
}

/// A piece of a block, or, where it has no room, memory of its own.
fn piece(block: &mut Option<Block>, shared: &Shared, bytes: u64, ticket: u64) -> Result<(Arc<Memory>, u64)> {
    let logical = &shared.context.logical;
    let block = match block {
        Some(block) => block,
        none => {
            let memory = Memory::allocate(logical, Home::Pinned, RING_BYTES, 16)?;
            none.insert(Block { memory: Arc::new(memory), ring: Ring::new(RING_BYTES) })
        }
    };
    if let Some(offset) = block.ring.take(bytes, ticket) {
        return Ok((Arc::clone(&block.memory), offset));
    }
    block.ring.give_back(shared.poll()?);
    match block.ring.take(bytes, ticket) {
        Some(offset) => Ok((Arc::clone(&block.memory), offset)),
        None => Ok((Arc::new(Memory::allocate(logical, Home::Pinned, bytes, 16)?), 0)),
    }
}
