//! Foreign work: what a library or a hand-written call of the driver submits, in order with a queue.

#![allow(unsafe_code, reason = "hands objects of the driver to the program")]

use std::ffi::c_void;
use std::sync::Arc;

use crate::code::arg::ArgValue;
use crate::code::argument_tuples::Arguments;
use crate::model::native::NativeHandles;
use crate::panics::contain;
use crate::plugin::native;
use crate::queue::submit::{AccessSet, HazardGuards, SubmitFlags, WaitPlan, block};
use crate::timeline::event::Event;
use crate::timeline::hazards::{Dependencies, Use};
use crate::timeline::open_device::OpenDevice;
use crate::timeline::word_lock::holding_locks;
use crate::{Arg, Error, ErrorKind, Queue, Result, abi};

/// What the program submits, and how that went.
struct ForeignWork<'w> {
    work: &'w mut dyn FnMut(&NativeHandles) -> Result<()>,
    outcome: Option<Result<()>>,
}

impl ForeignWork<'_> {
    fn run(&mut self, handles: Result<NativeHandles>) {
        let work = || handles.and_then(|handles| holding_locks(|| (self.work)(&handles)));
        let panicked =
            |message| Error::new(ErrorKind::Failed, format!("the native work did not return: {message}"));
        self.outcome = Some(contain(work).map_err(panicked).and_then(|outcome| outcome));
    }
}

