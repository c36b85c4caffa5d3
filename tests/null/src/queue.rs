//! In-order queues of a passive simulator: what can run at submission does, the rest runs when somebody asks.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::abi::{Place, Progress};
use runtime_core::backend::{HostBytes, HostBytesMut, Launch, Queue};
use runtime_core::{Error, ErrorKind, Result};

use crate::arguments::Arguments;
use crate::builtins::{CALLS, Call, Code};
use crate::fault::{Faults, OnDrop};
use crate::graph::NullGraph;
use crate::memory::NullBuffer;
use crate::module::NullKernel;

/// The queues of a device in order of creation.
pub(crate) type Siblings = Arc<Mutex<Vec<Weak<Timeline>>>>;
type Work = Box<dyn FnOnce(&mut State) -> Result<()> + Send>;

/// How long `wait` sleeps between two looks.
const LOOK: Duration = Duration::from_micros(20);

/// An in-order queue.
#[derive(Debug)]
pub struct NullQueue {
    timeline: Arc<Timeline>,
    _close: OnDrop,
}

/// What other queues wait for: a queue outlives its handle as long as they do.
#[derive(Debug)]
pub(crate) struct Timeline {
    faults: Arc<Faults>,
    siblings: Siblings,
    opened: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Submitted and not ended, in order.
    pending: VecDeque<Pending>,
    /// What the next submission waits for.
    edges: Vec<(Arc<Timeline>, u64)>,
    submitted: u64,
    flushed: u64,
    done: u64,
    first_failed: u64,
    failure: Option<Error>,
    /// When the last pending submission ended, by the device's own time.
    ended: Instant,
    timestamps: HashMap<u64, Instant>,
    /// Marks that are not reached, where only they are observable.
    marks: VecDeque<u64>,
    marked_done: u64,
    calls: [u64; CALLS],
}

struct Pending {
    ticket: u64,
    edges: Vec<(Arc<Timeline>, u64)>,
    from: Instant,
    lasts: Duration,
    work: Work,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl NullQueue {
    pub(crate) fn open(faults: &Arc<Faults>, siblings: &Siblings, opened: Instant) -> Self {
        let state = State {
            pending: VecDeque::new(),
            edges: Vec::new(),
            submitted: 0,
            flushed: 0,
            done: 0,
            first_failed: 0,
            failure: None,
            ended: opened,
            timestamps: HashMap::new(),
            marks: VecDeque::new(),
            marked_done: 0,
            calls: [0; CALLS],
        };
        let (faults, siblings) = (Arc::clone(faults), Arc::clone(siblings));
        let timeline = Arc::new(Timeline { faults, siblings, opened, state: Mutex::new(state) });
        let mut all = timeline.siblings.lock();
        all.retain(|queue| queue.strong_count() > 0);
        all.push(Arc::downgrade(&timeline));
        drop(all);
        Self { _close: OnDrop::new(&timeline.faults, "close_queue"), timeline }
    }

    fn submit(
        &self,
        call: Call,
        place: Place,
        lasts: Duration,
        work: impl FnOnce(&mut State) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let timeline = &*self.timeline;
        timeline.faults.submit(call.slot())?;
        let mut state = timeline.state.lock();
        state.calls[call as usize] += 1;
        state.submitted = place.ticket;
        let idle = state.pending.is_empty() && state.edges.is_empty();
        if idle && lasts.is_zero() && !timeline.faults.deferred() {
            state.run(place.ticket, &timeline.faults, work);
            return Ok(());
        }
        let edges = std::mem::take(&mut state.edges);
        let (ticket, work) = (place.ticket, Box::new(work));
        state.pending.push_back(Pending { ticket, edges, from: Instant::now(), lasts, work });
        drop(state);
        if !timeline.faults.deferred() {
            timeline.advance();
        }
        Ok(())
    }

    /// Admits a call that is no submission.
    fn call(&self, call: Call) -> Result<()> {
        self.timeline.faults.call(call.slot())?;
        self.timeline.state.lock().calls[call as usize] += 1;
        Ok(())
    }
}

impl Drop for NullQueue {
    fn drop(&mut self) {
        // What is left was abandoned with a lost device; queues that wait for each other would keep each other.
        let mut state = self.timeline.state.lock();
        let left = (std::mem::take(&mut state.pending), std::mem::take(&mut state.edges));
        drop(state);
        drop(left);
    }
}

impl State {
    /// Ends `ticket`; after a failure nothing runs any more.
    fn run(&mut self, ticket: u64, faults: &Faults, work: impl FnOnce(&mut Self) -> Result<()>) {
        if self.first_failed == 0 {
            let outcome = faults.ticket(ticket).and_then(|()| work(self));
            if let Err(error) = outcome {
                self.first_failed = ticket;
                self.failure = Some(error);
            }
        }
        self.done = ticket;
    }

