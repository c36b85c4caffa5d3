//! Timed evaluation: the one timing loop of the project, the same for every device.

mod arg_location;
mod calibrate;
mod clock;
mod flush;
mod graph_cache;
mod measurement;
mod queue_target;
mod run;
mod statistics;
mod timing;
mod validate;
mod validator;

use std::fmt;
use std::sync::Arc;

pub use arg_location::{EvaluationArg, On};
pub use clock::{Clock, ClockChoice};
pub use measurement::{Cost, Measurement, Transfer};
pub use statistics::{Statistics, median_interval, percentile};
pub use timing::{FlushCache, Timing, Warmup};
pub use validate::{Agreement, Mismatch, Tolerance, Validation};

use queue_target::{BenchInputs, QueueTarget};
use validator::Validator;

use crate::timeline::open_device::OpenDevice;
use crate::{DeviceInfo, Error, Geometry, HostArray, Kernel, Queue, QueueOptions, Result};

/// A question: how fast is this kernel, with this geometry, on these arguments, and is it right?
///
/// Make one with [`Evaluation::new`], change what you like, and give it to `CommonRuntime::evaluate`. Tensors that
/// the kernel writes are overwritten; those that it reads and writes go on changing while it is timed.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let add = device.load(&unsafe { ModuleSource::native("null", "add_f32") })?.kernel("add_f32")?;
/// # let tokio = tokio::runtime::Builder::new_current_thread().build()?;
/// # tokio.block_on(async {
/// use runtime_core::{Arg, Evaluation, Geometry, HostArray, Tensor};
///
/// let x = Tensor::from_slice(&*device, &[3], &[1f32, 2.0, 3.0])?;
/// let y = Tensor::from_slice(&*device, &[3], &[0f32; 3])?;
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
/// # Honest timing, for a newcomer
///
/// *How fast is this kernel?* has no single answer, so an [`Evaluation`] says which question it asks, and the
/// [`Measurement`] repeats it beside the answer.
///
/// - **Is it right?** A wrong kernel is often a fast one. When there is a reference, outputs are poisoned, the
///   kernel runs once, and the result is compared, before anything is timed.
/// - **Which clock?** The device's own clock sees the kernel; the host's clock sees what the program waits for; a
///   launch returns long before either has anything to see. A time carries the name of its [`Clock`].
/// - **Warm or cold?** The first call pays for lazy loading, caches, page faults and sleeping clocks. It is left out
///   by [`Warmup`], unless it is what you ask for; then the measurement says `cold`.
/// - **How long is a sample?** A clock has a resolution and a cost. A sample is `number` calls between two clock
///   reads, with `number` found once, before the samples, so that a sample lasts [`Timing::min_repeat`].
/// - **How sure is it?** Every sample is kept. Noise only ever adds, so quote the median with its interval, look at
///   the minimum, and distrust a mean that is far from both ([`Statistics`]).
/// - **Where are the data?** A kernel on data that already lie on the device is one thing, a kernel whose inputs
///   come over the bus for each call another: [`On`] says it per argument, and transfers are also reported alone.
/// - **What does nothing cost?** The same clock around an empty kernel is reported as the overhead, and never
///   subtracted: two numbers that can be checked are better than one that cannot.
#[non_exhaustive]
pub struct Evaluation<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// How it is spread over the device.
    pub geometry: Geometry,
    /// Its arguments in order, each with where it lives when the clock starts.
    pub args: Vec<EvaluationArg<'a>>,
    /// How it is timed.
    pub timing: Timing,
    /// Runs before every window (also of the warm-up, the calibration and the validation), outside the timed part.
    pub setup: Option<Box<dyn FnMut() + Send + 'a>>,
    /// What one call computes and moves.
    pub cost: Cost,
    /// Whether to compare with `reference`, if there is one.
    pub validate: bool,
    /// Right outputs: the index of the argument, and what it should hold after one call.
    pub reference: Vec<(usize, HostArray)>,
    /// How far outputs may be from `reference`.
    pub tolerance: Tolerance,
}

