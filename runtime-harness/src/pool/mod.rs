//! Worker processes, one or more per device, that evaluate candidates.

mod deadline;
mod device_thread;
mod ending;
mod event;
mod inbox;
mod launch_template;
mod options;
mod repeated;
mod stopper;
mod tail;
mod task_queue;
mod worker_process;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use runtime_core::{Error, ErrorKind, Result};

use crate::candidate::Candidate;
use crate::commit::Commits;
use crate::spec::{Spec, SpecSource};
use crate::worker::protocol::{Progress, Reply};
use device_thread::DeviceThread;
use stopper::Running;
use task_queue::{Task, TaskQueue, Ticket};

pub use launch_template::LaunchTemplate;
pub use options::PoolOptions;
pub use stopper::Stopper;

/// The most devices that have workers. More than any machine has; names that are wrong count, too.
const MAX_DEVICES: usize = 64;

/// Evaluates candidates in worker processes: one per device, which is replaced after a crash, a timeout or a device error.
///
/// Candidates of one device are evaluated in the order in which they were submitted, as many at once as the device has
/// [workers](PoolOptions::workers); devices work at the same time. A candidate whose worker dies from outside (its machine
/// is lost, a scheduler ends it) is evaluated once more, in another worker.
///
/// Replies come through a channel: [`Reply::Device`] and [`Reply::Phase`] while a candidate is evaluated, then
/// [`Reply::Row`], or [`Reply::Error`] for a device that does not exist. Every candidate gets its row, whatever it does.
///
/// Dropping a pool ends its workers at once. It leaves no process behind, except one that the system cannot kill.
///
/// ```no_run
/// use std::sync::mpsc;
///
/// use runtime_harness::worker::protocol::Reply;
/// use runtime_harness::{Candidate, Pool, PoolOptions};
///
/// # fn main() -> runtime_core::Result<()> {
/// let (sender, replies) = mpsc::channel();
/// let mut pool = Pool::new(PoolOptions::new("/usr/bin/runtime"), sender);
/// for (id, spec) in (0..).zip(["a.toml", "b.toml"]) {
///     pool.submit(id, Candidate::new(spec, "cuda:0"))?;
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
    stopper: Stopper,
    commits: Commits,
}

#[derive(Debug)]
struct Device {
    queue: Arc<TaskQueue>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Makes a pool without workers, which are started for the first candidate of their device.
    #[must_use]
    pub fn new(options: PoolOptions, replies: Sender<Reply>) -> Self {
        Self {
            options: Arc::new(options),
            replies,
            outstanding: Arc::default(),
            devices: BTreeMap::new(),
            stopper: Stopper::default(),
            commits: Commits::default(),
        }
    }

    /// Queues a candidate. Its replies have the number `id`.
    ///
    /// # Errors
    /// Those of [`Spec::load`](crate::Spec::load); `OutOfResources` if no thread can be started.
    pub fn submit(&mut self, id: u64, candidate: Candidate) -> Result<()> {
        let spec = candidate.load()?;
        self.submit_loaded((0, id), candidate, spec)
    }

    /// The same of a client, with whom others take turns, and whose spec is loaded.
    pub(crate) fn submit_loaded(
        &mut self,
        (client, id): (u64, u64),
        candidate: Candidate,
        spec: Spec,
    ) -> Result<()> {
        let queue = Arc::clone(&self.device(&candidate.device)?.queue);
        let file = matches!(candidate.spec, SpecSource::File(_)).then_some(&spec.path);
        let commit = file.and_then(|path| self.commits.of(path));
        self.outstanding.fetch_add(1, Ordering::SeqCst);
        let ticket = Arc::new(Ticket::new(client, id));
        queue.push(Task { ticket, candidate, spec, commit, lost_workers: 0 });
        Ok(())
    }

    /// Cancels the candidates with the number `id`: the last reply is [`Reply::Cancelled`], or the row if that is made already. Returns
    /// `false` if there is none without a last reply.
    pub fn cancel(&self, id: u64) -> bool {
        self.cancel_all(|ticket| ticket.id == id)
    }

    /// Cancels all candidates of a client.
    pub(crate) fn cancel_client(&self, client: u64) {
        self.cancel_all(|ticket| ticket.client == client);
    }

    /// Cancels all candidates with these numbers.
    pub(crate) fn cancel_numbers(&self, numbers: &BTreeSet<u64>) -> bool {
        !numbers.is_empty() && self.cancel_all(|ticket| numbers.contains(&ticket.id))
    }

    fn cancel_all(&self, is_meant: impl Fn(&Ticket) -> bool) -> bool {
        let mut has_any = false;
        for device in self.devices.values() {
            let (removed, is_running) = device.queue.cancel(&is_meant);
            has_any |= is_running || !removed.is_empty();
            for task in removed {
                // A receiver that is gone needs no reply.
                let _ =
                    self.replies.send(Reply::Cancelled { id: task.ticket.id, cancelled: Progress::Pending });
                self.outstanding.fetch_sub(1, Ordering::SeqCst);
            }
        }
        has_any
    }

    /// Number of candidates that have no last reply yet.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::SeqCst)
    }

    /// Ends the workers from another thread, as a signal handler's.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    fn device(&mut self, name: &str) -> Result<&Device> {
        if !self.devices.contains_key(name) {
            self.make_room()?;
            let device = self.start(name)?;
            self.devices.insert(name.to_owned(), device);
        }
        self.devices.get(name).ok_or_else(|| Error::new(ErrorKind::Internal, "a device was not added"))
    }

    /// Lets the workers of a device end that has nothing to do, if there are many.
    fn make_room(&mut self) -> Result<()> {
        if self.devices.len() < MAX_DEVICES {
            return Ok(());
        }
        let idle =
            self.devices.iter().find(|(_, device)| device.queue.is_idle()).map(|(name, _)| name.clone());
        match idle.and_then(|name| self.devices.remove(&name)) {
            Some(device) => {
                device.queue.finish();
                Ok(())
            }
            None => Err(Error::new(
                ErrorKind::OutOfResources,
                format!(
                    "candidates of {MAX_DEVICES} devices are evaluated, which is the most; wait for some of them"
                ),
            )),
        }
    }

    /// Starts the threads of a device, one per worker.
    fn start(&self, name: &str) -> Result<Device> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..self.options.workers.max(1)).map(|_| mpsc::channel()).unzip();
        let queue = Arc::new(TaskQueue::new(senders.clone()));
        self.stopper.add(&queue);
        let mut threads = Vec::new();
        for events in senders.into_iter().zip(receivers) {
            let replies = (self.replies.clone(), Arc::clone(&self.outstanding));
            let thread =
                DeviceThread::new(name, Arc::clone(&self.options), Arc::clone(&queue), events, replies);
            let running = Running::new(&self.stopper);
            let spawned = std::thread::Builder::new().name(format!("pool {name}")).spawn(move || {
                let _running = running;
                thread.run();
            });
            threads.push(spawned.map_err(|error| {
                // Those that were started have nothing to do.
                queue.stop();
                Error::new(ErrorKind::OutOfResources, format!("cannot start a thread: {error}"))
            })?);
        }
        Ok(Device { queue, threads })
    }

    /// Waits until every candidate was evaluated, and ends the workers.
    pub fn finish(mut self) {
        self.end(TaskQueue::finish);
    }

    fn end(&mut self, how: impl Fn(&TaskQueue)) {
        let devices = std::mem::take(&mut self.devices);
        for device in devices.values() {
            how(&device.queue);
        }
        for thread in devices.into_values().flat_map(|device| device.threads) {
            let _ = thread.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end(TaskQueue::stop);
    }
}