    fn progress(&mut self, only_marks: bool) -> Progress {
        if !only_marks {
            return Progress { completed: self.done, first_failed: self.first_failed };
        }
        while let Some(mark) = self.marks.front().copied().filter(|mark| *mark <= self.done) {
            self.marks.pop_front();
            self.marked_done = mark;
        }
        let seen = self.first_failed <= self.marked_done;
        Progress { completed: self.marked_done, first_failed: if seen { self.first_failed } else { 0 } }
    }
}

impl Timeline {
    /// Runs what is ready on all queues that run before this one, then on this one.
    fn progress(&self) {
        if self.faults.out_of_order() {
            let queues: Vec<_> = self.siblings.lock().iter().filter_map(Weak::upgrade).collect();
            let younger = queues.iter().rev().take_while(|queue| !std::ptr::eq(Arc::as_ptr(queue), self));
            younger.for_each(|queue| queue.advance());
        }
        self.advance();
    }

    /// Runs what is ready. Holds one queue's lock at a time.
    fn advance(&self) {
        while let Some((other, ticket)) = self.run_ready() {
            let Some((done, ended)) = other.reached(ticket).or_else(|| {
                // Only for what has not ended: two queues that wait for each other's past would never return.
                other.advance();
                other.reached(ticket)
            }) else {
                return;
            };
            if let Some(first) = self.state.lock().pending.front_mut() {
                first.edges.retain(|(queue, ticket)| !Arc::ptr_eq(queue, &other) || *ticket > done);
                first.from = first.from.max(ended);
            }
        }
    }

    /// How far the queue is, and when it came there, if it is at `ticket` at least.
    fn reached(&self, ticket: u64) -> Option<(u64, Instant)> {
        let state = self.state.lock();
        (state.done >= ticket).then_some((state.done, state.ended))
    }

    /// Runs what is ready up to the first submission that waits for another queue, and says for what.
    fn run_ready(&self) -> Option<(Arc<Self>, u64)> {
        let mut state = self.state.lock();
        loop {
            let failed = state.first_failed != 0;
            let first = state.pending.front()?;
            if self.faults.needs_flush() && first.ticket > state.flushed {
                return None;
            }
            if let (Some(edge), false) = (first.edges.first(), failed) {
                return Some(edge.clone());
            }
            let ended = first.from.max(state.ended) + first.lasts;
            if !failed && ended + self.faults.delay() > Instant::now() {
                return None;
            }
            let first = state.pending.pop_front()?;
            state.ended = ended;
            state.run(first.ticket, &self.faults, first.work);
        }
    }
}

impl Queue for NullQueue {
    type Buffer = NullBuffer;
    type Kernel = NullKernel;
    type Graph = NullGraph;

    fn launch(&self, place: Place, kernel: &NullKernel, launch: &Launch<'_, NullBuffer>) -> Result<()> {
        let code = kernel.builtin.code;
        if matches!(code, Code::Noop) {
            return self.submit(Call::Launch, place, Duration::ZERO, |_| Ok(()));
        }
        let arguments = Arguments::of_launch(launch)?;
        let lasts = code.duration(&arguments)?;
        self.submit(Call::Launch, place, lasts, move |state| code.run(&arguments, &state.calls))
    }

