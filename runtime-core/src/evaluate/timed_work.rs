//! Times work of several launches as one call.

use std::fmt;
use std::sync::Arc;

use super::timed_window::{BenchInputs, QueueTarget, Subject, Submit};
use super::{
    Clock, ClockChoice, Cost, Measurement, Observer, Timing, Turn, Validation, measurement, timing_loop,
};
use crate::timeline::open_device::OpenDevice;
use crate::{DeviceInfo, Error, Event, Queue, QueueOptions, Result};

/// Work to time as a whole: several kernels on each other's results, or a list that a [`Fuser`](crate::fusion::Fuser) fuses.
///
/// Each call submits the work to the queue that it is given, in order. It is timed by the loop that times kernels, so that its
/// times compare with those of an [`Evaluation`](super::Evaluation). Its results are not checked.
///
/// ```
/// # use runtime_core::evaluate::TimedWork;
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([1], &[1.0f32])?;
/// # let tokio = tokio::runtime::Builder::new_current_thread().build()?;
/// # tokio.block_on(async {
/// let mut work = TimedWork::new(|queue| {
///     queue.launch(&scale, (1, 1), (read_write(&x), 2.0f32))?;
///     queue.launch(&scale, (1, 1), (read_write(&x), 0.5f32))
/// });
/// work.timing.repeat = 7;
/// # work.timing.min_repeat = std::time::Duration::from_millis(1);
/// let measurement = device.time_work(&mut work).await?;
/// println!("{} ns by {}", measurement.statistics.median_ns, measurement.clock);
/// assert_eq!(measurement.samples_ns.len(), 7);
/// # Ok::<(), runtime_core::Error>(()) })?;
/// # assert_eq!(x.to_vec::<f32>()?, [1.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[non_exhaustive]
pub struct TimedWork<'a> {
    submit: Submit<'a>,
    /// How the work is timed.
    pub timing: Timing,
    /// Called when the first sample is about to begin and after the last one, outside the timed part.
    pub observer: Option<Observer<'a>>,
    /// The cost of one call.
    pub cost: Cost,
    /// Its place among evaluations that take turns, which it leaves when it ends. Default: none.
    pub turn: Option<Turn>,
}

impl<'a> TimedWork<'a> {
    /// Work that `submit` submits, with the default timing and no cost.
    #[must_use]
    pub fn new(submit: impl FnMut(&Queue) -> Result<Event> + Send + 'a) -> Self {
        Self {
            submit: Box::new(submit),
            timing: Timing::default(),
            observer: None,
            cost: Cost::default(),
            turn: None,
        }
    }

    fn check(&self, info: &DeviceInfo) -> Result<Clock> {
        self.timing.check()?;
        self.cost.check()?;
        match self.timing.clock {
            ClockChoice::Use(Clock::DeviceGraph) => Err(Error::unsupported(
                "clock device_graph times launches of one kernel, not of several; use device_held, device_batch or auto",
            )),
            _ => self.timing.choose_clock(info, false),
        }
    }
}

impl fmt::Debug for TimedWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedWork")
            .field("timing", &self.timing)
            .field("observer", &self.observer.is_some())
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

/// Implements `time_work` of a device, on a separate queue.
pub(crate) async fn time_work(device: &Arc<OpenDevice>, work: &mut TimedWork<'_>) -> Result<Measurement> {
    time(device, work).await.map_err(|error| error.in_operation("time_work").on_device(&device.name))
}

async fn time(device: &Arc<OpenDevice>, work: &mut TimedWork<'_>) -> Result<Measurement> {
    // Taken, so that it is dropped with this future.
    let mut turn = work.turn.take();
    if let Some(turn) = &mut turn {
        turn.wait().await;
    }
    let clock = work.check(&device.info)?;
    let queue =
        Queue::open(device, &QueueOptions { timestamps: clock.is_device(), ..QueueOptions::default() })?;
    let TimedWork { submit, timing, observer, cost, .. } = work;
    let inputs = BenchInputs {
        device,
        queue: &queue,
        subject: Subject::Work(submit),
        sets: vec![&[]],
        data: None,
        setup: &mut None,
        observer,
    };
    let mut target = QueueTarget::new(inputs, timing, clock)?;
    let samples = timing_loop::run(&mut target, timing, turn.as_mut()).await?;
    let overhead_ns = timing_loop::overhead(&mut target, samples.number).await?;
    let validation = Validation::Skipped { reason: "work of several launches is not checked".to_owned() };
    measurement::of_samples(samples, target.made(), (timing, *cost), (overhead_ns, validation))
}
