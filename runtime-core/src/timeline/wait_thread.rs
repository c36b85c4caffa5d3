//! The waiter of a device: one thread that polls and wakes, started at the first `.await`, or when memory of somebody
//! else is dropped while work uses it. Core's only thread.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::process;
use crate::timeline::Timeline;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, ErrorKind, Result};

/// Rounds of polling without a pause, then the pause doubles from `SHORTEST` to `LONGEST`.
const EAGER_ROUNDS: u32 = 50;
const SHORTEST: Duration = Duration::from_micros(10);
const LONGEST: Duration = Duration::from_millis(1);
/// How often it looks at memory of others that was dropped in use: whoever calls the device does so, too, and sooner.
const REAPING: Duration = Duration::from_millis(50);
/// An idle waiter looks this often whether its device is gone.
const IDLE: Duration = Duration::from_millis(500);

/// Tickets that futures wait for.
#[derive(Debug)]
pub(crate) struct WaitThread {
    shared: Arc<Shared>,
    generation: u32,
}

impl Default for WaitThread {
    fn default() -> Self {
        Self { shared: Arc::default(), generation: process::generation() }
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: bool,
    /// By the number of the registration.
    waiting: HashMap<u64, Waiting>,
    registrations: u64,
    /// Whoever owns dropped memory waits for the end of the work on it.
    reaping: bool,
}

#[derive(Debug)]
struct Waiting {
    timeline: Arc<Timeline>,
    ticket: u64,
    waker: Waker,
}

impl WaitThread {
    /// Wakes `waker` once `ticket` has settled. `registration` is the future's own: 0 at first; it has one entry, and the
    /// waker of its last look.
    ///
    /// # Errors
    /// `OutOfResources` when the thread cannot be started.
    pub(crate) fn register(
        &self,
        device: &Arc<OpenDevice>,
        (timeline, ticket): (&Arc<Timeline>, u64),
        registration: &mut u64,
        waker: &Waker,
    ) -> Result<()> {
        // Somebody else's code, so outside the lock.
        let waker = waker.clone();
        let mut state = self.shared.state.lock();
        self.start(&mut state, Arc::downgrade(device))?;
        if *registration == 0 {
            state.registrations += 1;
            *registration = state.registrations;
        }
        let waiting = Waiting { timeline: timeline.clone(), ticket, waker };
        let known = state.waiting.insert(*registration, waiting);
        drop(state);
        discard(known);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Forgets a future that is dropped.
    pub(crate) fn forget(&self, registration: u64) {
        let forgotten = self.shared.state.lock().waiting.remove(&registration);
        discard(forgotten);
    }

    /// Gives memory back to its owners once the work on it has ended, even if nobody calls the device any more: they may
    /// be what keeps it open.
    pub(crate) fn reap_later(&self, device: Weak<OpenDevice>) {
        let mut state = self.shared.state.lock();
        // Without a thread the next call that looks at the deferred does it.
        state.reaping = self.start(&mut state, device).is_ok();
        self.shared.changed.notify_one();
    }

    fn start(&self, state: &mut State, device: Weak<OpenDevice>) -> Result<()> {
        if !state.running {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("rt-waiter".to_owned());
            thread.spawn(move || watch(&shared, &device)).map_err(|error| {
                Error::new(ErrorKind::OutOfResources, "the waiter thread cannot be started")
                    .with_source(error)
                    .in_operation("await")
            })?;
            state.running = true;
        }
        Ok(())
    }
}

impl Drop for WaitThread {
    fn drop(&mut self) {
        // In a forked child the lock may be that of a thread which is not there.
        if self.generation != process::generation() {
            return;
        }
        // Futures that are left find their device closed.
        let waiting = std::mem::take(&mut self.shared.state.lock().waiting);
        waiting.into_values().for_each(wake_up);
        self.shared.changed.notify_one();
    }
}

fn watch(shared: &Shared, device: &Weak<OpenDevice>) {
    let mut rounds = 0u32;
    let mut reaped = Instant::now();
    loop {
        let mut state = shared.state.lock();
        if state.waiting.is_empty() {
            rounds = 0;
            let longest = if state.reaping { REAPING } else { IDLE };
            shared.changed.wait_for(&mut state, longest);
        }
        let pending: Vec<_> = state.waiting.values().map(|waiting| waiting.timeline.clone()).collect();
        let reaping = state.reaping && reaped.elapsed() >= REAPING;
        state.reaping &= !reaping;
        drop(state);
        let Some(backend_call) = process::WaiterGuard::enter() else { return };
        // Only the upgrade keeps the device open during the calls; its last drop may then happen here.
        let Some(open) = device.upgrade() else { return };
        let broken = observe(&pending);
        wake(shared, &broken);
        if reaping {
            // An owner is somebody else's code, too.
            let _ = catch_unwind(AssertUnwindSafe(|| open.reap()));
            reaped = Instant::now();
            if open.deferred.has_owners() {
                shared.state.lock().reaping = true;
            }
        }
        drop(open);
        drop(backend_call);
        rounds = rounds.saturating_add(1);
        if rounds > EAGER_ROUNDS {
            std::thread::sleep(SHORTEST.saturating_mul(1 << (rounds - EAGER_ROUNDS).min(7)).min(LONGEST));
        } else {
            std::thread::yield_now();
        }
    }
}

/// Looks at each queue once; returns those that answered with an error.
fn observe(pending: &[Arc<Timeline>]) -> Vec<&Arc<Timeline>> {
    let mut seen: Vec<&Arc<Timeline>> = Vec::new();
    let mut broken = Vec::new();
    for timeline in pending {
        if !seen.iter().any(|known| Arc::ptr_eq(known, timeline)) {
            seen.push(timeline);
            if timeline.poll_transitively().is_err() {
                broken.push(timeline);
            }
        }
    }
    broken
}

/// Wakes whoever waits for a settled ticket, or on a queue that answers with errors: its future asks for them itself.
fn wake(shared: &Shared, broken: &[&Arc<Timeline>]) {
    let over = |waiting: &Waiting| {
        waiting.timeline.status(waiting.ticket).is_some()
            || broken.iter().any(|known| Arc::ptr_eq(known, &waiting.timeline))
    };
    let mut state = shared.state.lock();
    let ready: Vec<_> = state.waiting.extract_if(|_, waiting| over(waiting)).collect();
    drop(state);
    ready.into_iter().for_each(|(_, waiting)| wake_up(waiting));
}

/// Wakes a future, without any lock: a waker may poll it at once. One that panics must not end the thread that all others
/// wait for, nor unwind through the drop of a device; the program's hook has told of it.
fn wake_up(Waiting { waker, .. }: Waiting) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

/// Drops a waker, without any lock: the last one of a task may drop the task, and with it its futures. The same holds for
/// one that panics.
fn discard(waiting: Option<Waiting>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(waiting)));
}
