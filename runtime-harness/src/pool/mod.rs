//! Worker processes, one per device, that evaluate candidates.

mod deadline;
mod device_thread;
mod ending;
mod inbox;
mod tail;
mod worker_process;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

use crate::candidate::Candidate;
use crate::spec::Spec;
use crate::worker::protocol::Reply;
use device_thread::DeviceThread;
use inbox::{Event, Task};

/// Options of a [`Pool`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// The program that calls [`supervise`](crate::worker::supervise): the command `runtime`.
    pub program: PathBuf,
    /// Its arguments, such as `worker`.
    pub arguments: Vec<OsString>,
    /// How long a candidate may take to be checked and timed, beyond its timing budget.
    pub timeout: Duration,
    /// How long a candidate may take to be prepared and compiled.
    pub compile_timeout: Duration,
    /// How long a worker may take to start.
    pub start_timeout: Duration,
}

impl PoolOptions {
    /// Workers of the command `runtime` at `program`: 60 s to run, 300 s to compile, 60 s to start.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: vec!["worker".into()],
            timeout: Duration::from_secs(60),
            compile_timeout: Duration::from_secs(300),
            start_timeout: Duration::from_secs(60),
        }
    }
}

/// Evaluates candidates in worker processes: one per device, which is replaced after a crash, a timeout or a device error.
///
/// Candidates of one device are evaluated in the order in which they were submitted; devices work at the same time.
/// Replies come through a channel: [`Reply::Device`] and [`Reply::Phase`] while a candidate is evaluated, then
/// [`Reply::Row`], or [`Reply::Error`] for a device that does not exist. Every candidate gets its row, whatever it does.
///
/// Dropping a pool ends its workers at once. It leaves no process behind, except one that the system cannot kill.
///
/// ```no_run
/// use std::sync::mpsc;
///
/// use runtime_core::Options;
/// use runtime_harness::worker::protocol::Reply;
/// use runtime_harness::{Candidate, Overrides, Pool, PoolOptions, Settings};
///
/// # fn main() -> runtime_core::Result<()> {
/// let (sender, replies) = mpsc::channel();
/// let mut pool = Pool::new(PoolOptions::new("/usr/bin/runtime"), sender);
/// for (id, spec) in (0..).zip(["a.toml", "b.toml"]) {
///     pool.submit(id, Candidate {
///         spec: spec.into(),
///         device: "cuda:0".to_owned(),
///         overrides: Overrides::default(),
///         settings: Settings::default(),
///         options: Options::new(),
///     })?;
/// }
/// pool.finish();
/// for reply in replies {
///     if let Reply::Row { id, row, .. } = reply {
///         println!("{id}: {} {:?}", row.kernel.name, row.outcome);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pool {
    options: Arc<PoolOptions>,
    replies: Sender<Reply>,
    outstanding: Arc<AtomicUsize>,
    devices: BTreeMap<String, Device>,
}

#[derive(Debug)]
struct Device {
    events: Sender<Event>,
    thread: JoinHandle<()>,
}

impl Pool {
    /// Makes a pool without workers, which are started for the first candidate of their device.
    #[must_use]
    pub fn new(options: PoolOptions, replies: Sender<Reply>) -> Self {
        Self { options: Arc::new(options), replies, outstanding: Arc::default(), devices: BTreeMap::new() }
    }

    /// Queues a candidate. Its replies have the number `id`.
    ///
    /// # Errors
    /// Those of [`Spec::load`]; `OutOfResources` if no thread can be started.
    pub fn submit(&mut self, id: u64, candidate: Candidate) -> Result<()> {
        let spec = Spec::load(&candidate.spec, &candidate.overrides)?;
        let events = self.device(&candidate.device)?.events.clone();
        self.outstanding.fetch_add(1, Ordering::SeqCst);
        events.send(Event::Task(Box::new(Task { id, candidate, spec }))).map_err(|_| {
            self.outstanding.fetch_sub(1, Ordering::SeqCst);
            Error::new(ErrorKind::Internal, "the thread of a device has ended")
        })
    }

    /// Number of candidates that have no last reply yet.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::SeqCst)
    }

    fn device(&mut self, name: &str) -> Result<&Device> {
        if !self.devices.contains_key(name) {
            let (events, received) = mpsc::channel();
            let replies = (self.replies.clone(), Arc::clone(&self.outstanding));
            let thread =
                DeviceThread::new(name, Arc::clone(&self.options), (events.clone(), received), replies);
            let spawned =
                std::thread::Builder::new().name(format!("pool {name}")).spawn(move || thread.run());
            let thread = spawned.map_err(|error| {
                Error::new(ErrorKind::OutOfResources, format!("cannot start a thread: {error}"))
            })?;
            self.devices.insert(name.to_owned(), Device { events, thread });
        }
        self.devices.get(name).ok_or_else(|| Error::new(ErrorKind::Internal, "a device was not added"))
    }

    /// Waits until every candidate was evaluated, and ends the workers.
    pub fn finish(mut self) {
        self.end(|| Event::Finish);
    }

    fn end(&mut self, event: impl Fn() -> Event) {
        let devices = std::mem::take(&mut self.devices);
        for device in devices.values() {
            // A thread that has ended has no worker.
            let _ = device.events.send(event());
        }
        for device in devices.into_values() {
            let _ = device.thread.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end(|| Event::Stop);
    }
}
