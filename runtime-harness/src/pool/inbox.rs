//! What comes to the thread of a device: candidates from the pool, replies from its workers.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::candidate::Candidate;
use crate::settings::Settings;
use crate::spec::Spec;
use crate::worker::protocol::Reply;

/// What happens to a device's thread.
#[derive(Debug)]
pub(super) enum Event {
    /// A candidate was submitted.
    Task(Box<Task>),
    /// A worker has replied.
    Reply { worker: u64, reply: Box<Reply> },
    /// All processes of a worker have ended.
    Closed { worker: u64 },
    /// No further candidates will come.
    Finish,
    /// No further results are wanted.
    Stop,
}

/// A candidate in the queue.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: u64,
    pub(super) candidate: Candidate,
    pub(super) spec: Spec,
}

impl Task {
    pub(super) fn settings(&self) -> Settings {
        self.candidate.settings.or(self.spec.settings)
    }
}

/// What a worker said in time.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A reply.
    Reply(Reply),
    /// Nothing more will come.
    Closed,
    /// Nothing.
    TimedOut,
    /// Nothing that matters: the pool was dropped.
    Stopped,
}

/// The events of a device's thread, and the candidates that wait.
#[derive(Debug)]
pub(super) struct Inbox {
    events: Receiver<Event>,
    queue: VecDeque<Task>,
    is_finishing: bool,
    is_stopped: bool,
    /// The last worker that has ended, and what its last line says about the processes that it could not kill.
    ended: (u64, Option<Vec<i32>>),
}

impl Inbox {
    pub(super) fn new(events: Receiver<Event>) -> Self {
        Self { events, queue: VecDeque::new(), is_finishing: false, is_stopped: false, ended: (0, None) }
    }

    /// Waits for the next candidate; `None` if there will be none.
    pub(super) fn next_task(&mut self) -> Option<Task> {
        loop {
            match self.queue.pop_front() {
                _ if self.is_stopped => return None,
                Some(task) => return Some(task),
                None if self.is_finishing => return None,
                None => {}
            }
            let event = self.events.recv().ok()?;
            self.note(event);
        }
    }

    /// Waits for a reply of a worker.
    pub(super) fn wait(&mut self, worker: u64, timeout: Duration) -> Incoming {
        let begin = Instant::now();
        loop {
            let event = match self.events.recv_timeout(timeout.saturating_sub(begin.elapsed())) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => return Incoming::TimedOut,
                Err(RecvTimeoutError::Disconnected) => return Incoming::Stopped,
            };
            match self.note(event) {
                Some((number, incoming)) if number == worker => return incoming,
                _ if self.is_stopped => return Incoming::Stopped,
                _ => {}
            }
        }
    }

    /// Waits for the last line of a worker that was told to end: the processes that it could not kill. `None` if there is no
    /// such line.
    pub(super) fn last_line(&mut self, worker: u64, timeout: Duration) -> Option<Vec<i32>> {
        let begin = Instant::now();
        while !self.has_ended(worker) {
            match self.wait(worker, timeout.saturating_sub(begin.elapsed())) {
                Incoming::Reply(_) | Incoming::Closed => {}
                Incoming::TimedOut | Incoming::Stopped => return None,
            }
        }
        self.ended.1.take()
    }

    /// Whether a worker has ended by itself.
    pub(super) const fn has_ended(&self, worker: u64) -> bool {
        self.ended.0 == worker
    }

    pub(super) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Records an event; returns what a worker said, with its number.
    fn note(&mut self, event: Event) -> Option<(u64, Incoming)> {
        match event {
            Event::Task(task) => self.queue.push_back(*task),
            Event::Finish => self.is_finishing = true,
            Event::Stop => self.is_stopped = true,
            Event::Closed { worker } => {
                if worker > self.ended.0 {
                    self.ended = (worker, None);
                }
                return Some((worker, Incoming::Closed));
            }
            Event::Reply { worker, reply } => {
                if let Reply::Ended { ended } = &*reply {
                    self.ended = (worker, Some(ended.left.clone()));
                }
                return Some((worker, Incoming::Reply(*reply)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::worker::protocol::Ended;

    const SOON: Duration = Duration::from_millis(5);

    fn ended(left: &[i32]) -> Box<Reply> {
        Box::new(Reply::Ended { ended: Ended { left: left.to_vec(), ..Ended::default() } })
    }

    #[test]
    fn replies_of_earlier_workers_are_ignored() {
        let (sender, events) = mpsc::channel();
        let mut inbox = Inbox::new(events);
        sender.send(Event::Closed { worker: 1 }).unwrap();
        assert!(matches!(inbox.wait(2, SOON), Incoming::TimedOut));
        assert!(inbox.has_ended(1) && !inbox.has_ended(2));
        sender.send(Event::Reply { worker: 2, reply: ended(&[8]) }).unwrap();
        assert_eq!(inbox.last_line(2, SOON), Some(vec![8]));
        assert_eq!(inbox.last_line(2, SOON), None);
        assert!(inbox.has_ended(2));
    }

    #[test]
    fn a_stop_ends_every_wait_and_a_finish_only_that_for_candidates() {
        let (sender, events) = mpsc::channel();
        let mut inbox = Inbox::new(events);
        sender.send(Event::Finish).unwrap();
        assert!(inbox.next_task().is_none());
        assert!(matches!(inbox.wait(1, SOON), Incoming::TimedOut));
        sender.send(Event::Stop).unwrap();
        assert!(matches!(inbox.wait(1, Duration::MAX), Incoming::Stopped));
    }
}
