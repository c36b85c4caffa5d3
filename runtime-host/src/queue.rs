//! Queues: in order, on their own thread, or on the caller's when there is nothing to wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::abi::{Progress as State, SubmitInfo};
use runtime_core::backend::{
    ArgRef, HostBytes, HostBytesMut, Launch, Level, Log, NoGraph, Queue, catch_panic,
};
use runtime_core::{Error, ErrorKind, Result};

use crate::arg_packing::{self, Packed, Scratch};
use crate::call::Function;
use crate::convention::Convention;
use crate::memory::HostBuffer;
use crate::module::HostKernel;
use crate::platform;
use crate::pool::Pool;
use crate::progress::Progress;
use crate::timer::Timestamps;
use crate::work_groups::{Asked, Extent, STACK_BYTES, THREAD_STACK_BYTES};
use crate::worker::{self, Submission, Work, WorkQueue};

/// Transfers up to this size are done at once on an idle queue: handing them over takes as long.
const AT_ONCE_BYTES: usize = 64 << 10;

/// How long a call that its worker runs is waited for at a time.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// What a queue and its worker share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) progress: Progress,
    pub(crate) inbox: WorkQueue,
    pub(crate) timestamps: Timestamps,
    /// For parallel ranges; says where the worker runs.
    pub(crate) pool: Arc<Pool>,
    /// The newest ticket that was taken. Written by submissions only, which never overlap.
    newest: AtomicU64,
    /// Submitted waits for other queues that are not over.
    waits: AtomicU64,
}

impl Shared {
    /// Nothing is under way, and nothing has failed: the next ticket may run on the caller's thread.
    #[inline]
    fn is_idle(&self) -> bool {
        self.progress.completed() == self.newest.load(Ordering::Relaxed)
            && self.waits.load(Ordering::Acquire) == 0
            && self.progress.first_failed() == 0
    }

    /// One wait for another queue is over.
    pub(crate) fn waited(&self) {
        self.waits.fetch_sub(1, Ordering::Release);
    }
}

/// An in-order queue of the host.
#[derive(Debug)]
pub struct HostQueue {
    shared: Arc<Shared>,
    name: String,
    log: Log,
    empty: Arc<Function>,
    started: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// For calls on the caller's thread, of which there is one at a time.
    inline: Mutex<(Packed, Scratch)>,
}

impl HostQueue {
    /// Makes a queue; its thread, called `name`, starts when it is needed.
    pub(crate) fn new(name: String, epoch: Instant, log: Log, pool: Arc<Pool>) -> Self {
        let shared = Shared {
            progress: Progress::default(),
            inbox: WorkQueue::default(),
            timestamps: Timestamps::new(epoch),
            pool,
            newest: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
            name,
            log,
            empty: Arc::new(Function::empty()),
            started: AtomicBool::new(false),
            worker: Mutex::new(None),
            inline: Mutex::default(),
        }
    }

    fn start(&self) -> Result<()> {
        if self.started.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut worker = self.worker.lock();
        let shared = Arc::clone(&self.shared);
        // Looking for work would keep the only processor from whoever submits it.
        let spin = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        let thread = std::thread::Builder::new().name(self.name.clone()).stack_size(THREAD_STACK_BYTES);
        let handle = thread.spawn(move || worker::run(&shared, spin)).map_err(|error| {
            Error::new(
                ErrorKind::OutOfResources,
                format!("cannot start the queue's thread: {error}; close other queues"),
            )
        })?;
        *worker = Some(handle);
        self.started.store(true, Ordering::Release);
        Ok(())
    }

    fn submit(&self, ticket: u64, fill: impl FnOnce(&mut Submission) -> Result<()>) -> Result<()> {
        self.start()?;
        let shared = &*self.shared;
        let mut submission = shared.inbox.blank();
        submission.ticket = ticket;
        submission.before = shared.newest.load(Ordering::Relaxed);
        if let Err(error) = fill(&mut submission) {
            shared.inbox.give_back(submission);
            return Err(error);
        }
        shared.newest.store(ticket.max(submission.before), Ordering::Relaxed);
        shared.inbox.push(submission);
        Ok(())
    }

