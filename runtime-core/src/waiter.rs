//! The waiter of a device: one thread, started at the first `.await`, that polls and wakes. Core's only thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::device::Device;
use crate::timeline::Timeline;
use crate::{Error, ErrorKind, Result, lifecycle};

/// Rounds of polling without a pause, then the pause doubles from `SHORTEST` to `LONGEST`.
const EAGER_ROUNDS: u32 = 50;
const SHORTEST: Duration = Duration::from_micros(10);
const LONGEST: Duration = Duration::from_millis(1);
/// An idle waiter looks this often whether its device is gone.
const IDLE: Duration = Duration::from_millis(500);

/// Tickets that futures wait for.
#[derive(Debug)]
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    generation: u32,
}

impl Default for Waiter {
    fn default() -> Self {
        Self { shared: Arc::default(), generation: lifecycle::generation() }
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
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    timeline: Arc<Timeline>,
    ticket: u64,
    waker: Waker,
}

impl Waiter {
    /// Wakes `waker` once `ticket` has settled.
    ///
    /// # Errors
    /// `OutOfResources` when the thread cannot be started.
    pub(crate) fn register(
        &self,
        device: &Arc<Device>,
        timeline: &Arc<Timeline>,
        ticket: u64,
        waker: &Waker,
    ) -> Result<()> {
        let mut state = self.shared.state.lock();
        if !state.running {
            let (shared, device) = (self.shared.clone(), Arc::downgrade(device));
            let thread = std::thread::Builder::new().name("rt-waiter".to_owned());
            thread.spawn(move || watch(&shared, &device)).map_err(|error| {
                Error::new(ErrorKind::OutOfResources, "the waiter thread cannot be started")
                    .with_source(error)
                    .in_operation("await")
            })?;
            state.running = true;
        }
        match state.waiting.iter_mut().find(|known| {
            known.ticket == ticket && known.waker.will_wake(waker) && Arc::ptr_eq(&known.timeline, timeline)
        }) {
            Some(_) => {}
            None => state.waiting.push(Waiting { timeline: timeline.clone(), ticket, waker: waker.clone() }),
        }
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // In a forked child the lock may be that of a thread which is not there.
        if self.generation != lifecycle::generation() {
            return;
        }
        // Futures that are left find their device closed.
        for waiting in self.shared.state.lock().waiting.drain(..) {
            waiting.waker.wake();
        }
        self.shared.changed.notify_one();
    }
}

fn watch(shared: &Shared, device: &Weak<Device>) {
    let mut rounds = 0u32;
    loop {
        let mut state = shared.state.lock();
        if state.waiting.is_empty() {
            rounds = 0;
            shared.changed.wait_for(&mut state, IDLE);
        }
        let pending: Vec<_> = state.waiting.iter().map(|waiting| waiting.timeline.clone()).collect();
        drop(state);
        let Some(backend_call) = lifecycle::WaiterGuard::enter() else { return };
        // Only the upgrade keeps the device open during the calls; its last drop may then happen here.
        let Some(open) = device.upgrade() else { return };
        let broken = observe(&pending);
        wake(shared, &broken);
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
            if timeline.observe().is_err() {
                broken.push(timeline);
            }
        }
    }
    broken
}

/// Wakes whoever waits for a settled ticket, or on a queue that answers with errors: its future asks for them itself.
fn wake(shared: &Shared, broken: &[&Arc<Timeline>]) {
    let mut ready = Vec::new();
    shared.state.lock().waiting.retain(|waiting| {
        let over = waiting.timeline.settled(waiting.ticket).is_some()
            || broken.iter().any(|known| Arc::ptr_eq(known, &waiting.timeline));
        if over {
            ready.push(waiting.waker.clone());
        }
        !over
    });
    // Outside the lock: a waker may poll its future at once.
    for waker in ready {
        // Nor may one that panics end the thread that all others wait for; the program's hook has told of it.
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}
