//! What the methods of a [`Queue`] return.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

mod cast;
pub(crate) mod collect;
pub(crate) mod copy;
mod default_queue;
mod dependencies;
pub(crate) mod device_copy;
pub(crate) mod fusion_list;
pub(crate) mod hold;
pub(crate) mod host_task;
mod native;
pub(crate) mod recording;
pub(crate) mod submit;
mod timed;
pub(crate) mod transfer;

pub use crate::model::native::{NativeHandle, NativeHandles};
pub use hold::HeldQueue;
pub use host_task::HostTaskOutput;
pub use transfer::Download;

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::code::arg::ArgValue;
use crate::code::argument_tuples::Arguments;
use crate::code::raw_launch::RawLaunch;
use crate::model::lowering::LoweredKernel;
use crate::queue::cast::CastKernels;
use crate::queue::collect::Collector;
use crate::queue::recording::Record;
use crate::queue::submit::{AccessSet, SubmitFlags, Submitted, call_launch};
use crate::timeline::Timeline;
use crate::timeline::deferred_free::Resource;
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::timeline::virtual_queue::Cause;
use crate::{Arg, DType, Error, Kernel, LaunchConfig, Placement, QueueOptions, Result, Tensor, abi};

/// An in-order stream of work on one device. Queues run concurrently; core orders work that shares a tensor.
///
/// Opened by [`CommonRuntime::open_queue`](crate::CommonRuntime::open_queue); any number of threads may submit to
/// it. Failure is permanent: after a failed submission all later ones fail with its error; open another queue to
/// go on. Dropping a queue waits for nothing and cancels nothing.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([2], &[1.0f32, 2.0])?;
/// let queue = device.queue()?;
/// let args = (read_write(&x), 2.0f32);
/// queue.launch(&scale, (1, 1), args)?; // returns at once; nobody keeps the event
/// let second = queue.launch(&scale, (1, 1), args)?; // runs after the first
/// second.wait()?;
/// assert_eq!((queue.submitted(), queue.completed()?), (2, 2));
///
/// queue.launch(&scale, (1, 1), (2.0f32,)).unwrap_err(); // refused: an argument is missing
/// assert_eq!(queue.submitted(), 2); // so it took no ticket,
/// queue.call(&scale, (1, 1), args)?; // and the queue goes on: launch and wait in one
/// assert_eq!(x.to_vec::<f32>()?, [8.0, 16.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) device: Arc<OpenDevice>,
    inline: bool,
    /// It is one of the device's transfer queues, which goes back to the device.
    is_lent: bool,
    /// Where work goes that is not submitted: of a virtual queue, or of one that records.
    detour: Option<Box<Detour>>,
    /// What fusers of the queue keep for later ones.
    pub(crate) fusion_cache: OnceLock<Arc<dyn Any + Send + Sync>>,
    casts: CastKernels,
}

/// Where work goes that is not submitted.
#[derive(Debug)]
enum Detour {
    /// Launches are listed, to be fused.
    List(Collector),
    /// Everything is recorded.
    Record(Arc<dyn Record>),
}

impl Queue {
    fn new(timeline: Arc<Timeline>, device: Arc<OpenDevice>) -> Self {
        let (fusion_cache, casts) = (OnceLock::new(), CastKernels::default());
        Self { timeline, device, inline: false, is_lent: false, detour: None, fusion_cache, casts }
    }

    pub(crate) fn open(device: &Arc<OpenDevice>, options: &QueueOptions) -> Result<Self> {
        let timeline = device.open_timeline(options)?;
        let inline = device.info.capabilities.has(abi::CAP_INLINE) && device.serial.is_none();
        let mut queue = Self::new(timeline, device.clone());
        queue.inline = inline;
        Ok(queue)
    }

    /// Lends one of the device's transfer queues, for one blocking copy.
    fn lend(device: &Arc<OpenDevice>) -> Result<Self> {
        let timeline = device.take_transfer_queue()?;
        let mut queue = Self::new(timeline, device.clone());
        queue.is_lent = true;
        Ok(queue)
    }