    pub(crate) fn submit_launch<'a>(
        &self,
        ticket: u64,
        function: &Arc<Function>,
        extent: Extent,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>>,
    ) -> Result<()> {
        self.submit(ticket, |submission| {
            submission.packed.fill(function.convention(), args)?;
            submission.work = Work::Launch(Arc::clone(function), extent);
            Ok(())
        })
    }

    fn submit_transfer(&self, ticket: u64, work: Work, bytes: usize) -> Result<()> {
        let shared = &*self.shared;
        if bytes <= AT_ONCE_BYTES && shared.is_idle() {
            shared.newest.store(ticket, Ordering::Relaxed);
            work.transfer();
            shared.progress.end(ticket);
            return Ok(());
        }
        self.submit(ticket, |submission| {
            submission.work = work;
            Ok(())
        })
    }

    #[inline]
    fn take(&self, ticket: u64) -> bool {
        let idle = self.shared.is_idle() && !self.shared.pool.is_pinned();
        if idle {
            self.shared.newest.store(ticket, Ordering::Relaxed);
        }
        idle
    }

    #[inline]
    fn run_taken<'a>(
        &self,
        ticket: u64,
        function: &Arc<Function>,
        extent: Result<Extent>,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>> + Clone,
    ) -> Result<()> {
        if matches!(extent, Ok(Extent::Once))
            && function.convention() == Convention::Plain
            && let Some(registers) = arg_packing::registers(args.clone())
        {
            function.call_registers(&registers);
            self.shared.progress.end(ticket);
            return Ok(());
        }
        if function.convention() == Convention::Groups && !platform::has_stack(STACK_BYTES) {
            return self.run_on_worker(ticket, function, extent, args);
        }
        self.run_packed(ticket, function, extent, args)
    }

    /// Has the worker do what the caller's thread has too small a stack for, and waits for it.
    #[cold]
    fn run_on_worker<'a>(
        &self,
        ticket: u64,
        function: &Arc<Function>,
        extent: Result<Extent>,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>>,
    ) -> Result<()> {
        let progress = &self.shared.progress;
        let submitted = extent.and_then(|extent| {
            self.start()?;
            let mut submission = self.shared.inbox.blank();
            // The ticket is the newest already, and those before it have ended.
            (submission.ticket, submission.before) = (ticket, 0);
            if let Err(error) = submission.packed.fill(function.convention(), args) {
                self.shared.inbox.give_back(submission);
                return Err(error);
            }
            submission.work = Work::Launch(Arc::clone(function), extent);
            self.shared.inbox.push(submission);
            Ok(())
        });
        if let Err(error) = submitted {
            progress.fail(ticket, error.clone());
            return Err(error);
        }
        while !progress.wait(ticket, WAIT_SLICE) {}
        // A queue that was idle had not failed: what failed is this ticket.
        progress.failure().map_or(Ok(()), Err)
    }

    fn run_packed<'a>(
        &self,
        ticket: u64,
        function: &Arc<Function>,
        extent: Result<Extent>,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>>,
    ) -> Result<()> {
        // A panic that left here would leave a ticket that never ends.
        let outcome = catch_panic("run", || {
            let extent = extent?;
            let (packed, scratch) = &mut *self.inline.lock();
            packed.fill(function.convention(), args)?;
            packed.invoke(function, &extent, scratch, &self.shared.pool)
        })
        .flatten();
        match &outcome {
            Ok(()) => self.shared.progress.end(ticket),
            Err(error) => self.shared.progress.fail(ticket, error.clone()),
        }
        outcome
    }
}

impl Queue for HostQueue {
    type Buffer = HostBuffer;
    type Kernel = HostKernel;
    type Graph = NoGraph<HostBuffer>;

    fn launch(&self, submit: SubmitInfo, kernel: &HostKernel, launch: &Launch<'_, HostBuffer>) -> Result<()> {
        let extent = Extent::of(&kernel.0, &asked(launch))?;
        self.submit_launch(submit.ticket, &kernel.0, extent, launch.args())
    }

