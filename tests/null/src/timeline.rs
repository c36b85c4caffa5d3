//! The simulated hardware of a queue: work runs at submission if it can, otherwise when the queue is polled.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::UnreadTimestamps;
use runtime_core::{Error, Result};

use crate::builtins::{CALLS, Call};
use crate::fault::Faults;

/// The queues of a device in order of creation.
pub(crate) type DeviceQueues = Arc<Mutex<Vec<Weak<Timeline>>>>;
type Work = Box<dyn FnOnce(&mut State) -> Result<()> + Send>;

/// A queue. Queues that wait for it keep it alive.
#[derive(Debug)]
pub(crate) struct Timeline {
    faults: Arc<Faults>,
    device_queues: DeviceQueues,
    opened: Instant,
    state: Mutex<State>,
}

/// The progress of a queue, and its pending submissions.
#[derive(Debug)]
pub(crate) struct State {
    /// Submissions that have not ended, in order.
    pending: VecDeque<Pending>,
    /// The tickets of other queues that the next submission waits for.
    edges: Vec<(Arc<Timeline>, u64)>,
    submitted: u64,
    /// The ticket that runs on the caller's thread, or 0; later submissions wait for it.
    inline_ticket: u64,
    flushed: u64,
    /// While the queue is held: the last ticket that may run.
    hold: Option<u64>,
    /// When the last hold ended: what it held has run since.
    resumed: Instant,
    done: u64,
    first_failed: u64,
    failure: Option<Error>,
    /// When the last pending submission ended, in simulated time.
    ended: Instant,
    timestamps: UnreadTimestamps<Instant>,
    /// Signaled tickets that have not completed, with the option `needs_signals`.
    signals: VecDeque<u64>,
    signaled_done: u64,
    calls: [u64; CALLS],
}

struct Pending {
    ticket: u64,
    /// The latest ticket of this queue that must have ended before.
    after: u64,
    edges: Vec<(Arc<Timeline>, u64)>,
    from: Instant,
    duration: Duration,
    work: Work,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl State {
    /// The number of calls of each function of the queue, by [`Call`].
    pub(crate) const fn calls(&self) -> &[u64] {
        &self.calls
    }

    /// Records the timestamp of `ticket`: when the work before it ended, but not before it was submitted, or let go.
    pub(crate) fn stamp(&mut self, ticket: u64, submitted: Instant) -> Result<()> {
        self.timestamps.discard(ticket);
        self.timestamps.add(ticket, self.ended.max(submitted).max(self.resumed));
        Ok(())
    }

    /// Whether the next submission has nothing to wait for.
    fn is_idle(&self) -> bool {
        self.inline_ticket == 0 && self.pending.is_empty() && self.edges.is_empty() && self.hold.is_none()
    }

    /// Whether an earlier ticket than `ticket` has failed.
    const fn has_failed(&self, ticket: u64) -> bool {
        self.first_failed != 0 && self.first_failed < ticket
    }

    /// Runs and ends `ticket`, which is no longer pending. After a failure nothing runs.
    fn run(&mut self, ticket: u64, faults: &Faults, work: impl FnOnce(&mut Self) -> Result<()>) {
        if !self.has_failed(ticket) {
            let outcome = faults.ticket(ticket).and_then(|()| work(self));
            if let Err(error) = outcome {
                self.first_failed = ticket;
                self.failure = Some(error);
            }
        }
        self.done = self.pending.front().map_or(self.submitted, |first| first.ticket - 1);
    }

    /// Whether `ticket` waits for the end of a hold.
    fn is_held(&self, ticket: u64) -> bool {
        self.hold.is_some_and(|last| ticket > last)
    }

    /// Lets held work run, from now on; returns whether there was a hold.
    fn end_hold(&mut self) -> bool {
        let Some(last) = self.hold.take() else { return false };
        self.resumed = Instant::now();
        let held = self.pending.iter_mut().filter(|pending| pending.ticket > last);
        held.for_each(|pending| pending.from = self.resumed);
        true
    }

    /// The index in `pending` of what runs next; `None` while it must wait for a flush, another queue or the caller's thread, or
    /// the queue is held.
    fn next(&self, faults: &Faults) -> Option<usize> {
        if self.inline_ticket != 0 {
            return None;
        }
        let waits = |pending: &Pending| !pending.edges.is_empty() && !self.has_failed(pending.ticket);
        let batched = |pending: &Pending| faults.needs_flush() && pending.ticket > self.flushed;
        let is_ready =
            |pending: &&Pending| !waits(pending) && !batched(pending) && !self.is_held(pending.ticket);
        let ready = self.pending.iter().take_while(is_ready).count();
        if !faults.reorders() {
            return (ready > 0).then_some(0);
        }
        let first = self.pending.front()?.ticket;
        self.pending.iter().take(ready).rposition(|pending| pending.after < first)
    }

    /// What the first submission that waits for another queue waits for, if it waits for nothing else.
    fn next_edge(&self, faults: &Faults) -> Option<(Arc<Timeline>, u64)> {
        let waiting = self.pending.iter().find(|pending| !pending.edges.is_empty())?;
        let batched = faults.needs_flush() && waiting.ticket > self.flushed;
        if batched || self.is_held(waiting.ticket) { None } else { waiting.edges.first().cloned() }
    }

    fn progress(&mut self, only_signals: bool) -> Progress {
        if !only_signals {
            return Progress { completed: self.done, first_failed: self.first_failed };
        }
        while let Some(signal) = self.signals.front().copied().filter(|signal| *signal <= self.done) {
            self.signals.pop_front();
            self.signaled_done = signal;
        }
        let seen = self.first_failed <= self.signaled_done;
        Progress { completed: self.signaled_done, first_failed: if seen { self.first_failed } else { 0 } }
    }
}

impl Timeline {
    /// Creates a queue's timeline, as the newest of the device.
    pub(crate) fn new(faults: &Arc<Faults>, device_queues: &DeviceQueues, opened: Instant) -> Arc<Self> {
        let state = State {
            pending: VecDeque::new(),
            edges: Vec::new(),
            submitted: 0,
            inline_ticket: 0,
            flushed: 0,
            hold: None,
            resumed: opened,
            done: 0,
            first_failed: 0,
            failure: None,
            ended: opened,
            timestamps: UnreadTimestamps::default(),
            signals: VecDeque::new(),
            signaled_done: 0,
            calls: [0; CALLS],
        };
        let (faults, device_queues) = (Arc::clone(faults), Arc::clone(device_queues));
        let timeline = Arc::new(Self { faults, device_queues, opened, state: Mutex::new(state) });
        let mut all = timeline.device_queues.lock();
        all.retain(|queue| queue.strong_count() > 0);
        all.push(Arc::downgrade(&timeline));
        drop(all);
        timeline
    }

