//! In-order queues. Work runs on the queue's own thread, or on the caller's if the queue is idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::abi::{Progress as State, SubmitInfo};
use runtime_core::backend::{
    ArgRef, FillPattern, HostBytes, HostBytesMut, Launch, Level, Log, NoGraph, Queue, catch_panic,
};
use runtime_core::{Error, ErrorKind, Result};

use crate::arg_packing::{self, PackedArgs, Scratch};
use crate::call::Function;
use crate::convention::Convention;
use crate::memory::HostBuffer;
use crate::module::HostKernel;
use crate::platform;
use crate::pool::{Pool, THREAD_STACK_BYTES};
use crate::work_groups::{Extent, LaunchShape, STACK_BYTES};
use crate::worker::{self, Shared, Submission, Work};

/// Transfers up to this size run on the caller's thread if the queue is idle: handing them over takes as long.
const INLINE_COPY_BYTES: usize = 64 << 10;

/// Time slice of a wait for a call that the worker runs.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// An in-order queue of the host.
#[derive(Debug)]
pub struct HostQueue {
    shared: Arc<Shared>,
    name: String,
    log: Log,
    empty: Arc<Function>,
    started: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// For calls on the caller's thread, one at a time.
    inline: Mutex<(PackedArgs, Scratch)>,
}

impl HostQueue {
    /// Creates a queue; its thread, named `name`, starts when it is needed.
    pub(crate) fn new(name: String, epoch: Instant, log: Log, pool: Arc<Pool>) -> Self {
        Self {
            shared: Arc::new(Shared::new(epoch, pool)),
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
        // With a single processor, polling would delay the submitting thread.
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
        let mut submission = shared.work_queue.blank();
        submission.ticket = ticket;
        submission.previous_ticket = shared.last_submitted.load(Ordering::Relaxed);
        if let Err(error) = fill(&mut submission) {
            shared.work_queue.give_back(submission);
            return Err(error);
        }
        shared.last_submitted.store(ticket.max(submission.previous_ticket), Ordering::Relaxed);
        shared.work_queue.push(submission);
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
        if bytes <= INLINE_COPY_BYTES && shared.is_idle() {
            shared.last_submitted.store(ticket, Ordering::Relaxed);
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
    fn begin_if_idle(&self, ticket: u64) -> bool {
        let idle = self.shared.is_idle() && !self.shared.pool.is_pinned();
        if idle {
            self.shared.last_submitted.store(ticket, Ordering::Relaxed);
        }
        idle
    }

    #[inline]
    fn run_on_caller<'a>(
        &self,
        ticket: u64,
        function: &Arc<Function>,
        extent: Result<Extent>,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>> + Clone,
    ) -> Result<()> {
        if matches!(extent, Ok(Extent::Single))
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

    /// Runs a launch on the worker, because the stack of the caller's thread is too small, and waits for it.
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
            let mut submission = self.shared.work_queue.blank();
            // The ticket is already the last one submitted, and all earlier ones have ended.
            (submission.ticket, submission.previous_ticket) = (ticket, 0);
            if let Err(error) = submission.packed.fill(function.convention(), args) {
                self.shared.work_queue.give_back(submission);
                return Err(error);
            }
            submission.work = Work::Launch(Arc::clone(function), extent);
            self.shared.work_queue.push(submission);
            Ok(())
        });
        if let Err(error) = submitted {
            progress.fail(ticket, error.clone());
            return Err(error);
        }
        while !progress.wait(ticket, WAIT_SLICE) {}
        // The queue was idle, so it had not failed before this ticket.
        progress.failure().map_or(Ok(()), Err)
    }

    fn run_packed<'a>(
        &self,
        ticket: u64,
        function: &Arc<Function>,
        extent: Result<Extent>,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>>,
    ) -> Result<()> {
        // If a panic escaped, the ticket would never end.
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
        let extent = Extent::of(&kernel.0, &launch_shape(launch))?;
        self.submit_launch(submit.ticket, &kernel.0, extent, launch.args())
    }

    #[inline]
    fn try_begin_inline(&self, ticket: u64) -> bool {
        self.begin_if_idle(ticket)
    }

    #[inline]
    fn run_inline(&self, ticket: u64, kernel: &HostKernel, launch: &Launch<'_, HostBuffer>) -> Result<()> {
        let extent = Extent::of(&kernel.0, &launch_shape(launch));
        self.run_on_caller(ticket, &kernel.0, extent, launch.args())
    }

    fn run_inline_noop(&self, ticket: u64) -> Result<()> {
        self.run_on_caller(ticket, &self.empty, Ok(Extent::Single), std::iter::empty())
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
        pattern: FillPattern,
    ) -> Result<()> {
        let destination = destination.0.range("fill", destination.1, bytes)?;
        let bytes = usize::try_from(bytes).unwrap_or(0);
        self.submit_transfer(submit.ticket, Work::Fill { destination, bytes, pattern }, bytes)
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        self.submit_launch(submit.ticket, &self.empty, Extent::Single, std::iter::empty())
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        // Always on the worker, even if idle: the other timestamps are read there too.
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
fn launch_shape(launch: &Launch<'_, HostBuffer>) -> LaunchShape {
    LaunchShape {
        groups: launch.groups(),
        group_size: launch.group_size(),
        range: launch.range(),
        grain: launch.grain(),
    }
}

impl Drop for HostQueue {
    fn drop(&mut self) {
        self.shared.work_queue.close();
        let Some(worker) = self.worker.lock().take() else { return };
        if self.shared.progress.completed() >= self.shared.last_submitted.load(Ordering::Relaxed) {
            // The worker catches every panic, so the result carries no information.
            let _ = worker.join();
        } else {
            self.log.write(
                Level::Warning,
                "host",
                &format!(
                    "{}: closed with work in flight; its thread keeps running until the work ends",
                    self.name
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests;
