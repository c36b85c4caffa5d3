//! Host tasks: closures that run once events have ended; barriers; and values that are kept until then.

use std::sync::Arc;

use crate::timeline::DeviceServices;
use crate::timeline::event::Event;
use crate::timeline::event::host_job::HostJob;
use crate::timeline::event::retained::Retained;
use crate::timeline::event::signal::Signal;
use crate::{Error, ErrorKind, Queue, Result};

/// What a host task may return: nothing, or a [`Result`] whose error becomes that of its event.
pub trait HostTaskOutput: sealed::Sealed {
    /// The result of the event.
    #[doc(hidden)]
    fn into_result(self) -> Result<()>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for crate::Result<()> {}
}

impl HostTaskOutput for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl HostTaskOutput for Result<()> {
    fn into_result(self) -> Result<()> {
        self
    }
}

impl Queue {
    /// Runs a closure once, after the events have ended, on a thread of the runtime, and returns at once.
    ///
    /// The closure may do what the program may: submit, wait, also for host tasks that it submits, and drop what it owns. Only
    /// its own event it cannot wait for. What it owns is dropped before its event completes. It does not run if a dependency
    /// fails: its event then fails with the same error. If it panics, the event fails with `Failed` and the message of the
    /// panic. Host tasks of a queue are ordered by their dependencies only, not with each other or with its submissions.
    ///
    /// Anything can depend on the event. As no driver knows of host tasks, [`Queue::wait_for`] blocks until the task has ended.
    ///
    /// The task runs also if its queue, its device or its event is dropped before: it keeps only what the closure owns. When the
    /// process exits, tasks that have not started never do, and running ones are waited for, but for 200 ms at most.
    ///
    /// ```
    /// # use runtime_core::Runtime;
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let queue = device.queue()?;
    /// let x = device.tensor([2], &[1.0f32, 2.0])?;
    /// let event = queue.launch_noop()?;
    /// let checked = queue.host_task(&[&event], move || {
    ///     assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]); // an error or a panic would be that of the event
    ///     Ok(())
    /// })?;
    /// checked.wait()?;
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started; `Unavailable` in a forked child; `DeviceLost`.
    pub fn host_task<R: HostTaskOutput>(
        &self,
        deps: &[&Event],
        task: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Event> {
        self.device.check()?;
        self.check_not_recording("host_task")?;
        let pool = self.device.host_pool();
        let given = Given(Signal::new(pool));
        let event = Event::of_signal(given.0.clone()).with_dependencies(deps);
        let action = move |_: &Event, ended: Result<()>| {
            let task = move || ended.map_err(depended).and_then(|()| task().into_result());
            let result = given.0.run(task);
            given.0.give(result);
        };
        HostJob::start(pool, Event::all(deps), Box::new(action))
            .map_err(|error| self.annotate(error, "host_task"))?;
        Ok(event)
    }

    /// Keeps `values` until the events have ended, successfully or not, and then drops them on a thread of the runtime; at once
    /// if they have ended already. The queue keeps tensors, kernels and the data of uploads by itself; this is for everything
    /// else, such as memory that was imported, or a graph.
    ///
    /// The values are leaked where the work cannot be seen to end: at exit, in a forked child, and with a device that is leaked.
    ///
    /// # Errors
    /// `Unavailable` in a forked child; `DeviceLost`. The values are kept also then.
    pub fn keep_until<T: Send + 'static>(&self, deps: &[&Event], values: T) -> Result<()> {
        let retained = Retained::new(Event::all(deps), values);
        let checked = self.device.check();
        drop(retained);
        checked
    }

    /// Makes later submissions wait for these events, and returns an event that ends once they and all earlier submissions of
    /// the queue have ended. Submits nothing.
    ///
    /// # Errors
    /// As [`Queue::wait_for`].
    pub fn barrier(&self, deps: &[&Event]) -> Result<Event> {
        self.wait_for_all(deps)?;
        if let Some(record) = self.recorder() {
            return Ok(record.all());
        }
        let last = Event::new(&self.timeline, self.timeline.watch_last());
        // What is not a launch went to the real queue of a virtual one directly.
        let direct = self.real_queue().map(|real| Event::new(&real.timeline, real.timeline.watch_last()));
        let events: Vec<_> = deps.iter().copied().chain([&last]).chain(&direct).collect();
        Ok(Event::all(&events).with_dependencies(deps))
    }
}

/// The duty to give a signal.
struct Given(Arc<Signal>);

impl Drop for Given {
    fn drop(&mut self) {
        self.0.give(Err(Error::new(ErrorKind::Cancelled, "the host task never ran")));
    }
}

#[cold]
fn depended(error: Error) -> Error {
    error.with_note("a host task depends on it")
}
