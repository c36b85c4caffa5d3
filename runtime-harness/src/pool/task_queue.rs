//! The candidates of a device, which its workers share.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event::Event;
use crate::candidate::Candidate;
use crate::commit::Commit;
use crate::settings::Settings;
use crate::spec::Spec;

/// A candidate in the queue.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: u64,
    pub(super) candidate: Candidate,
    pub(super) spec: Spec,
    /// The commit of the folder of the spec.
    pub(super) commit: Option<Commit>,
    /// How many workers have died from outside while they evaluated it.
    pub(super) lost_workers: u32,
}

impl Task {
    pub(super) fn settings(&self) -> Settings {
        self.candidate.settings.or(&self.spec.settings)
    }

    /// The most time that its evaluation takes if every call is quick. A chain is evaluated twice.
    pub(super) fn time_limit(&self) -> Duration {
        let times = if self.candidate.chain.is_some() { 2 } else { 1 };
        self.settings().time_limit().saturating_mul(times)
    }
}

/// Candidates that wait, and the threads that take them.
#[derive(Debug)]
pub(super) struct TaskQueue {
    state: Mutex<State>,
    /// One per thread.
    threads: Vec<Sender<Event>>,
}

#[derive(Debug)]
struct State {
    tasks: VecDeque<Task>,
    /// Whether no further candidates will come.
    is_finishing: bool,
    /// Threads that take candidates.
    takers: usize,
}

impl TaskQueue {
    pub(super) fn new(threads: Vec<Sender<Event>>) -> Self {
        let state = State { tasks: VecDeque::new(), is_finishing: false, takers: threads.len() };
        Self { state: Mutex::new(state), threads }
    }

    /// Adds a candidate at the end.
    pub(super) fn push(&self, task: Task) {
        self.state().tasks.push_back(task);
        self.send(|| Event::Wake);
    }

    /// Gives a candidate back, which is the next to be taken.
    pub(super) fn put_back(&self, task: Task) {
        self.state().tasks.push_front(task);
        self.send(|| Event::Wake);
    }

    /// Notes that no further candidates will come.
    pub(super) fn finish(&self) {
        self.state().is_finishing = true;
        self.send(|| Event::Wake);
    }

    /// Tells every thread that no further results are wanted.
    pub(super) fn stop(&self) {
        self.send(|| Event::Stop);
    }

    pub(super) fn take(&self) -> Option<Task> {
        self.state().tasks.pop_front()
    }

    /// Whether there is a candidate; `None` for a thread that takes none any more, because there will be none.
    pub(super) fn has_task(&self) -> Option<bool> {
        let mut state = self.state();
        match (state.tasks.is_empty(), state.is_finishing) {
            (true, true) => {
                state.takers -= 1;
                None
            }
            (is_empty, _) => Some(!is_empty),
        }
    }

    /// Whether nothing is left to take.
    pub(super) fn is_drained(&self) -> bool {
        let state = self.state();
        state.is_finishing && state.tasks.is_empty()
    }

    /// Leaves the candidates to the other threads; `false` if there are none.
    pub(super) fn leave(&self) -> bool {
        let mut state = self.state();
        let has_others = state.takers > 1;
        state.takers -= usize::from(has_others);
        drop(state);
        // The candidates that woke this thread may have woken no other.
        self.send(|| Event::Wake);
        has_others
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, event: impl Fn() -> Event) {
        for thread in &self.threads {
            // A thread that has ended takes no candidates.
            let _ = thread.send(event());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_last_thread_cannot_leave_its_candidates() {
        let (sender, _events) = mpsc::channel();
        let queue = TaskQueue::new(vec![sender.clone(), sender.clone(), sender]);
        assert!(queue.leave());
        assert_eq!(queue.has_task(), Some(false));
        queue.finish();
        assert_eq!(queue.has_task(), None, "this thread ends");
        assert!(!queue.leave(), "one thread is left");
        assert!(queue.is_drained());
    }
}
