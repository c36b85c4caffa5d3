//! Timed evaluation of kernels. This is the only timing loop of the project, the same for every device.

mod arg_location;
mod benchmark;
mod calibrate;
mod call_windows;
mod clock;
mod comparison;
mod flush;
mod graph_batches;
mod measurement;
mod observer;
mod statistics;
#[cfg(test)]
mod statistics_scipy_tests;
mod stop_rule;
mod throttling;
mod timed_window;
mod timed_work;
mod timing_loop;
mod timing_options;
mod timing_target;
mod turns;
mod validator;
mod window_data;

use std::fmt;
use std::sync::Arc;

pub use crate::timeline::event::times::{EventClock, EventTimes};
pub use arg_location::{DataLocation, EachCall, EvaluationArg};
pub use benchmark::Benchmark;
pub use call_windows::{CallWindows, time_calls};
pub use clock::{Clock, ClockChoice};
pub use comparison::{Agreement, Mismatch, Tolerance, Validation};
pub use flush::HostCaches;
pub use measurement::{Cost, Measurement, Transfer};
pub use observer::{Moment, Observer};
pub use statistics::{Statistics, median_interval, percentile};
pub use throttling::Throttled;
pub use timed_work::TimedWork;
pub use timing_options::{FlushCache, Timing, Warmup};
pub use turns::{Turn, Turns};
pub use window_data::WindowData;

use timed_window::{BenchInputs, QueueTarget, Subject};
pub(crate) use timed_work::time_work;
use validator::Validator;

use crate::model::counted::counted;
use crate::timeline::open_device::OpenDevice;
use crate::{DeviceInfo, Error, HostArray, Kernel, LaunchConfig, Queue, QueueOptions, Result};

/// An evaluation of a kernel: how fast is it with this geometry and these arguments, and are its results
/// correct?
///
/// [`bench`](crate::CommonRuntime#method.bench) builds one step by step, which is enough for most programs.
/// Otherwise create one with [`Evaluation::new`], adjust its fields, and pass it to `CommonRuntime::evaluate`.
/// Tensors that the kernel writes are overwritten; tensors that it both reads and writes keep changing while
/// it is timed, unless [`EachCall::Initial`] says otherwise.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let add = device.kernel(&unsafe { ModuleSource::native("null", "add_f32") }, "add_f32")?;
/// # let tokio = tokio::runtime::Builder::new_current_thread().build()?;
/// # tokio.block_on(async {
/// use runtime_core::evaluate::Evaluation;
/// use runtime_core::{Arg, Geometry, HostArray, Tensor};
///
/// let x = device.tensor([3], &[1f32, 2.0, 3.0])?;
/// let y = device.zeros::<f32>([3])?;
/// let args = [Arg::read(&x), Arg::read(&x), Arg::write(&y)]; // y = x + x
/// let mut evaluation = Evaluation::new(&add, Geometry::single(), args.map(Into::into).to_vec());
/// evaluation.reference = vec![(2, HostArray::from_slice(&[3], &[2f32, 4.0, 6.0])?)]; // what argument 2 should hold
/// evaluation.timing.repeat = 7;
/// # evaluation.timing.min_repeat = std::time::Duration::from_millis(1);
///
/// let measurement = device.evaluate(&mut evaluation).await?;
/// println!("{} ns by {}", measurement.statistics.median_ns, measurement.clock);
/// assert!(measurement.validation.is_passed());
/// assert_eq!(measurement.samples_ns.len(), 7);
/// # Ok::<(), runtime_core::Error>(()) })?;
/// # Ok::<(), runtime_core::Error>(())
/// ```
///
/// # Honest timing, for newcomers
///
/// *How fast is this kernel?* has no single answer. An [`Evaluation`] states the exact question, and the
/// [`Measurement`] records it with the answer.
///
/// - **Is it correct?** A wrong kernel is often a fast one. If there is a reference, outputs are poisoned,
///   the kernel runs once, and the result is compared, before anything is timed.
/// - **Which clock?** The device's clock measures the kernel; the host's clock measures what the program
///   waits for; a launch returns long before the kernel has run. Every time is reported with its [`Clock`].
/// - **Warm or cold?** The first call pays for lazy loading, cold caches, page faults and low clocks.
///   [`Warmup`] excludes it, unless you ask for it; the measurement is then marked `cold`.
/// - **How long is a sample?** A clock has a resolution and a cost. A sample is `number` calls between two
///   clock reads; `number` is calibrated once, before the samples, so that a sample lasts
///   [`Timing::min_repeat`].
/// - **How reliable is it?** Every sample is kept. Noise only ever adds time, so quote the median with its
///   confidence interval, look at the minimum, and distrust a mean that is far from both ([`Statistics`]).
/// - **Where are the data?** A kernel whose data are already on the device differs from one whose inputs
///   cross the bus on each call. [`DataLocation`] states this per argument, and transfers are also reported separately.
/// - **What is the overhead?** The time of a no-op kernel by the same clock is reported as the overhead, and
///   never subtracted: two numbers that can be checked are better than one that cannot.
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// What each call runs.
    pub config: LaunchConfig,
    /// The arguments in order, each with its location when timing starts.
    pub args: Vec<EvaluationArg<'a>>,
    /// Further sets of arguments, which differ from `args` in their tensors: windows use all sets in turn. Default: none.
    pub other_args: Vec<Vec<EvaluationArg<'a>>>,
    /// Writes the data of windows, and looks at what they have left. Default: nobody does.
    pub window_data: Option<&'a mut (dyn WindowData + 'a)>,
    /// How the kernel is timed.
    pub timing: Timing,
    /// Runs before every window, including those of warm-up, calibration and validation, outside the timed
    /// part.
    pub setup: Option<Box<dyn FnMut() + Send + 'a>>,
    /// Called when the first sample is about to begin and after the last one, outside the timed part, with warm-up,
    /// calibration and compilation done: for readings of the machine that belong to the samples.
    pub observer: Option<Observer<'a>>,
    /// The cost of one call.
    pub cost: Cost,
    /// Whether to compare with `reference`, if there is one.
    pub validate: bool,
    /// Expected outputs: the index of an argument, and its expected contents after one call.
    pub reference: Vec<(usize, HostArray)>,
    /// How far outputs may deviate from `reference`.
    pub tolerance: Tolerance,
    /// Its place among evaluations that take turns, which it leaves when it ends. Default: none.
    pub turn: Option<Turn>,
}