    fn write(&self, place: Place, destination: &NullBuffer, offset: u64, source: HostBytes) -> Result<()> {
        let memory = Arc::clone(&destination.memory);
        self.submit(Call::Write, place, Duration::ZERO, move |_| memory.write(offset, &source))
    }

    fn read(&self, place: Place, source: &NullBuffer, offset: u64, destination: HostBytesMut) -> Result<()> {
        let memory = Arc::clone(&source.memory);
        self.submit(Call::Read, place, Duration::ZERO, move |_| memory.read(offset, &destination))
    }

    fn copy(
        &self,
        place: Place,
        destination: (&NullBuffer, u64),
        source: (&NullBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let (to, at) = (Arc::clone(&destination.0.memory), destination.1);
        let (from, source_at) = (Arc::clone(&source.0.memory), source.1);
        let bytes = length(bytes)?;
        self.submit(Call::Copy, place, Duration::ZERO, move |_| to.copy(at, &from, source_at, bytes))
    }

    fn fill(&self, place: Place, destination: (&NullBuffer, u64), bytes: u64, pattern: &[u8]) -> Result<()> {
        if pattern.is_empty() {
            return Err(Error::invalid("pattern is empty; pass 1, 2, 4, 8 or 16 bytes"));
        }
        let (memory, offset) = (Arc::clone(&destination.0.memory), destination.1);
        let bytes: Vec<_> = pattern.iter().copied().cycle().take(length(bytes)?).collect();
        self.submit(Call::Fill, place, Duration::ZERO, move |_| memory.put(offset, &bytes))
    }

    fn empty(&self, place: Place) -> Result<()> {
        self.submit(Call::Empty, place, Duration::ZERO, |_| Ok(()))
    }

    fn timestamp(&self, place: Place) -> Result<()> {
        let submitted = Instant::now();
        self.submit(Call::Timestamp, place, Duration::ZERO, move |state| {
            // Of what ran at submission, nothing but that is known.
            let now = state.ended.max(submitted);
            state.timestamps.insert(place.ticket, now);
            Ok(())
        })
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.timeline.faults.call("read_timestamp")?;
        let at = self.timeline.state.lock().timestamps.remove(&ticket);
        let at = at.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("ticket {ticket} has no timestamp to read"))
        })?;
        Ok(u64::try_from(at.saturating_duration_since(self.timeline.opened).as_nanos()).unwrap_or(u64::MAX))
    }

    fn replay(&self, place: Place, graph: &NullGraph) -> Result<()> {
        let work = graph.work();
        self.submit(Call::Replay, place, graph.duration()?, move |state| work(&state.calls))
    }

    fn mark(&self, ticket: u64) -> Result<()> {
        self.call(Call::Mark)?;
        if self.timeline.faults.needs_marks() {
            self.timeline.state.lock().marks.push_back(ticket);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.call(Call::Flush)?;
        let mut state = self.timeline.state.lock();
        state.flushed = state.submitted;
        Ok(())
    }

    fn poll(&self) -> Result<Progress> {
        self.call(Call::Poll)?;
        self.timeline.progress();
        Ok(self.timeline.state.lock().progress(self.timeline.faults.needs_marks()))
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.call(Call::Wait)?;
        let began = Instant::now();
        loop {
            self.timeline.progress();
            let left = slice.saturating_sub(began.elapsed());
            if left.is_zero() || self.timeline.state.lock().done >= ticket {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        self.call(Call::WaitFor)?;
        self.timeline.state.lock().edges.push((Arc::clone(&other.timeline), ticket));
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.timeline.faults.reach("failure");
        self.timeline.state.lock().failure.clone()
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid(format!("{bytes} bytes do not fit the address space")))
}

#[cfg(test)]
mod tests {
    use runtime_core::Options;

    use super::*;
    use crate::memory::Usage;

    /// Queues of one device with these options.
    fn queues<const N: usize>(options: &Options) -> [NullQueue; N] {
        let (faults, siblings) = (Faults::new(options).unwrap(), Siblings::default());
        std::array::from_fn(|_| NullQueue::open(&faults, &siblings, Instant::now()))
    }

    fn buffer() -> NullBuffer {
        NullBuffer::allocate(4, 256, &Usage::new(64), false).unwrap()
    }

    fn place(ticket: u64) -> Place {
        Place { ticket, after: ticket - 1 }
    }

    fn fill(queue: &NullQueue, ticket: u64, buffer: &NullBuffer, byte: u8) {
        queue.fill(place(ticket), (buffer, 0), 4, &[byte]).unwrap();
    }

    fn first(buffer: &NullBuffer) -> u8 {
        buffer.memory.load(0).unwrap()
    }

    #[test]
    fn an_idle_queue_runs_at_submission() {
        let [queue] = queues(&Options::new());
        let buffer = buffer();
        fill(&queue, 1, &buffer, 7);
        assert_eq!(first(&buffer), 7);
        assert_eq!(queue.poll().unwrap().completed, 1);
    }

    #[test]
    fn a_delayed_ticket_ends_late_and_wait_returns_early() {
        let submitted = |delay_us: i64| {
            let [queue] = queues(&Options::new().with("delay_us", delay_us));
            queue.empty(place(1)).unwrap();
            queue
        };
        let late = submitted(3_600_000_000);
        late.wait(1, Duration::from_millis(1)).unwrap();
        assert_eq!(late.poll().unwrap().completed, 0);
        let soon = submitted(1_000);
        soon.wait(1, Duration::from_secs(10)).unwrap();
        assert_eq!(soon.poll().unwrap().completed, 1);
    }

    #[test]
    fn a_failed_ticket_fails_all_that_follow() {
        let [queue] = queues(&Options::new().with("fail_ticket", 2));
        let buffer = buffer();
        for ticket in 1..=3 {
            fill(&queue, ticket, &buffer, u8::try_from(ticket).unwrap());
        }
        let progress = queue.poll().unwrap();
        assert_eq!((progress.completed, progress.first_failed, first(&buffer)), (3, 2, 1));
        assert_eq!(queue.failure().unwrap().kind(), ErrorKind::Failed);
    }

    #[test]
    fn a_batch_runs_when_it_is_flushed() {
        let [queue] = queues(&Options::new().with("needs_flush", true));
        queue.empty(place(1)).unwrap();
        assert_eq!(queue.poll().unwrap().completed, 0);
        queue.flush().unwrap();
        queue.empty(place(2)).unwrap();
        assert_eq!(queue.poll().unwrap().completed, 1);
    }

    #[test]
    fn only_marked_tickets_are_seen_to_end() {
        let [queue] = queues(&Options::new().with("needs_marks", true).with("fail_ticket", 3));
        queue.empty(place(1)).unwrap();
        queue.mark(1).unwrap();
        queue.empty(place(2)).unwrap();
        queue.empty(place(3)).unwrap();
        let seen = |queue: &NullQueue| queue.poll().map(|seen| (seen.completed, seen.first_failed)).unwrap();
        assert_eq!(seen(&queue), (1, 0));
        queue.mark(3).unwrap();
        assert_eq!(seen(&queue), (3, 3));
    }

    #[test]
    fn queues_run_in_reverse_but_for_what_they_wait_for() {
        let [older, younger] = queues(&Options::new().with("out_of_order", true));
        let (source, copied) = (buffer(), buffer());
        fill(&older, 1, &source, 7);
        younger.copy(place(1), (&copied, 0), (&source, 0), 4).unwrap();
        older.poll().unwrap();
        younger.poll().unwrap();
        assert_ne!(first(&copied), 7, "the younger queue went first, with what was there before");

        fill(&older, 2, &source, 8);
        younger.wait_for(&older, 2).unwrap();
        younger.copy(place(2), (&copied, 0), (&source, 0), 4).unwrap();
        younger.poll().unwrap();
        assert_eq!(first(&copied), 8, "it waited");
    }

    #[test]
    fn a_timestamp_is_read_once() {
        let [queue] = queues(&Options::new());
        queue.timestamp(place(1)).unwrap();
        queue.timestamp(place(2)).unwrap();
        assert!(queue.read_timestamp(1).unwrap() <= queue.read_timestamp(2).unwrap());
        assert_eq!(queue.read_timestamp(1).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