    /// Runs `work` now if the queue is idle, otherwise appends it.
    pub(crate) fn submit(
        &self,
        call: Call,
        submit: SubmitInfo,
        duration: Duration,
        work: impl FnOnce(&mut State) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.faults.submit(call.slot())?;
        if matches!(call, Call::Launch | Call::Noop | Call::Replay) {
            self.faults.note_launch();
        }
        let mut state = self.state.lock();
        state.calls[call as usize] += 1;
        state.submitted = submit.ticket;
        if state.is_idle() && duration.is_zero() && !self.faults.deferred() {
            state.run(submit.ticket, &self.faults, work);
            return Ok(());
        }
        let edges = std::mem::take(&mut state.edges);
        // A timestamp is ordered after everything before it.
        let after = if matches!(call, Call::Timestamp) { submit.ticket - 1 } else { submit.after };
        let (ticket, work) = (submit.ticket, Box::new(work));
        state.pending.push_back(Pending { ticket, after, edges, from: Instant::now(), duration, work });
        if state.hold.is_some_and(|last| self.faults.fills_a_hold(ticket - last)) {
            state.end_hold();
        }
        drop(state);
        if !self.faults.deferred() {
            self.advance();
        }
        Ok(())
    }

    /// Reserves `ticket` for the caller's thread if the queue is idle and submissions need no poll.
    pub(crate) fn try_begin_inline(&self, ticket: u64) -> bool {
        self.progress();
        let mut edges = std::mem::take(&mut self.state.lock().edges);
        edges.retain(|(other, ticket)| other.reached(*ticket).is_none());
        let mut state = self.state.lock();
        state.edges = edges;
        let is_idle = state.is_idle() && state.first_failed == 0 && !self.faults.deferred();
        if is_idle {
            (state.submitted, state.inline_ticket) = (ticket, ticket);
        }
        is_idle
    }