impl<'a> Evaluation<'a> {
    /// An evaluation with the default timing, no cost and no reference.
    #[must_use]
    pub fn new(kernel: &'a Kernel, config: impl Into<LaunchConfig>, args: Vec<EvaluationArg<'a>>) -> Self {
        Self {
            kernel,
            config: config.into(),
            args,
            other_args: Vec::new(),
            window_data: None,
            timing: Timing::default(),
            setup: None,
            observer: None,
            cost: Cost::default(),
            validate: true,
            reference: Vec::new(),
            tolerance: Tolerance::default(),
            turn: None,
        }
    }

    /// Checks everything that can be checked before anything runs, and chooses the clock.
    fn check(&self, info: &DeviceInfo) -> Result<Clock> {
        self.timing.check()?;
        self.cost.check()?;
        let transfers = self.args.iter().any(|arg| arg.host_tensor(info).is_some());
        let clock = self.timing.choose_clock(info, transfers)?;
        for set in self.sets() {
            if set.len() != self.args.len() {
                return Err(Error::invalid("other_args: each set needs as many arguments as args has"));
            }
            set.iter().enumerate().try_for_each(|(index, arg)| arg.check(index, info, clock))?;
        }
        self.check_reference()?;
        Ok(clock)
    }

    /// All sets of arguments.
    fn sets(&self) -> impl Iterator<Item = &[EvaluationArg<'a>]> {
        std::iter::once(&self.args[..]).chain(self.other_args.iter().map(Vec::as_slice))
    }

    fn check_reference(&self) -> Result<()> {
        self.tolerance.check()?;
        self.reference.iter().try_for_each(|(index, array)| match self.args.get(*index) {
            Some(arg) => arg.check_reference(*index, array),
            None => Err(Error::invalid(format!(
                "reference {index}: the launch has {}",
                counted(self.args.len(), "argument")
            ))),
        })
    }
}

