//! A thread of a device: evaluates candidates one after the other in its worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::deadline::Deadline;
use super::event::Event;
use super::inbox::{Inbox, Incoming};
use super::task_queue::{Task, TaskQueue};
use super::worker_process::WorkerProcess;
use super::{PoolOptions, ending, repeated};
use crate::row::{Outcome, Phase, Row};
use crate::spec::SpecSource;
use crate::worker::protocol::{self, Ended, Hello, Progress, Reply, Request};

/// Time limit for the last line of a worker.
const LAST_LINE_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which a thread that waits for its worker checks whether any candidate is left.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);
/// A candidate is reported as failed once this many workers were lost with it.
const MAX_LOST_WORKERS: u32 = 2;

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
    /// The device string of the candidates.
    given_device: String,
    /// The device string, as the worker writes it.
    device: String,
    device_info: Option<Value>,
    /// Why the device is not used any more.
    unusable: Option<String>,
}

/// How an attempt to evaluate a candidate ended, if the worker has not ended it with a reply.
enum Failure {
    /// The outcome of the candidate, and a reason to show in place of the outcome's.
    Outcome(Box<Outcome>, Option<String>),
    /// The worker ended, perhaps because of an earlier candidate.
    Doubtful,
    /// The worker was lost for an outside reason. Has the outcome to report if retries run out.
    Lost(Box<Outcome>),
    /// The other threads have evaluated all candidates.
    NotNeeded,
    /// Nobody wants the row.
    Cancelled,
    /// The pool was dropped.
    Stopped,
}

impl DeviceThread {
    pub(super) fn new(
        device: &str,
        options: Arc<PoolOptions>,
        queue: Arc<TaskQueue>,
        (events, received): (Sender<Event>, Receiver<Event>),
        (replies, outstanding): (Sender<Reply>, Arc<AtomicUsize>),
    ) -> Self {
        Self {
            options,
            inbox: Inbox::new(received, queue),
            events,
            replies,
            outstanding,
            worker: None,
            workers_started: 0,
            requests: 0,
            given_device: device.to_owned(),
            device: device.to_owned(),
            device_info: None,
            unusable: None,
        }
    }

    /// Evaluates candidates until the pool ends.
    pub(super) fn run(mut self) {
        while self.inbox.wait_for_task() {
            // A worker comes first: it may have to wait for a machine, and other threads have theirs.
            let prepared = self.prepare_worker();
            if matches!(prepared, Err(Failure::Stopped)) {
                break;
            }
            if self.leaves_device(&prepared) {
                return;
            }
            let Some(task) = self.inbox.queue.take() else { continue };
            let reply = match prepared {
                Ok(()) => self.evaluate(task),
                Err(failure) => self.judge(task, failure),
            };
            if let Some(reply) = reply
                && !self.send(reply)
            {
                break;
            }
            if self.inbox.is_stopped() {
                break;
            }
        }
        self.end_worker(if self.inbox.is_stopped() { WorkerProcess::kill } else { WorkerProcess::close });
    }

    /// Sends the last reply to a candidate; returns whether somebody wants further ones.
    fn send(&mut self, reply: Reply) -> bool {
        let is_last = matches!(reply, Reply::Row { last: true, .. });
        let sent = self.replies.send(reply);
        self.outstanding.fetch_sub(1, Ordering::SeqCst);
        if is_last {
            self.end_worker(WorkerProcess::close);
        }
        sent.is_ok()
    }

    /// A worker, unless the device is not used any more. A start that fails from outside is tried twice.
    fn prepare_worker(&mut self) -> Result<(), Failure> {
        if self.unusable.is_some() {
            return Ok(());
        }
        let first = self.ready_worker().map(|_| ());
        let second =
            if matches!(first, Err(Failure::Lost(_))) { self.ready_worker().map(|_| ()) } else { first };
        second.map_err(|failure| match failure {
            Failure::Lost(outcome) => Failure::Outcome(outcome, None),
            failure => failure,
        })
    }