    #[inline]
    fn try_begin_inline(&self, ticket: u64) -> bool {
        self.take(ticket)
    }

    #[inline]
    fn run_inline(&self, ticket: u64, kernel: &HostKernel, launch: &Launch<'_, HostBuffer>) -> Result<()> {
        let extent = Extent::of(&kernel.0, &asked(launch));
        self.run_taken(ticket, &kernel.0, extent, launch.args())
    }

    fn run_inline_noop(&self, ticket: u64) -> Result<()> {
        self.run_taken(ticket, &self.empty, Ok(Extent::Once), std::iter::empty())
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &HostBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        let bytes = source.len();
        let destination = destination.range("write", offset, bytes as u64)?;
        self.submit_transfer(submit.ticket, Work::Copy { destination, source: source.as_ptr(), bytes }, bytes)
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &HostBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        let bytes = destination.len();
        let source = source.range("read", offset, bytes as u64)?;
        self.submit_transfer(
            submit.ticket,
            Work::Copy { destination: destination.as_ptr(), source, bytes },
            bytes,
        )
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&HostBuffer, u64),
        source: (&HostBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let source = source.0.range("copy: source", source.1, bytes)?;
        let destination = destination.0.range("copy: destination", destination.1, bytes)?;
        let bytes = usize::try_from(bytes).unwrap_or(0);
        self.submit_transfer(submit.ticket, Work::Copy { destination, source, bytes }, bytes)
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&HostBuffer, u64),
        bytes: u64,
        pattern: &[u8],
    ) -> Result<()> {
        let unit = pattern.len();
        if !matches!(unit, 1 | 2 | 4 | 8 | 16) || !bytes.is_multiple_of(unit as u64) {
            return Err(Error::invalid(format!(
                "fill: {bytes} bytes with a pattern of {unit}; 1, 2, 4, 8 or 16 that divide it"
            )));
        }
        let destination = destination.0.range("fill", destination.1, bytes)?;
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let mut padded = [0; 16];
        padded[..unit].copy_from_slice(pattern);
        self.submit_transfer(submit.ticket, Work::Fill { destination, bytes, pattern: padded, unit }, bytes)
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        self.submit_launch(submit.ticket, &self.empty, Extent::Once, std::iter::empty())
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        // Not at once on an idle queue: what it would be compared with is read by the worker.
        self.submit(submit.ticket, |submission| {
            submission.work = Work::Timestamp;
            Ok(())
        })
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.shared.timestamps.take(ticket)
    }

    fn poll(&self) -> Result<State> {
        Ok(self.shared.progress.state())
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.shared.progress.wait(ticket, slice);
        Ok(())
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if other.shared.progress.completed() >= ticket || Arc::ptr_eq(&self.shared, &other.shared) {
            return Ok(());
        }
        self.submit(0, |submission| {
            submission.work = Work::WaitFor { other: Arc::clone(&other.shared), ticket };
            self.shared.waits.fetch_add(1, Ordering::Release);
            Ok(())
        })
    }

    fn failure(&self) -> Option<Error> {
        self.shared.progress.failure()
    }
}

#[inline]
fn asked(launch: &Launch<'_, HostBuffer>) -> Asked {
    Asked {
        groups: launch.groups(),
        group_size: launch.group_size(),
        range: launch.range(),
        grain: launch.grain(),
    }
}

impl Drop for HostQueue {
    fn drop(&mut self) {
        self.shared.inbox.close();
        let Some(worker) = self.worker.lock().take() else { return };
        if self.shared.progress.completed() >= self.shared.newest.load(Ordering::Relaxed) {
            // The worker has caught every panic; there is nothing to learn from how it ended.
            let _ = worker.join();
        } else {
            self.log.write(
                Level::Warning,
                "host",
                &format!("{}: closed with work in flight; its thread goes on", self.name),
            );
        }
    }
}

#[cfg(test)]
mod tests;
