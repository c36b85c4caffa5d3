//! The thread of a device: evaluates its candidates one after the other in its worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use serde_json::Value;

use super::deadline::Deadline;
use super::inbox::{Event, Inbox, Incoming, Task};
use super::worker_process::WorkerProcess;
use super::{PoolOptions, ending};
use crate::row::{Outcome, Phase, Row};
use crate::worker::protocol::{self, Ended, Hello, Reply, Request};

/// How long the last line of a worker may take to arrive.
const LAST_LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// The state of a device's thread.
#[derive(Debug)]
pub(super) struct DeviceThread {
    options: Arc<PoolOptions>,
    inbox: Inbox,
    /// For the readers of workers.
    events: Sender<Event>,
    replies: Sender<Reply>,
    /// Candidates of the whole pool that have no last reply yet.
    outstanding: Arc<AtomicUsize>,
    worker: Option<WorkerProcess>,
    workers_started: u64,
    /// Number of the last request.
    requests: u64,
    /// The device string, as the worker writes it.
    device: String,
    device_info: Option<Value>,
    /// Why the device is not used any more.
    unusable: Option<String>,
}

/// How an attempt to evaluate a candidate ended, if the worker has not ended it with a reply.
enum Failure {
    /// With an outcome, and the reason in words if the outcome has none.
    Outcome(Box<Outcome>, Option<String>),
    /// With the end of the worker, which may be the fault of an earlier candidate.
    Doubtful,
    /// The pool was dropped.
    Stopped,
}

impl DeviceThread {
    pub(super) fn new(
        device: &str,
        options: Arc<PoolOptions>,
        (events, received): (Sender<Event>, Receiver<Event>),
        (replies, outstanding): (Sender<Reply>, Arc<AtomicUsize>),
    ) -> Self {
        Self {
            options,
            inbox: Inbox::new(received),
            events,
            replies,
            outstanding,
            worker: None,
            workers_started: 0,
            requests: 0,
            device: device.to_owned(),
            device_info: None,
            unusable: None,
        }
    }

    /// Evaluates candidates until the pool ends.
    pub(super) fn run(mut self) {
        while let Some(task) = self.inbox.next_task() {
            let Some(reply) = self.evaluate(&task) else { break };
            let is_last = matches!(reply, Reply::Row { last: true, .. });
            let sent = self.replies.send(reply);
            self.outstanding.fetch_sub(1, Ordering::SeqCst);
            if sent.is_err() {
                break;
            }
            if is_last {
                self.end_worker(WorkerProcess::close);
            }
        }
        self.end_worker(if self.inbox.is_stopped() { WorkerProcess::kill } else { WorkerProcess::close });
    }

    /// The last reply to a candidate; `None` if the pool was dropped.
    fn evaluate(&mut self, task: &Task) -> Option<Reply> {
        loop {
            if let Some(reason) = &self.unusable {
                let reason = format!("{} is not used any more: {reason}", self.device);
                return Some(self.row(task, Outcome::Skipped { reason }, None));
            }
            match self.attempt(task) {
                Ok(reply) => return Some(reply),
                Err(Failure::Outcome(outcome, reason)) => return Some(self.row(task, *outcome, reason)),
                // The next worker is fresh, so that there is no further doubt.
                Err(Failure::Doubtful) => {}
                Err(Failure::Stopped) => return None,
            }
        }
    }

    fn row(&self, task: &Task, outcome: Outcome, reason: Option<String>) -> Reply {
        let row = Row::unmeasured(&task.spec, &task.settings(), &self.device, outcome);
        let row = Row { reason: reason.or(row.reason), device_info: self.device_info.clone(), ..row };
        Reply::Row { id: task.id, row: Box::new(row), last: false }
    }

    fn attempt(&mut self, task: &Task) -> Result<Reply, Failure> {
        // A number of its own, so that nothing that was said about an earlier candidate is taken for a reply.
        self.requests += 1;
        let id = self.requests;
        let worker = self.ready_worker()?;
        let number = worker.number;
        // A worker that cannot be written to has ended, as its next event says.
        let _ = worker.send(&Request { id, candidate: task.candidate.clone() });
        let mut deadline = Deadline::new(&self.options, &task.settings());
        let mut operation = None;
        loop {
            let reply = match self.inbox.wait(number, deadline.left()) {
                Incoming::Reply(Reply::Ended { ended }) => return Err(self.worker_ended(ended, operation)),
                Incoming::Reply(reply) => reply,
                Incoming::Closed => return Err(self.worker_ended(Ended::default(), operation)),
                Incoming::TimedOut => return Err(self.timed_out(&deadline, operation)),
                Incoming::Stopped => return Err(Failure::Stopped),
            };
            if reply.id() != Some(id) {
                continue;
            }
            let reply = reply.with_id(task.id);
            if reply.is_final() {
                return Ok(reply);
            }
            self.note_progress(&reply, &mut deadline, &mut operation);
            // A receiver that is gone is noticed when the row is sent.
            let _ = self.replies.send(reply);
        }
    }

