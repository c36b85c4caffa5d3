//! A worker as its parent sees it.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use runtime_core::backend::spawn_program;

use super::PoolOptions;
use super::event::Event;
use super::tail::Tail;
use crate::platform;
use crate::worker::protocol::{self, Ended, Hello, Reply, Request};

/// How long a supervisor may take to end after it was told to. It tries for 3 s to kill what is left.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a launcher may take to end after it was told to.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a process may take to end after it was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the rest of the output may take to arrive.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A running worker. Its supervisor, or its launcher, leads its process group.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    /// Distinguishes its events from those of its predecessors.
    pub(super) number: u64,
    /// How many candidates it was given.
    pub(super) candidates: u64,
    /// The inner process, which leads another group; known once it is ready. `None` behind a launcher: its number belongs to
    /// another machine, where it is another process than here.
    inner: Option<u32>,
    is_launched: bool,
    is_ready: bool,
    child: Child,
    /// Closing it tells the worker to end.
    requests: Option<ChildStdin>,
    output: Tail,
    output_end: Receiver<()>,
}

impl WorkerProcess {
    /// Starts a worker for a device, whose replies become events.
    ///
    /// # Errors
    /// Why it does not start.
    pub(super) fn start(
        options: &PoolOptions,
        device: &str,
        number: u64,
        events: &Sender<Event>,
    ) -> Result<Self, String> {
        let failed = |error: &dyn Display| format!("cannot start a worker: {error}");
        let words = options.command().map_err(|error| error.to_string())?;
        let program = words.first().map_or(options.program.as_os_str(), OsString::as_os_str);
        let mut command = Command::new(program);
        let variables = options.device_variables.get(device).into_iter().flatten();
        command.args(words.iter().skip(1)).envs(variables.cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = spawn_program(&mut command).map_err(|error| failed(&error))?;
        Self::watch(child, options, number, events).map_err(|error| failed(&error))
    }

    fn watch(
        mut child: Child,
        options: &PoolOptions,
        number: u64,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let output = Tail::default();
        let (ended, output_end) = mpsc::channel();
        let (replies, errors, tail) = (child.stdout.take(), child.stderr.take(), output.clone());
        let requests = child.stdin.take();
        let (is_launched, candidates) = (options.launch.is_some(), 0);
        let (inner, is_ready) = (None, false);
        let worker =
            Self { number, candidates, inner, is_launched, is_ready, child, requests, output, output_end };
        let events = events.clone();
        let reader = std::thread::Builder::new().name("worker replies".to_owned());
        reader.spawn(move || read_replies(replies, number, &events))?;
        let reader = std::thread::Builder::new().name("worker output".to_owned());
        reader.spawn(move || {
            errors.into_iter().for_each(|errors| tail.read(errors));
            // The worker may have been given up.
            let _ = ended.send(());
        })?;
        Ok(worker)
    }

    /// Notes that it is ready.
    pub(super) fn greet(&mut self, hello: &Hello) {
        self.is_ready = true;
        self.inner = (!self.is_launched).then_some(hello.pid);
    }

    /// Its process groups.
    pub(super) fn groups(&self) -> ProcessGroups {
        ProcessGroups { leader: self.child.id(), inner: self.inner }
    }

    /// Gives the worker a candidate.
    pub(super) fn send(&mut self, request: &Request) -> io::Result<()> {
        self.candidates += 1;
        self.output.clear();
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        protocol::write_line(requests, request)
    }

    /// Kills the worker and all that descends from it; the error is what cannot be killed.
    pub(super) fn kill(mut self) -> Result<(), String> {
        match self.is_launched && self.is_ready {
            // A signal does not reach another machine. Its supervisor kills what is left, and says what it could not kill.
            true => drop(self.requests.take()),
            false => self.terminate(),
        }
        self.wait(END_TIMEOUT).map(|_| ())
    }

    /// Tells the leader of its process group to end: a supervisor is alone in it, a launcher may have children.
    fn terminate(&self) {
        let leader = self.child.id().cast_signed();
        platform::kill(if self.is_launched { -leader } else { leader }, libc::SIGTERM);
    }

    /// Waits for a worker that has ended: how, and the end of its output.
    pub(super) fn finish(mut self) -> (Option<Ended>, String, Result<(), String>) {
        let status = self.wait(END_TIMEOUT);
        // Fails if a process that could not be killed holds the pipe; what was read until then is enough.
        let _ = self.output_end.recv_timeout(OUTPUT_TIMEOUT);
        let ended = status.as_ref().ok().map(|status| Ended {
            code: status.code(),
            signal: status.signal(),
            left: Vec::new(),
        });
        (ended, self.output.text(), status.map(|_| ()))
    }

    /// Lets an idle worker end.
    pub(super) fn close(mut self) -> Result<(), String> {
        drop(self.requests.take());
        self.wait(END_TIMEOUT).map(|_| ())
    }

    /// Waits until the supervisor has ended, and kills it if it does not in time.
    fn wait(&mut self, timeout: Duration) -> Result<ExitStatus, String> {
        if let Some(status) = self.poll(timeout) {
            return Ok(status);
        }
        if self.is_launched {
            self.terminate();
            if let Some(status) = self.poll(LAUNCHER_TIMEOUT) {
                return Ok(status);
            }
        }
        self.groups().kill();
        self.poll(KILL_TIMEOUT).ok_or_else(|| format!("process {} cannot be killed", self.child.id()))
    }

    fn poll(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begin.elapsed() < timeout => std::thread::sleep(Duration::from_millis(1)),
                Ok(status) => return status,
                // Somebody else has waited for it.
                Err(_) => return Some(ExitStatus::default()),
            }
        }
    }
}

/// The process groups of a worker on this machine: that of its supervisor or launcher, and that of its inner process once it
/// is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessGroups {
    leader: u32,
    inner: Option<u32>,
}

impl ProcessGroups {
    /// Kills what is left of them. A supervisor that does its work leaves nothing.
    pub(super) fn kill(self) {
        let groups = [Some(self.leader), self.inner].into_iter().flatten();
        // The groups 0 and 1 stand for this process's own and for all processes.
        for group in groups.filter_map(|group| i32::try_from(group).ok()).filter(|group| *group > 1) {
            platform::kill(-group, libc::SIGKILL);
        }
    }
}

/// Passes replies on until the last process that could write them has ended.
fn read_replies(replies: Option<ChildStdout>, worker: u64, events: &Sender<Event>) {
    let mut input = replies.map(BufReader::new);
    while let Some(input) = &mut input
        && let Some(line) = protocol::read_reply(input)
    {
        // Any other line comes from a launcher, or from a stray process that holds the pipe.
        let Ok(reply) = serde_json::from_slice::<Reply>(&line) else { continue };
        if events.send(Event::Reply { worker, reply: Box::new(reply) }).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Closed { worker });
}