    /// Runs the work of a reserved ticket on this thread, and ends the ticket.
    pub(crate) fn run_inline_work(
        &self,
        ticket: u64,
        work: impl FnOnce(&mut State) -> Result<()>,
    ) -> Result<()> {
        self.faults.note_launch();
        let mut state = self.state.lock();
        state.inline_ticket = 0;
        state.run(ticket, &self.faults, work);
        state.ended = Instant::now();
        let failed = (state.first_failed == ticket).then(|| state.failure.clone()).flatten();
        drop(state);
        self.advance();
        failed.map_or(Ok(()), Err)
    }

    /// Counts a call that is not a submission; fails if its fault says so.
    pub(crate) fn call(&self, call: Call) -> Result<()> {
        self.faults.call(call.slot())?;
        self.state.lock().calls[call as usize] += 1;
        Ok(())
    }

    /// Makes the next submission wait for `ticket` of `other`.
    pub(crate) fn wait_for(&self, other: &Arc<Self>, ticket: u64) {
        self.state.lock().edges.push((Arc::clone(other), ticket));
    }

    pub(crate) fn signal(&self, ticket: u64) {
        if self.faults.needs_signals() {
            self.state.lock().signals.push_back(ticket);
        }
    }

    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        state.flushed = state.submitted;
    }

    /// Keeps what is submitted from now on from running.
    pub(crate) fn hold(&self) -> Result<()> {
        self.faults.call("hold")?;
        let mut state = self.state.lock();
        state.hold = Some(state.submitted);
        Ok(())
    }

    /// Ends a hold; returns whether there was one.
    pub(crate) fn resume(&self) -> Result<bool> {
        self.faults.call("resume")?;
        let lasted = self.state.lock().end_hold();
        if lasted && !self.faults.deferred() {
            self.advance();
        }
        Ok(lasted)
    }

    /// The progress that the host can observe.
    pub(crate) fn observed(&self) -> Progress {
        self.state.lock().progress(self.faults.needs_signals())
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.faults.enter("failure");
        self.state.lock().failure.clone()
    }

    /// Removes the timestamp of `ticket` and returns it, in nanoseconds since the device was opened.
    pub(crate) fn take_timestamp(&self, ticket: u64) -> Result<u64> {
        self.faults.call("read_timestamp")?;
        let at = self.state.lock().timestamps.take(ticket)?;
        Ok(u64::try_from(at.saturating_duration_since(self.opened).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Drops the pending work of a lost device; queues that wait for each other would keep each other alive.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        let left = (std::mem::take(&mut state.pending), std::mem::take(&mut state.edges));
        drop(state);
        drop(left);
    }

    /// Runs what is ready, first on all newer queues with the option `out_of_order`, then on this one.
    pub(crate) fn progress(&self) {
        if self.faults.out_of_order() {
            let queues: Vec<_> = self.device_queues.lock().iter().filter_map(Weak::upgrade).collect();
            let younger = queues.iter().rev().take_while(|queue| !std::ptr::eq(Arc::as_ptr(queue), self));
            younger.for_each(|queue| queue.advance());
        }
        self.advance();
    }

    /// Runs what is ready. Holds one queue's lock at a time.
    fn advance(&self) {
        while let Some((other, ticket)) = self.run_ready() {
            let Some((done, ended)) = other.reached(ticket).or_else(|| {
                // Only if it has not ended: two queues that wait for ended work of each other would recurse forever.
                other.advance();
                other.reached(ticket)
            }) else {
                return;
            };
            let mut state = self.state.lock();
            if let Some(first) = state.pending.iter_mut().find(|pending| !pending.edges.is_empty()) {
                first.edges.retain(|(queue, ticket)| !Arc::ptr_eq(queue, &other) || *ticket > done);
                first.from = first.from.max(ended);
            }
        }
    }

    /// The completed ticket and its time, if `ticket` has completed.
    pub(crate) fn reached(&self, ticket: u64) -> Option<(u64, Instant)> {
        let state = self.state.lock();
        (state.done >= ticket).then_some((state.done, state.ended))
    }

    /// Runs what is ready, up to the first submission that waits for another queue; returns what that one waits for.
    fn run_ready(&self) -> Option<(Arc<Self>, u64)> {
        let mut state = self.state.lock();
        loop {
            let Some(index) = state.next(&self.faults) else { return state.next_edge(&self.faults) };
            let next = state.pending.get(index)?;
            let ended = next.from.max(state.ended) + next.duration;
            if !state.has_failed(next.ticket) && ended + self.faults.delay() > Instant::now() {
                return None;
            }
            let next = state.pending.remove(index)?;
            state.ended = ended;
            state.run(next.ticket, &self.faults, next.work);
        }
    }
}