impl<'a> Evaluation<'a> {
    /// An evaluation with the default timing, no cost and no reference.
    #[must_use]
    pub fn new(kernel: &'a Kernel, geometry: Geometry, args: Vec<EvaluationArg<'a>>) -> Self {
        Self {
            kernel,
            geometry,
            args,
            timing: Timing::default(),
            setup: None,
            cost: Cost::default(),
            validate: true,
            reference: Vec::new(),
            tolerance: Tolerance::default(),
        }
    }

    /// Checks what can be known before anything runs, and chooses the clock.
    fn check(&self, info: &DeviceInfo) -> Result<Clock> {
        self.timing.check()?;
        self.tolerance.check()?;
        self.cost.check()?;
        let clock = self.timing.clock.choose(info)?;
        for (index, arg) in self.args.iter().enumerate() {
            arg.check(index, info, clock)?;
        }
        self.reference.iter().try_for_each(|(index, array)| match self.args.get(*index) {
            Some(arg) => arg.check_reference(*index, array),
            None => Err(Error::invalid(format!(
                "reference {index}: there are only {} arguments",
                self.args.len()
            ))),
        })?;
        Ok(clock)
    }
}

impl fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("kernel", &self.kernel)
            .field("geometry", &self.geometry)
            .field("args", &self.args)
            .field("timing", &self.timing)
            .field("setup", &self.setup.is_some())
            .field("cost", &self.cost)
            .field("validate", &self.validate)
            .field("reference", &self.reference)
            .field("tolerance", &self.tolerance)
            .finish()
    }
}

/// Answers an evaluation on a queue of its own; what `CommonRuntime::evaluate` does.
///
/// Windows timed by a device clock are awaited. Windows timed by the host's clock block the thread, on purpose: an
/// executor that runs something else in between would be timed with the kernel. Between samples the future yields,
/// at most once a millisecond, so that other tasks get their turn; a cooldown blocks.
///
/// # Errors
/// `InvalidArgument` for an evaluation that contradicts itself; `Unsupported` for a clock that the device lacks;
/// whatever a launch or a transfer says. A wrong result is no error: it is in [`Measurement::validation`].
pub(crate) async fn evaluate(
    device: &Arc<OpenDevice>,
    evaluation: &mut Evaluation<'_>,
) -> Result<Measurement> {
    evaluate_kernel(device, evaluation)
        .await
        .map_err(|error| error.in_operation("evaluate").on_device(&device.name))
}

async fn evaluate_kernel(device: &Arc<OpenDevice>, evaluation: &mut Evaluation<'_>) -> Result<Measurement> {
    let clock = evaluation.check(&device.info)?;
    // Timestamps cost every submission of some queues (OpenCL's profiling), so only a device clock asks for them.
    let queue =
        Queue::open(device, &QueueOptions { timestamps: clock.is_device(), ..QueueOptions::default() })?;
    let cold = evaluation.timing.warmup.is_none();
    let Evaluation { kernel, geometry, args, timing, setup, cost, validate, reference, tolerance } =
        evaluation;
    let validator = Validator::new(args, reference, tolerance, *validate)?;
    let mut target = QueueTarget::new(
        BenchInputs { device, queue: &queue, kernel, geometry, args, setup },
        timing,
        clock,
    )?;
    // Validating runs the kernel, after which nothing is cold.
    let validated = if cold { None } else { Some(validator.run(|| target.call())?) };
    let samples = run::run(&mut target, timing).await?;
    let validation = match validated {
        Some(validation) => validation,
        None => validator.run(|| target.call())?,
    };
    let overhead_ns = run::overhead(&mut target, samples.number).await?;
    let transfer =
        target.transfer_bytes().map(|bytes| Transfer::new(samples.transfers_ns, bytes)).transpose()?;
    Ok(Measurement {
        statistics: measurement::statistics(&samples.samples_ns)?,
        samples_ns: samples.samples_ns,
        clock,
        repeat: timing.repeat,
        number: samples.number,
        calls: target.calls(),
        cold,
        overhead_ns,
        transfer,
        validation,
        cost: *cost,
    })
}