    /// Submits a kernel and returns at once.
    ///
    /// # Errors
    /// `InvalidArgument` that names the argument, dtype, device or limit; the failure of the queue, or of work that
    /// wrote an argument. A rejected launch takes no ticket and has no effect.
    #[inline]
    pub fn launch<'a>(
        &self,
        kernel: &Kernel,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<'a>,
    ) -> Result<Event> {
        let config = config.into();
        args.with(Some(kernel), |args| self.launch_as(kernel, &config, args, true))
    }

    /// Runs a kernel and waits for it. On the host, an idle queue runs it on this thread.
    ///
    /// # Errors
    /// As [`Queue::launch`]; the kernel's failure.
    #[inline]
    pub fn call<'a>(
        &self,
        kernel: &Kernel,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<'a>,
    ) -> Result<()> {
        let config = config.into();
        args.with(Some(kernel), |args| self.call_as(kernel, &config, args))
    }

    #[inline]
    pub(crate) fn call_as(&self, kernel: &Kernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<()> {
        self.check_not_recording("call")?;
        let flags = SubmitFlags { inline: self.inline, watched: true, ..SubmitFlags::default() };
        match self.start(kernel, config, args, flags, true)? {
            Submitted::Async(ticket) => Event::new(&self.timeline, ticket).wait(),
            Submitted::Inline(_) => Ok(()),
        }
    }

    /// Submits a kernel without tracking its tensors, if measurements show that tracking costs too much.
    ///
    /// # Safety
    /// The caller orders the launch with all other uses of the tensors, and keeps them alive until it has ended.
    ///
    /// # Errors
    /// As [`Queue::launch`].
    pub unsafe fn launch_untracked<'a>(
        &self,
        kernel: &Kernel,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<'a>,
    ) -> Result<Event> {
        let config = config.into();
        args.with(Some(kernel), |args| self.launch_as(kernel, &config, args, false))
    }

    #[inline]
    pub(crate) fn launch_as(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
        tracked: bool,
    ) -> Result<Event> {
        if let Some(record) = self.recorder() {
            return record.launch(kernel, config, args);
        }
        let flags = SubmitFlags { watched: true, ..SubmitFlags::default() };
        let submitted = self.start(kernel, config, args, flags, tracked)?;
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }

    /// As [`Queue::launch_as`], tracked, and run after `ticket` of this queue.
    pub(crate) fn launch_after(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
        ticket: u64,
    ) -> Result<Event> {
        let flags = SubmitFlags { watched: true, after: ticket, ..SubmitFlags::default() };
        let submitted = self.start(kernel, config, args, flags, true)?;
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }

    #[inline]
    fn start(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
        flags: SubmitFlags,
        tracked: bool,
    ) -> Result<Submitted> {
        kernel.check_launch(&self.device, config, args).map_err(|error| self.annotate(error, "launch"))?;
        match kernel.reporting() {
            None => self.start_checked(kernel, config, args, flags, tracked),
            Some(lowered) => self.start_reporting((kernel, lowered), config, args),
        }
    }

    /// Runs a kernel with `assert_proofs` to its end, and fails the launch if it reports a violation.
    #[cold]
    fn start_reporting(
        &self,
        (kernel, lowered): (&Kernel, &LoweredKernel),
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<Submitted> {
        kernel.check_args(&self.device, args).map_err(|error| self.annotate(error, "launch"))?;
        if let Some(real) = self.real_queue() {
            self.cancel_list(Cause::Submission);
            let submitted = real.start_reporting((kernel, lowered), config, args)?;
            return Ok(Submitted::Async(self.timeline.adopt(submitted.ticket())));
        }
        let report = self.allocate(DType::U32, &[1], &Placement::default())?;
        self.fill(&report, &[0])?;
        let args: SmallVec<[Arg<'_>; 16]> =
            std::iter::once(Arg::read_write(&report)).chain(args.iter().copied()).collect();
        let flags = SubmitFlags { watched: true, ..SubmitFlags::default() };
        let submitted = self.start_checked(kernel, config, &args, flags, true)?;
        if let Submitted::Async(ticket) = submitted {
            let mut line = [0; size_of::<u32>()];
            // A wait for the launch returns any other failure.
            if self.read(&report, &mut line).is_ok() && line != [0; size_of::<u32>()] {
                let error = lowered.reported(u32::from_ne_bytes(line));
                self.timeline.fail_from(ticket, &self.annotate(error, "launch"));
            }
        }
        Ok(submitted)
    }

    #[inline]
    fn start_checked(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
        flags: SubmitFlags,
        tracked: bool,
    ) -> Result<Submitted> {
        let (mut uses, mut raw) = (AccessSet::default(), RawLaunch::default());
        let mut local_bytes = 0u64;
        raw.fill((kernel.lowered(), config), args, |index, arg| {
            self.use_arg(kernel, (index, arg), tracked.then_some(&mut uses), &mut local_bytes)
        })
        .and_then(|()| if local_bytes == 0 { Ok(()) } else { kernel.check_local(local_bytes, &self.device) })
        .map_err(|error| self.annotate(error, "launch"))?;
        if let Some(collector) = self.collector() {
            let collected = self.collect(collector, &uses, (kernel, config, args), tracked);
            return collected.map_err(|error| self.annotate(error, "launch"));
        }
        let launch = &raw.pointed(config);
        let submitted = self.submit(&uses, flags, |calls, queue, mut submit| {
            if !tracked {
                // Its dependencies are unknown: keep it in order.
                submit.after = submit.ticket - 1;
            }
            call_launch(calls, queue, submit, (kernel, config, launch))
        });
        let submitted = submitted.map_err(|error| self.annotate(error, "launch"))?;
        match submitted {
            Submitted::Inline(ticket) if config.is_empty() => {
                self.run_inline(ticket, std::ptr::null_mut(), std::ptr::null())?;
            }
            Submitted::Inline(ticket) => self.run_inline(ticket, kernel.handle(), launch)?,
            Submitted::Async(_) => {}
        }
        Ok(submitted)
    }

    /// Checks the device and layout of an argument, and adds it to the accesses.
    #[inline]
    fn use_arg<'a>(
        &self,
        kernel: &Kernel,
        (index, arg): (usize, &Arg<'a>),
        uses: Option<&mut AccessSet<'a>>,
        local_bytes: &mut u64,
    ) -> Result<()> {
        if let ArgValue::Tensor(tensor, access, strided) = arg.value {
            kernel.check_tensor(index, (tensor, strided), &self.device)?;
            if let Some(uses) = uses {
                let used = tensor.buffer("launch").and_then(|buffer| uses.add(buffer, access));
                used.map_err(|error| error.with_note(format_args!("argument {index}")))?;
            }
        } else if let ArgValue::Local(bytes) = arg.value {
            *local_bytes = local_bytes.saturating_add(bytes);
        }
        Ok(())
    }

    /// Runs an inline launch on this thread, with no lock held.
    #[inline]
    fn run_inline(&self, ticket: u64, kernel: abi::Handle, launch: *const abi::Launch) -> Result<()> {
        let timeline = &*self.timeline;
        // SAFETY: `try_begin_inline` took the ticket, and `launch` lives during the call.
        let result = timeline
            .raw("launch", |calls, queue| unsafe { (calls.run_inline)(queue, ticket, kernel, launch) });
        // The next poll records its end; doing so here would cost an atomic operation per call.
        result.inspect_err(|error| timeline.fail_from(ticket, error))
    }

    #[cold]
    pub(crate) fn annotate(&self, error: Error, operation: &str) -> Error {
        error.in_operation(operation).on_device(&self.device.name)
    }

    /// Allocates a tensor in order with this queue's work: cheaper than `CommonRuntime::allocate` if the driver has
    /// stream-ordered memory, otherwise the same. It counts as a write by the queue, so other queues can use it, too.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for an invalid shape, space or alignment; the failure of the queue.
    pub fn allocate(&self, dtype: DType, shape: &[usize], placement: &Placement) -> Result<Tensor> {
        // Memory is allocated in order with the work that the driver has.
        Tensor::allocate_on((&self.device, self.timeline.real()), dtype, shape, placement)
            .map_err(|error| self.annotate(error, "allocate"))
    }

    /// Submits a kernel that does nothing, to measure overhead.
    ///
    /// # Errors
    /// `Unsupported` if the device has no such kernel.
    pub fn launch_noop(&self) -> Result<Event> {
        self.check_not_recording("launch_noop")?;
        if let Some(real) = self.in_order() {
            return real.launch_noop();
        }
        // SAFETY: the queue is open.
        self.submit_plain("launch_noop", |calls, queue, submit| unsafe { (calls.noop)(queue, submit) })
    }

    /// Calls a kernel that does nothing, in the same way as [`Queue::call`].
    ///
    /// # Errors
    /// `Unsupported` if the device has no such kernel.
    pub fn call_noop(&self) -> Result<()> {
        self.check_not_recording("call_noop")?;
        if let Some(real) = self.in_order() {
            return real.call_noop();
        }
        let flags = SubmitFlags { inline: self.inline, watched: true, ..SubmitFlags::default() };
        // SAFETY: the queue is open.
        let submitted = self.submit(&AccessSet::default(), flags, |calls, queue, submit| unsafe {
            (calls.noop)(queue, submit)
        });
        match submitted.map_err(|error| self.annotate(error, "call_noop"))? {
            Submitted::Async(ticket) => Event::new(&self.timeline, ticket).wait(),
            Submitted::Inline(ticket) => self.run_inline(ticket, std::ptr::null_mut(), std::ptr::null()),
        }
    }

    /// Submits the recording of a device timestamp. Read it with [`Queue::read_timestamp`] once the event is done.
    ///
    /// # Errors
    /// `Unsupported` if the device has no clock, or the queue was opened without `timestamps`.
    pub fn timestamp(&self) -> Result<Event> {
        self.check_not_recording("timestamp")?;
        if let Some(real) = self.in_order() {
            return real.timestamp();
        }
        // SAFETY: the queue is open.
        self.submit_plain("timestamp", |calls, queue, submit| unsafe { (calls.timestamp)(queue, submit) })
    }

    fn submit_plain(
        &self,
        operation: &str,
        call: impl FnMut(&abi::QueueCalls, abi::Handle, abi::SubmitInfo) -> abi::Status,
    ) -> Result<Event> {
        let flags = SubmitFlags { watched: true, ..SubmitFlags::default() };
        let submitted = self.submit(&AccessSet::default(), flags, call);
        let submitted = submitted.map_err(|error| self.annotate(error, operation))?;
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }

    /// Reads a timestamp in nanoseconds of the device's clock. The event must be done. Each timestamp can be read once.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another queue; `NotFound` if it is not a timestamp, or was read before.
    pub fn read_timestamp(&self, event: &Event) -> Result<u64> {
        self.check_not_recording("read_timestamp")?;
        if let Some(real) = self.real_queue() {
            return real.read_timestamp(event);
        }
        if !event.timeline().is_some_and(|timeline| Arc::ptr_eq(timeline, &self.timeline)) {
            return Err(self.annotate(Error::invalid("the event is of another queue"), "read_timestamp"));
        }
        self.timeline.read_timestamp(event.ticket())
    }

    /// Passes batched submissions to the driver. Every wait does so, too.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn flush(&self) -> Result<()> {
        self.check_not_recording("flush")?;
        self.device.check()?;
        if let Some(real) = self.real_queue() {
            self.cancel_list(Cause::Event);
            return real.flush();
        }
        self.timeline.signal_and_flush(self.timeline.last_submitted())
    }

    /// Waits until everything submitted so far has ended.
    ///
    /// # Errors
    /// The failure of the queue; `DeviceLost`.
    pub fn wait_idle(&self) -> Result<()> {
        self.wait_idle_until(None)
    }

    fn wait_idle_until(&self, deadline: Option<Instant>) -> Result<()> {
        self.check_not_recording("wait_idle")?;
        self.timeline.wait(self.timeline.last_submitted(), deadline)?;
        // What is not a launch went to the real queue directly.
        self.real_queue().map_or(Ok(()), |real| real.wait_idle_until(deadline))
    }

    /// Waits until everything submitted so far has ended, for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`, which has no effect on the queue; otherwise as [`Queue::wait_idle`].
    pub fn wait_idle_timeout(&self, timeout: Duration) -> Result<()> {
        self.wait_idle_until(Instant::now().checked_add(timeout))
    }

    /// The ticket of the last submission; 0 before the first.
    #[must_use]
    pub fn submitted(&self) -> u64 {
        self.timeline.last_submitted()
    }

    /// The last completed ticket: it and all earlier ones have ended. Never blocks.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub fn completed(&self) -> Result<u64> {
        self.check_not_recording("completed")?;
        self.device.check()?;
        // A caller that only polls must see the end, too, so the driver must have the work.
        self.timeline.signal_and_flush(self.timeline.last_submitted())?;
        self.timeline.poll_with_sources()?;
        Ok(self.timeline.completed())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.device.must_leak() {
            return;
        }
        if self.collector().is_some() {
            return self.close_collector();
        }
        if self.is_lent {
            return self.device.give_back_transfer_queue(self.timeline.clone());
        }
        if !self.timeline.drop_handle() {
            return;
        }
        // Nobody can end its hold any more, so a failure is worth a second attempt.
        let _ = self.timeline.resume().or_else(|_| self.timeline.resume());
        // The end of an inline call is recorded by a poll. After an error, reaping polls again.
        let _ = self.timeline.poll_queue();
        let until = if self.timeline.has_ended(self.timeline.last_submitted()) {
            Vec::new()
        } else {
            // Reaping must be able to observe the end of the work, so the driver must have it.
            let _ = self.timeline.signal_and_flush(self.timeline.last_submitted());
            vec![(self.timeline.clone(), self.timeline.last_submitted())]
        };
        self.device.defer(Resource::Queue, until);
    }
}