    /// Leaves the candidates to the other threads if this one has no worker. The last thread stays.
    fn leaves_device(&mut self, prepared: &Result<(), Failure>) -> bool {
        let reason = match (&self.unusable, prepared) {
            (Some(reason), _) => reason.clone(),
            (None, Err(Failure::Outcome(outcome, reason))) => {
                reason.clone().or_else(|| outcome.reason()).unwrap_or_default()
            }
            (None, _) => return false,
        };
        if !self.inbox.queue.leave() {
            return false;
        }
        // A receiver that is gone needs no reason.
        let _ = self.replies.send(Reply::Retired { device: self.device.clone(), retired: reason });
        true
    }

    /// The last reply to a candidate; `None` if it was put back, or the pool was dropped.
    fn evaluate(&mut self, task: Task) -> Option<Reply> {
        loop {
            if task.ticket.is_cancelled() {
                return self.judge(task, Failure::Cancelled);
            }
            if let Some(reason) = &self.unusable {
                let reason = format!("{} is not used any more: {reason}", self.device);
                return Some(self.row(&task, Outcome::Skipped { reason }, None));
            }
            match self.attempt(&task) {
                Ok(reply) => return Some(reply),
                // The next worker is fresh, so that there is no further doubt.
                Err(Failure::Doubtful) => {}
                Err(failure) => return self.judge(task, failure),
            }
        }
    }

    /// The reply to a candidate that failed with its worker; `None` if another worker is to evaluate it.
    fn judge(&self, mut task: Task, failure: Failure) -> Option<Reply> {
        match failure {
            Failure::Outcome(outcome, reason) => Some(self.row(&task, *outcome, reason)),
            Failure::Lost(outcome) if task.lost_workers + 1 >= MAX_LOST_WORKERS => {
                Some(self.row(&task, *outcome, None))
            }
            Failure::Lost(_) => {
                task.lost_workers += 1;
                self.inbox.queue.put_back(task);
                None
            }
            Failure::Doubtful | Failure::NotNeeded => {
                self.inbox.queue.put_back(task);
                None
            }
            Failure::Cancelled => Some(Reply::Cancelled { id: task.ticket.id, cancelled: Progress::Running }),
            Failure::Stopped => None,
        }
    }

    fn row(&self, task: &Task, outcome: Outcome, reason: Option<String>) -> Reply {
        let row = Row::unmeasured(&task.spec, &task.settings(), &self.device, outcome);
        let (reason, commit) = (reason.or(row.reason), task.commit.clone());
        let row = Row { reason, commit, device_info: self.device_info.clone(), ..row };
        Reply::Row { id: task.ticket.id, row: Box::new(row), last: false }
    }

    fn attempt(&mut self, task: &Task) -> Result<Reply, Failure> {
        // A fresh id per request: late replies to earlier candidates must not match.
        self.requests += 1;
        let id = self.requests;
        let request = self.request(id, task)?;
        let worker = self.ready_worker()?;
        let number = worker.number;
        // A worker that cannot be written to has ended, as its next event says.
        let _ = worker.send(&request);
        let mut deadline = Deadline::new(&self.options, task.time_limit());
        let mut operation = None;
        loop {
            let reply = match self.inbox.wait_for(Some(&task.ticket), number, deadline.left()) {
                Incoming::Reply(Reply::Ended { ended }) => return Err(self.worker_ended(ended, operation)),
                Incoming::Reply(reply) => reply,
                Incoming::Closed => return Err(self.worker_ended(Ended::default(), operation)),
                Incoming::TimedOut => return Err(self.timed_out(&deadline, operation)),
                Incoming::Cancelled => {
                    self.end_worker(WorkerProcess::kill);
                    return Err(Failure::Cancelled);
                }
                Incoming::Stopped => return Err(Failure::Stopped),
            };
            if reply.id() != Some(id) {
                continue;
            }
            let reply = reply.with_id(task.ticket.id);
            if reply.is_final() {
                return Ok(self.as_given(reply, task));
            }
            if !self.note_progress(&reply, &mut deadline, &mut operation) {
                continue;
            }
            // A receiver that is gone is noticed when the row is sent.
            let _ = self.replies.send(reply);
        }
    }

