//! The wait thread of a device polls its queues and wakes futures. It starts at the first `.await`, when a host task must wait for
//! work, or when memory of an external owner is dropped while the device still uses it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::panics::contain;
use crate::process;
use crate::timeline::{DeviceServices, Timeline};
use crate::{Error, ErrorKind, Result};

/// Rounds of polling without a pause; after them the pause doubles from `SHORTEST` to `LONGEST`.
const EAGER_ROUNDS: u32 = 50;
const SHORTEST: Duration = Duration::from_micros(10);
const LONGEST: Duration = Duration::from_millis(1);
/// How often it frees memory of external owners. Every call of the device does so, too, and usually sooner.
const REAPING: Duration = Duration::from_millis(50);
/// How often an idle thread checks whether its device is gone.
const IDLE: Duration = Duration::from_millis(500);

/// Tickets that futures wait for.
#[derive(Debug)]
pub(crate) struct WaitThread {
    shared: Arc<Shared>,
    fork_generation: u32,
}

impl Default for WaitThread {
    fn default() -> Self {
        Self { shared: Arc::default(), fork_generation: process::generation() }
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
    /// Memory of external owners is waiting to be released.
    reaping: bool,
}

#[derive(Debug)]
struct Waiting {
    timeline: Arc<Timeline>,
    ticket: u64,
    waker: Waker,
}

impl WaitThread {
    /// Wakes `waker` once `ticket` has a result. `registration` identifies the future, and is 0 at first; a future has one
    /// entry, with the waker of its last poll.
    ///
    /// # Errors
    /// `OutOfResources` when the thread cannot be started.
    pub(crate) fn register(
        &self,
        device: Weak<dyn DeviceServices>,
        (timeline, ticket): (&Arc<Timeline>, u64),
        registration: &mut u64,
        waker: &Waker,
    ) -> Result<()> {
        // Foreign code, so outside the lock.
        let waker = waker.clone();
        let mut state = self.shared.state.lock();
        self.start(&mut state, device)?;
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

    /// Removes the entry of a dropped future.
    pub(crate) fn forget(&self, registration: u64) {
        let forgotten = self.shared.state.lock().waiting.remove(&registration);
        discard(forgotten);
    }

    /// Releases memory of external owners once the work on it has ended, even if the program makes no further call: the owners
    /// may be what keeps the device open.
    pub(crate) fn reap_later(&self, device: Weak<dyn DeviceServices>) {
        let mut state = self.shared.state.lock();
        // Without a thread, the next call that reaps does it.
        state.reaping = self.start(&mut state, device).is_ok();
        self.shared.changed.notify_one();
    }

    fn start(&self, state: &mut State, device: Weak<dyn DeviceServices>) -> Result<()> {
        if !state.running {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("rt-wait".to_owned());
            thread.spawn(move || run(&shared, &device)).map_err(|error| {
                Error::new(ErrorKind::OutOfResources, "cannot start the wait thread")
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
        // In a forked child the lock may be held by a thread that does not exist there.
        if self.fork_generation != process::generation() {
            return;
        }
        // The remaining futures will find their device closed.
        let waiting = std::mem::take(&mut self.shared.state.lock().waiting);
        waiting.into_values().for_each(wake_up);
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared, device: &Weak<dyn DeviceServices>) {
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
        let Some(backend_call) = process::ThreadGuard::enter() else { return };
        // The upgrade alone keeps the device open during the calls; the device may be closed at its end.
        let Some(open) = device.upgrade() else { return };
        let broken = poll_queues(&pending);
        wake(shared, &broken);
        if reaping {
            // An owner is foreign code, too.
            let again = contain(|| open.reap()).unwrap_or(true);
            reaped = Instant::now();
            if again {
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

/// Polls each queue once; returns those that could not be polled.
fn poll_queues(pending: &[Arc<Timeline>]) -> Vec<&Arc<Timeline>> {
    let mut seen: Vec<&Arc<Timeline>> = Vec::new();
    let mut broken = Vec::new();
    for timeline in pending {
        if !seen.iter().any(|known| Arc::ptr_eq(known, timeline)) {
            seen.push(timeline);
            if timeline.poll_with_sources().is_err() {
                broken.push(timeline);
            }
        }
    }
    broken
}

/// Wakes the futures whose ticket has a result, and those on queues that cannot be polled: they will see the error themselves.
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

/// Wakes a future with no lock held, since a waker may poll at once. A waker that panics must neither end the thread, which
/// serves all other futures, nor unwind through the drop of a device; the panic hook has reported it.
fn wake_up(Waiting { waker, .. }: Waiting) {
    let _ = contain(|| waker.wake());
}

/// Drops a waker with no lock held: the last waker of a task may drop the task, with its futures. Panics are contained, as in
/// [`wake_up`].
fn discard(waiting: Option<Waiting>) {
    let _ = contain(|| drop(waiting));
}
