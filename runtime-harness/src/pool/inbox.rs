//! What comes to the thread of a device: candidates from the pool, replies from its workers.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::event::Event;
use super::task_queue::{TaskQueue, Ticket};
use crate::worker::protocol::Reply;

/// What a worker said in time.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A reply.
    Reply(Reply),
    /// Nothing more will come.
    Closed,
    /// Nothing.
    TimedOut,
    /// Nothing that matters: nobody wants the row.
    Cancelled,
    /// Nothing that matters: the pool was dropped.
    Stopped,
}

/// The events of a device's thread, and the candidates that wait.
#[derive(Debug)]
pub(super) struct Inbox {
    events: Receiver<Event>,
    pub(super) queue: Arc<TaskQueue>,
    is_stopped: bool,
    /// The last worker that has ended, and what its last line says about the processes that it could not kill.
    ended: (u64, Option<Vec<i32>>),
}

impl Inbox {
    pub(super) fn new(events: Receiver<Event>, queue: Arc<TaskQueue>) -> Self {
        Self { events, queue, is_stopped: false, ended: (0, None) }
    }

    /// Waits until there is a candidate, which another thread may take first; `false` if there will be none.
    pub(super) fn wait_for_task(&mut self) -> bool {
        loop {
            if self.is_stopped {
                return false;
            }
            match self.queue.has_task() {
                Some(true) => return true,
                Some(false) => {}
                None => return false,
            }
            let Ok(event) = self.events.recv() else { return false };
            self.note(event);
        }
    }

    /// Waits for a reply of a worker.
    pub(super) fn wait(&mut self, worker: u64, timeout: Duration) -> Incoming {
        self.wait_for(None, worker, timeout)
    }

    /// Waits for a reply about a candidate.
    pub(super) fn wait_for(&mut self, ticket: Option<&Ticket>, worker: u64, timeout: Duration) -> Incoming {
        let begin = Instant::now();
        loop {
            // Whoever cancels it wakes this thread afterwards.
            if ticket.is_some_and(Ticket::is_cancelled) {
                return Incoming::Cancelled;
            }
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
                Incoming::TimedOut | Incoming::Cancelled | Incoming::Stopped => return None,
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
            Event::Wake => {}
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

    fn inbox() -> (mpsc::Sender<Event>, Inbox) {
        let (sender, events) = mpsc::channel();
        let queue = Arc::new(TaskQueue::new(vec![sender.clone()]));
        (sender, Inbox::new(events, queue))
    }

    #[test]
    fn replies_of_earlier_workers_are_ignored() {
        let (sender, mut inbox) = inbox();
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
        let (_sender, mut inbox) = inbox();
        inbox.queue.finish();
        assert!(!inbox.wait_for_task());
        assert!(matches!(inbox.wait(1, SOON), Incoming::TimedOut));
        inbox.queue.stop();
        assert!(matches!(inbox.wait(1, Duration::MAX), Incoming::Stopped));
    }
}