    /// What a worker is told. One that was launched may be in another folder, so that it needs an absolute path.
    fn request(&self, id: u64, task: &Task) -> Result<Request, Failure> {
        let mut candidate = task.candidate.clone();
        if self.options.launch.is_some() {
            let first = if let SpecSource::File(path) = &mut candidate.spec { Some(path) } else { None };
            let more = candidate.chain.as_mut().map(|chain| &mut chain.specs);
            for spec in first.into_iter().chain(more.into_iter().flatten()) {
                *spec = std::path::absolute(&spec).map_err(|error| {
                    let message = format!("{}: {error}", spec.display());
                    Failure::Outcome(Box::new(Outcome::LaunchFailed { message }), None)
                })?;
            }
        }
        Ok(Request { id, candidate })
    }

    /// A row with the paths as they were given, the commit of their folder, and the command that repeats it.
    fn as_given(&self, reply: Reply, task: &Task) -> Reply {
        let Reply::Row { id, row, last } = reply else { return reply };
        let row = if self.options.launch.is_some() { row.identified_as(&task.spec) } else { *row };
        let command = repeated::command(&task.candidate, &self.options, &row);
        Reply::Row { id, row: Box::new(Row { command, commit: task.commit.clone(), ..row }), last }
    }

    /// Returns whether it is news to anybody else.
    fn note_progress(
        &mut self,
        reply: &Reply,
        deadline: &mut Deadline,
        operation: &mut Option<String>,
    ) -> bool {
        match reply {
            Reply::Phase { phase, operation: begun, .. } => {
                let is_other = deadline.enter(*phase);
                return operation.replace(begun.clone()).as_ref() != Some(begun) || is_other;
            }
            Reply::Device { device, device_info, .. } => {
                self.device.clone_from(device);
                self.device_info.clone_from(device_info);
            }
            _ => {}
        }
        true
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
        let worker = WorkerProcess::start(&self.options, &self.given_device, number, &self.events);
        self.worker = Some(worker.map_err(launch_failed)?);
        let operation = "while the worker started".to_owned();
        let begin = Instant::now();
        loop {
            let left = self.options.start_timeout.saturating_sub(begin.elapsed());
            match self.inbox.wait(number, left.min(DRAIN_INTERVAL)) {
                Incoming::Reply(Reply::Hello { hello }) => return self.greet(&hello).map_err(launch_failed),
                Incoming::Reply(Reply::Ended { ended }) => {
                    return Err(self.worker_ended(ended, Some(operation)));
                }
                Incoming::Closed => return Err(self.worker_ended(Ended::default(), Some(operation))),
                Incoming::Stopped => return Err(Failure::Stopped),
                // A launcher may print anything before.
                Incoming::Reply(_) | Incoming::Cancelled => {}
                Incoming::TimedOut if self.inbox.queue.is_drained() => {
                    self.end_worker(WorkerProcess::kill);
                    return Err(Failure::NotNeeded);
                }
                Incoming::TimedOut if begin.elapsed() < self.options.start_timeout => {}
                Incoming::TimedOut => return Err(self.not_ready()),
            }
        }
    }

    fn not_ready(&mut self) -> Failure {
        self.end_worker(WorkerProcess::kill);
        let seconds = self.options.start_timeout.as_secs_f64();
        let reason = format!("the worker was not ready after {seconds} s");
        Failure::Outcome(Box::new(Outcome::Timeout { phase: Phase::Prepare }), Some(reason))
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
            worker.greet(hello);
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
        // Without a last line, its supervisor or its launcher was killed, or its machine is gone.
        let has_last_line = ended != Ended::default();
        if !has_last_line {
            groups.kill();
        }
        // The supervisor was told to end, and has ended the inner process.
        let is_lost = ended.code.is_none() && ended.signal.is_none();
        let ended = if is_lost { status.unwrap_or_default() } else { ended };
        let has_begun = operation.is_some();
        let outcome = Box::new(ending::outcome(&ended, output, operation));
        // Memory that an earlier candidate has corrupted may be noticed only now.
        let is_doubtful = matches!(*outcome, Outcome::Crashed { .. }) || !has_begun;
        match is_lost {
            true => Failure::Lost(outcome),
            false if is_doubtful && !is_fresh => Failure::Doubtful,
            false => Failure::Outcome(outcome, None),
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

fn launch_failed(message: String) -> Failure {
    Failure::Outcome(Box::new(Outcome::LaunchFailed { message }), None)
}
