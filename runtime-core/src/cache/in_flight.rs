//! Threads that want the same code at the same time: one obtains it, the others wait for its result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::code::{CacheOutcome, CachedCode};
use super::key::Key;
use crate::Result;

/// Code with its origin, or the error of its compiler.
pub(super) type Obtained = Result<(Arc<CachedCode>, CacheOutcome)>;

/// What the threads of this process obtain at the moment.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    running: Mutex<HashMap<Key, Arc<Slot>>>,
}

#[derive(Debug, Default)]
struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Running,
    Done(Obtained),
    /// Its thread panicked.
    Abandoned,
}

/// The part of a thread.
#[derive(Debug)]
pub(super) enum Turn<'a> {
    /// It obtains the code, and publishes the result.
    First(Publisher<'a>),
    /// Another thread has done it.
    Done(Obtained),
    /// Another thread has not done it before the deadline.
    TimedOut,
}

impl InFlight {
    /// Registers this thread as the one that obtains the code, or waits for the one that does.
    pub(super) fn join(&self, key: &Key, deadline: Instant) -> Turn<'_> {
        loop {
            let slot = {
                let mut running = self.running.lock();
                match running.get(key) {
                    Some(slot) => slot.clone(),
                    None => {
                        let slot = Arc::<Slot>::default();
                        running.insert(key.clone(), slot.clone());
                        return Turn::First(Publisher { in_flight: self, key: key.clone(), slot });
                    }
                }
            };
            let mut state = slot.state.lock();
            while matches!(*state, State::Running) {
                if slot.changed.wait_until(&mut state, deadline).timed_out() {
                    return Turn::TimedOut;
                }
            }
            if let State::Done(result) = &*state {
                return Turn::Done(result.clone());
            }
        }
    }
}

/// Held by the thread that obtains code. Waiting threads take over if it is dropped without a result.
#[derive(Debug)]
pub(super) struct Publisher<'a> {
    in_flight: &'a InFlight,
    key: Key,
    slot: Arc<Slot>,
}

impl Publisher<'_> {
    /// Hands the result to the threads that wait for it, for which it is a hit.
    pub(super) fn publish(self, result: &Obtained) {
        let result = result.clone().map(|(code, outcome)| match outcome {
            CacheOutcome::Miss | CacheOutcome::Uncached => (code, CacheOutcome::Hit),
            other => (code, other),
        });
        *self.slot.state.lock() = State::Done(result);
    }
}

impl Drop for Publisher<'_> {
    fn drop(&mut self) {
        self.in_flight.running.lock().remove(&self.key);
        let mut state = self.slot.state.lock();
        if matches!(*state, State::Running) {
            *state = State::Abandoned;
        }
        drop(state);
        self.slot.changed.notify_all();
    }
}