    fn note_progress(&mut self, reply: &Reply, deadline: &mut Deadline, operation: &mut Option<String>) {
        match reply {
            Reply::Phase { phase, operation: begun, .. } => {
                deadline.enter(*phase);
                *operation = Some(begun.clone());
            }
            Reply::Device { device, device_info, .. } => {
                self.device.clone_from(device);
                self.device_info.clone_from(device_info);
            }
            _ => {}
        }
    }

    /// The worker, or a new one if there is none.
    fn ready_worker(&mut self) -> Result<&mut WorkerProcess, Failure> {
        if self.worker.as_ref().is_some_and(|worker| self.inbox.has_ended(worker.number)) {
            self.end_worker(WorkerProcess::close);
        }
        if self.worker.is_none() {
            self.start_worker()?;
        }
        self.worker.as_mut().ok_or(Failure::Stopped)
    }

    fn start_worker(&mut self) -> Result<(), Failure> {
        self.workers_started += 1;
        let number = self.workers_started;
        let failed = |message| Failure::Outcome(Box::new(Outcome::LaunchFailed { message }), None);
        let started = WorkerProcess::start(&self.options, number, &self.events);
        let started = started.map_err(|error| {
            failed(format!("cannot start a worker, {}: {error}", self.options.program.display()))
        })?;
        self.worker = Some(started);
        let operation = "while the worker started".to_owned();
        let timeout = self.options.start_timeout;
        match self.inbox.wait(number, timeout) {
            Incoming::Reply(Reply::Hello { hello }) => self.greet(&hello).map_err(failed),
            Incoming::Reply(Reply::Ended { ended }) => Err(self.worker_ended(ended, Some(operation))),
            Incoming::Closed => Err(self.worker_ended(Ended::default(), Some(operation))),
            Incoming::Stopped => Err(Failure::Stopped),
            Incoming::Reply(_) | Incoming::TimedOut => {
                self.end_worker(WorkerProcess::kill);
                let reason = format!("the worker was not ready after {} s", timeout.as_secs_f64());
                Err(Failure::Outcome(Box::new(Outcome::Timeout { phase: Phase::Prepare }), Some(reason)))
            }
        }
    }

    fn greet(&mut self, hello: &Hello) -> Result<(), String> {
        if hello.protocol != protocol::VERSION {
            self.end_worker(WorkerProcess::kill);
            return Err(format!(
                "{} has version {} of the protocol, expected {}",
                self.options.program.display(),
                hello.protocol,
                protocol::VERSION
            ));
        }
        if let Some(worker) = &mut self.worker {
            worker.inner = Some(hello.pid);
        }
        Ok(())
    }

    /// Judges a candidate whose worker has ended.
    fn worker_ended(&mut self, ended: Ended, operation: Option<String>) -> Failure {
        let Some(worker) = self.worker.take() else { return Failure::Stopped };
        let is_fresh = worker.candidates <= 1;
        let groups = worker.groups();
        let (status, output, survived) = worker.finish();
        self.note_left(&ended.left, survived);
        // Without a last line, the supervisor itself was killed.
        let has_last_line = ended != Ended::default();
        if !has_last_line {
            groups.kill();
        }
        let ended = if has_last_line { ended } else { status.unwrap_or_default() };
        let has_begun = operation.is_some();
        let outcome = ending::outcome(&ended, output, operation);
        // Memory that an earlier candidate has corrupted may be noticed only now.
        match matches!(outcome, Outcome::Crashed { .. }) || !has_begun {
            true if !is_fresh => Failure::Doubtful,
            _ => Failure::Outcome(Box::new(outcome), None),
        }
    }

    fn timed_out(&mut self, deadline: &Deadline, operation: Option<String>) -> Failure {
        self.end_worker(WorkerProcess::kill);
        let operation = operation.unwrap_or_else(|| "before it began".to_owned());
        let reason = format!("timed out after {} s {operation}", deadline.limit().as_secs_f64());
        Failure::Outcome(Box::new(Outcome::Timeout { phase: deadline.phase() }), Some(reason))
    }

    fn end_worker(&mut self, end: impl FnOnce(WorkerProcess) -> Result<(), String>) {
        let Some(worker) = self.worker.take() else { return };
        let (number, groups) = (worker.number, worker.groups());
        let survived = end(worker);
        let left = self.inbox.last_line(number, LAST_LINE_TIMEOUT);
        if left.is_none() {
            groups.kill();
        }
        self.note_left(&left.unwrap_or_default(), survived);
    }

    /// Stops using the device if processes could not be killed: they may hold it.
    fn note_left(&mut self, left: &[i32], survived: Result<(), String>) {
        let survivors = left.iter().map(|process| format!("process {process} cannot be killed")).next();
        if let Some(reason) = survived.err().or(survivors) {
            self.unusable = Some(reason);
        }
    }
}