/// The function that a backend calls.
unsafe extern "C" fn run(context: *mut c_void, handles: *const abi::NativeHandle, count: usize) {
    // SAFETY: core passed this context, which lives during the submission; nothing else uses it meanwhile.
    let work = unsafe { &mut *context.cast::<ForeignWork<'_>>() };
    // SAFETY: the backend passes a list that is valid during the call.
    work.run(unsafe { native::read(handles, count) });
}

impl Queue {
    /// Wraps a queue that the program has opened with the driver, e.g. a stream of PyTorch; see
    /// [`CommonRuntime`](crate::CommonRuntime#method.queue_from_native).
    pub(crate) fn from_native(device: &Arc<OpenDevice>, handle: u64) -> Result<Self> {
        let timeline = device.open_timeline_by("queue_from_native", |calls, device, queue| {
            // SAFETY: the device is open, and the output pointer is writable; the caller vouches for the handle.
            unsafe { (calls.native.open_queue)(device, handle, queue) }
        })?;
        Ok(Self::new(timeline, device.clone()))
    }

    /// Runs work that the runtime does not know, such as a call of cuBLAS, at this position of the queue.
    ///
    /// `work` is called once, on this thread, before this returns, and gets the driver's objects: what it submits through them
    /// runs behind everything that the queue has been given, and behind whatever else uses the tensors in `uses`; later work waits
    /// for it in the same way. `uses` are the tensors, as for a launch: [`read`](crate::read()), [`write`](crate::write()),
    /// [`read_write`](crate::read_write()); `&tensor` counts as read and written. They live until the work has ended.
    ///
    /// | device | handles |
    /// | --- | --- |
    /// | CUDA | `CUstream`, `CUcontext`, which is current on this thread |
    /// | OpenCL | `cl_command_queue`, which is in order; `cl_context`, `cl_device_id` |
    /// | Vulkan | `VkQueue`, to submit to without semaphores; `queue_family_index`, `VkDevice`, `VkPhysicalDevice`, `VkInstance`, `vkGetInstanceProcAddr` |
    /// | other | none: `work` runs once everything before it has ended, and has done its work when it returns |
    ///
    /// Where a tensor lies tells [`Tensor::native`](crate::Tensor::native).
    ///
    /// ```
    /// # use runtime_core::{CommonRuntime, Runtime, read, write};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let (x, y) = (device.tensor([2], &[1.0f32, 2.0])?, device.tensor([2], &[0.0f32; 2])?);
    /// # let queue = device.queue()?;
    /// # fn scale(_: *mut std::ffi::c_void, _: Option<u64>, _: Option<u64>) {}
    /// let (from, to) = (x.native()?.address, y.native()?.address);
    /// // SAFETY: the library reads x and writes y, and submits all its work to the stream.
    /// let done = unsafe {
    ///     queue.native((read(&x), write(&y)), |handles| {
    ///         let stream = handles.pointer("CUstream").unwrap_or(std::ptr::null_mut()); // here: no driver
    ///         scale(stream, from, to);
    ///         Ok(())
    ///     })?
    /// };
    /// done.wait()?;
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// To make the queue wait for an event of the program, let `work` submit that wait (`cuStreamWaitEvent`); the event that this
    /// returns then stands for it. To make a stream of the program wait for the queue, let `work` record an event that it waits for.
    ///
    /// # Safety
    /// What `work` submits accesses no memory of the runtime but `uses`, and that as stated there. It is submitted to these objects
    /// alone, before `work` returns, and ends by itself. `work` uses neither the runtime nor other queues of the same driver that the
    /// runtime opened, and does not change the objects that it gets.
    ///
    /// # Errors
    /// The error of `work`, or `Failed` if it panics: what it has submitted by then stays in order, and the queue goes on. Errors of
    /// a launch; a failure of the work itself is reported where the driver reports it to the queue, as that of a kernel.
    /// `InvalidArgument` for an argument that is no tensor of this runtime.
    pub unsafe fn native<'a>(
        &self,
        uses: impl Arguments<'a>,
        mut work: impl FnMut(&NativeHandles) -> Result<()>,
    ) -> Result<Event> {
        self.check_not_recording("native")?;
        let submitted = uses.with(None, |uses| self.submit_native(uses, &mut work));
        submitted.map_err(|error| self.annotate(error, "native"))
    }

    fn submit_native(
        &self,
        args: &[Arg<'_>],
        work: &mut dyn FnMut(&NativeHandles) -> Result<()>,
    ) -> Result<Event> {
        if let Some(real) = self.in_order() {
            return real.submit_native(args, work);
        }
        let uses = self.uses_of(args)?;
        let mut foreign = ForeignWork { work, outcome: None };
        let context = (&raw mut foreign).cast::<c_void>();
        let flags = SubmitFlags { watched: true, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, |_, queue, submit| {
            // SAFETY: the queue is open, and the context lives during the call.
            unsafe { (self.device.calls.native.submit)(queue, submit, run, context) }
        });
        match (submitted, foreign.outcome.take()) {
            (Ok(submitted), Some(outcome)) => {
                outcome.map(|()| Event::new(&self.timeline, submitted.ticket()))
            }
            (Err(error), None) if error.kind() == ErrorKind::Unsupported => {
                self.run_when_idle(&uses, &mut foreign)
            }
            (Err(error), _) => Err(error),
            (Ok(_), None) => Err(Error::new(ErrorKind::Internal, "the backend did not call the native work")),
        }
    }

    fn uses_of<'a>(&self, args: &[Arg<'a>]) -> Result<AccessSet<'a>> {
        let mut uses = AccessSet::default();
        for (index, arg) in args.iter().enumerate() {
            let used = match arg.value {
                ArgValue::Tensor(tensor, ..)
                    if !Arc::ptr_eq(&tensor.device().queues, &self.device.queues) =>
                {
                    Err(Error::invalid("the tensor is of another `Runtime`; open its device with this one"))
                }
                ArgValue::Tensor(tensor, access, _) => {
                    tensor.buffer("native").and_then(|buffer| uses.add(buffer, access))
                }
                _ => Err(Error::invalid("only tensors are listed; let the work capture everything else")),
            };
            used.map_err(|error| error.with_note(format_args!("argument {index}")))?;
        }
        Ok(uses)
    }

    /// Runs the work on this thread once everything before it has ended.
    #[cold]
    fn run_when_idle(&self, uses: &AccessSet<'_>, foreign: &mut ForeignWork<'_>) -> Result<Event> {
        loop {
            self.wait_idle()?;
            let mut others = Dependencies::new();
            let mut hazards = HazardGuards::new(uses);
            hazards.lock(self.timeline.id, &mut others)?;
            if let WaitPlan::Block(source, ticket) = self.resolve(&others, true)? {
                drop(hazards);
                block(&source, ticket)?;
                continue;
            }
            let submission = self.timeline.submission.lock();
            let ticket = self.timeline.last_submitted();
            if self.timeline.has_ended(ticket) {
                foreign.run(Ok(NativeHandles::default()));
                hazards.record(Use { queue: self.timeline.id, ticket });
                drop(submission);
                return foreign.outcome.take().unwrap_or(Ok(())).map(|()| Event::new(&self.timeline, ticket));
            }
        }
    }
}
