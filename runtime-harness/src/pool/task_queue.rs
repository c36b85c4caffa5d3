//! The candidates of a device, which its workers share. Clients take turns.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::event::Event;
use crate::candidate::Candidate;
use crate::commit::Commit;
use crate::settings::Settings;
use crate::spec::Spec;

/// Whose candidate it is.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) client: u64,
    pub(super) id: u64,
    is_cancelled: AtomicBool,
}

impl Ticket {
    pub(super) fn new(client: u64, id: u64) -> Self {
        Self { client, id, is_cancelled: AtomicBool::new(false) }
    }

    /// Whether nobody wants its row any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }
}

/// A candidate in the queue.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) ticket: Arc<Ticket>,
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

#[derive(Debug, Default)]
struct State {
    /// The clients whose candidates wait, that whose turn is next first; none of them has no candidate.
    turns: VecDeque<(u64, VecDeque<Task>)>,
    /// The candidates that threads have taken and not given back.
    taken: Vec<Weak<Ticket>>,
    /// Whether no further candidates will come.
    is_finishing: bool,
    /// Threads that take candidates.
    takers: usize,
}

impl TaskQueue {
    pub(super) fn new(threads: Vec<Sender<Event>>) -> Self {
        let state = State { takers: threads.len(), ..State::default() };
        Self { state: Mutex::new(state), threads }
    }

    /// Adds a candidate behind the others of its client.
    pub(super) fn push(&self, task: Task) {
        let mut state = self.state();
        match state.turns.iter_mut().find(|(client, _)| *client == task.ticket.client) {
            Some((_, tasks)) => tasks.push_back(task),
            None => state.turns.push_back((task.ticket.client, VecDeque::from([task]))),
        }
        drop(state);
        self.send(|| Event::Wake);
    }

    /// Gives a candidate back, which is the next to be taken.
    pub(super) fn put_back(&self, task: Task) {
        let mut state = self.state();
        let client = task.ticket.client;
        let at = state.turns.iter().position(|(other, _)| *other == client);
        let mut tasks = at.and_then(|at| state.turns.remove(at)).map_or_else(VecDeque::new, |turn| turn.1);
        tasks.push_front(task);
        state.turns.push_front((client, tasks));
        drop(state);
        self.send(|| Event::Wake);
    }

    /// Removes the candidates for which `is_meant` holds, and asks their threads to end those that run. The flag says whether there are
    /// such.
    pub(super) fn cancel(&self, is_meant: impl Fn(&Ticket) -> bool) -> (Vec<Task>, bool) {
        let mut removed = Vec::new();
        let mut state = self.state();
        for (_, tasks) in
            state.turns.iter_mut().filter(|(_, tasks)| tasks.iter().any(|task| is_meant(&task.ticket)))
        {
            let (meant, kept) = tasks.drain(..).partition(|task: &Task| is_meant(&task.ticket));
            *tasks = kept;
            removed.extend::<VecDeque<Task>>(meant);
        }
        state.turns.retain(|(_, tasks)| !tasks.is_empty());
        let running = state.taken.iter().filter_map(Weak::upgrade).filter(|ticket| is_meant(ticket));
        let running: Vec<_> = running.collect();
        running.iter().for_each(|ticket| ticket.is_cancelled.store(true, Ordering::SeqCst));
        drop(state);
        self.send(|| Event::Wake);
        (removed, !running.is_empty())
    }

    /// Whether there is nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.turns.is_empty() && state.taken.iter().all(|ticket| ticket.strong_count() == 0)
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
        let mut state = self.state();
        let (client, mut tasks) = state.turns.pop_front()?;
        let task = tasks.pop_front()?;
        if !tasks.is_empty() {
            state.turns.push_back((client, tasks));
        }
        state.taken.retain(|ticket| ticket.strong_count() > 0);
        state.taken.push(Arc::downgrade(&task.ticket));
        Some(task)
    }

    /// Whether there is a candidate; `None` for a thread that takes none any more, because there will be none.
    pub(super) fn has_task(&self) -> Option<bool> {
        let mut state = self.state();
        match (state.turns.is_empty(), state.is_finishing) {
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
        state.is_finishing && state.turns.is_empty()
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
    use crate::spec::SpecSource;

    fn task(client: u64, id: u64) -> Task {
        let json = serde_json::json!({"version": 1, "kernel": {"code": "", "format": "c", "entry": "k"}});
        let spec: SpecSource = serde_json::from_value(json).unwrap();
        let candidate = Candidate::new("k.toml", "host:0");
        let spec = spec.load(&candidate.overrides).unwrap();
        Task { ticket: Arc::new(Ticket::new(client, id)), candidate, spec, commit: None, lost_workers: 0 }
    }

    #[test]
    fn clients_take_turns() {
        let queue = TaskQueue::new(Vec::new());
        for (client, id) in [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 6)] {
            queue.push(task(client, id));
        }
        let take = || queue.take().map(|task| task.ticket.id);
        assert_eq!([take(), take()], [Some(1), Some(4)]);
        queue.put_back(task(2, 4));
        assert_eq!(
            [take(), take(), take(), take(), take(), take()].map(Option::unwrap_or_default),
            [4, 6, 2, 5, 3, 0]
        );
        assert!(queue.is_idle());
    }

    #[test]
    fn candidates_are_cancelled_while_they_wait_and_while_they_run() {
        let queue = TaskQueue::new(Vec::new());
        (1..=4).for_each(|id| queue.push(task(id % 2, id)));
        let running = queue.take().unwrap();
        let (removed, is_running) = queue.cancel(|ticket| ticket.client == 1);
        assert_eq!(removed.iter().map(|task| task.ticket.id).collect::<Vec<_>>(), [3]);
        assert!(is_running && running.ticket.is_cancelled() && !queue.is_idle());
        drop(running);
        assert!(!queue.cancel(|ticket| ticket.client == 1).1, "it has its reply");
        assert_eq!(queue.take().map(|task| task.ticket.id), Some(2));
    }

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