impl fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("kernel", &self.kernel)
            .field("geometry", &self.config)
            .field("args", &self.args)
            .field("other_args", &self.other_args)
            .field("window_data", &self.window_data.is_some())
            .field("timing", &self.timing)
            .field("setup", &self.setup.is_some())
            .field("observer", &self.observer.is_some())
            .field("cost", &self.cost)
            .field("validate", &self.validate)
            .field("reference", &self.reference)
            .field("tolerance", &self.tolerance)
            .finish()
    }
}

/// Implements `CommonRuntime::evaluate`, on a separate queue.
///
/// Windows timed by a device clock are awaited. Windows timed by the host's clock deliberately block the
/// thread: anything else that the executor ran meanwhile would be timed with the kernel. Between samples the
/// future yields, at most once per millisecond, so that other tasks can run; a cooldown blocks.
///
/// # Errors
/// `InvalidArgument` for an inconsistent evaluation; `Unsupported` for a clock that the device lacks; any
/// error of a launch or transfer. A wrong result is not an error: see [`Measurement::validation`].
pub(crate) async fn evaluate(
    device: &Arc<OpenDevice>,
    evaluation: &mut Evaluation<'_>,
) -> Result<Measurement> {
    evaluate_kernel(device, evaluation)
        .await
        .map_err(|error| error.in_operation("evaluate").on_device(&device.name))
}

async fn evaluate_kernel(device: &Arc<OpenDevice>, evaluation: &mut Evaluation<'_>) -> Result<Measurement> {
    // Taken, so that it is dropped with this future.
    let mut turn = evaluation.turn.take();
    if let Some(turn) = &mut turn {
        turn.wait().await;
    }
    let clock = evaluation.check(&device.info)?;
    // On some queues, timestamps slow down every submission (OpenCL's profiling), so enable them only for
    // device clocks.
    let queue =
        Queue::open(device, &QueueOptions { timestamps: clock.is_device(), ..QueueOptions::default() })?;
    let cold = evaluation.timing.warmup.is_none();
    let Evaluation {
        kernel,
        config,
        args,
        other_args,
        window_data,
        timing,
        setup,
        observer,
        cost,
        validate,
        reference,
        tolerance,
        ..
    } = evaluation;
    let validator = Validator::new(args, reference, tolerance, *validate).with_initial_contents()?;
    let subject = Subject::Launch { kernel, config: *config };
    let sets = std::iter::once(&args[..]).chain(other_args.iter().map(Vec::as_slice)).collect();
    let data = window_data.as_deref_mut();
    let inputs = BenchInputs { device, queue: &queue, subject, sets, data, setup, observer };
    let mut target = QueueTarget::new(inputs, timing, clock)?;
    // Validation runs the kernel, after which nothing is cold.
    let validated = if cold { None } else { Some(validator.run_restored(|| target.call())?) };
    let samples = timing_loop::run(&mut target, timing, turn.as_mut()).await?;
    let validation = match validated {
        Some(validation) => validation,
        None => validator.run_restored(|| target.call())?,
    };
    let overhead_ns = timing_loop::overhead(&mut target, samples.number).await?;
    measurement::of_samples(samples, target.made(), (timing, *cost), (overhead_ns, validation))
}

/// Implements `validate` of a device.
pub(crate) fn validate(device: &Arc<OpenDevice>, evaluation: &mut Evaluation<'_>) -> Result<Validation> {
    let checked = evaluation.check_reference();
    checked.map_err(|error| error.in_operation("validate").on_device(&device.name))?;
    let queue = Queue::open(device, &QueueOptions::default())?;
    let Evaluation { kernel, config, args, setup, validate, reference, tolerance, .. } = evaluation;
    let launch_args: Vec<_> = args.iter().map(|arg| arg.arg).collect();
    Validator::new(args, reference, tolerance, *validate).run(|| {
        if let Some(setup) = setup {
            setup();
        }
        queue.call(kernel, *config, &launch_args)
    })
}
