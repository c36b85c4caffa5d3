//! A benchmark of a kernel: an [`Evaluation`] built step by step.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use super::{ClockChoice, Cost, DataLocation, EachCall, Evaluation, EvaluationArg, Measurement, Tolerance};
use super::{Warmup, evaluate};
use crate::timeline::open_device::OpenDevice;
use crate::{Element, Error, HostArray, Result};

/// A benchmark of a kernel, created by [`bench`](crate::CommonRuntime#method.bench). Add what to expect and how
/// to measure, then [`run`](Self::run) it, or `.await` it.
///
/// A mistake in a step, such as an argument number that does not exist, is reported when the benchmark runs.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{ModuleSource, Runtime, read, write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let add = device.kernel(&unsafe { ModuleSource::native("null", "add_f32") }, "add_f32")?;
/// # use runtime_core::evaluate::DataLocation;
/// let x = device.tensor([3], &[1.0f32, 2.0, 3.0])?;
/// let y = device.zeros::<f32>([3])?;
/// let benchmark = device
///     .bench(&add, (1, 1), (read(&x), read(&x), write(&y)))
///     .location(0, DataLocation::Host) // each call uploads x
///     .expect(2, &[2.0f32, 4.0, 6.0])
///     .samples(7)
/// #   .sample_time(Duration::from_millis(1))
///     .flops(3.0);
/// let measurement = benchmark.run()?; // or `benchmark.await?`
/// assert!(measurement.validation.is_passed());
/// assert_eq!(measurement.transfer.map(|transfer| transfer.bytes_in), Some(12));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[must_use = "a benchmark does nothing until it is run or awaited"]
pub struct Benchmark<'a> {
    device: Arc<OpenDevice>,
    evaluation: Result<Evaluation<'a>>,
}

impl<'a> Benchmark<'a> {
    pub(crate) const fn new(device: Arc<OpenDevice>, evaluation: Result<Evaluation<'a>>) -> Self {
        Self { device, evaluation }
    }

    /// Expects argument `index` to hold `elements`, in row-major order, after one call. Without any expectation
    /// the results are not checked.
    pub fn expect<T: Element>(self, index: usize, elements: &[T]) -> Self {
        self.try_configure(|evaluation| {
            let arg = evaluation.args.get(index).and_then(|arg| arg.as_tensor());
            let Some((tensor, _)) = arg else {
                return Err(Error::invalid(format!("expect: argument {index} is not a tensor")));
            };
            evaluation.reference.push((index, HostArray::from_slice(tensor.shape(), elements)?));
            Ok(())
        })
    }

    /// How far results may deviate from what is expected.
    pub fn tolerance(self, tolerance: Tolerance) -> Self {
        self.configure(|evaluation| evaluation.tolerance = tolerance)
    }

    /// Number of samples.
    pub fn samples(self, samples: usize) -> Self {
        self.configure(|evaluation| evaluation.timing.repeat = samples)
    }

    /// Minimum duration of a sample, reached by several calls if one is shorter.
    pub fn sample_time(self, minimum: Duration) -> Self {
        self.configure(|evaluation| evaluation.timing.min_repeat = minimum)
    }

    /// What to do before the first sample.
    pub fn warmup(self, warmup: Warmup) -> Self {
        self.configure(|evaluation| evaluation.timing.warmup = warmup)
    }

    /// The clock to measure with.
    pub fn clock(self, clock: ClockChoice) -> Self {
        self.configure(|evaluation| evaluation.timing.clock = clock)
    }

    /// Where the data of tensor argument `index` are when timing starts.
    pub fn location(self, index: usize, location: DataLocation) -> Self {
        self.configure_arg("location", index, |arg| arg.on = location)
    }

    /// What tensor argument `index`, which the kernel both reads and writes, holds before each call.
    pub fn each_call(self, index: usize, each_call: EachCall) -> Self {
        self.configure_arg("each_call", index, |arg| arg.each_call = each_call)
    }

    /// The floating-point operations of one call, which give the result in GFLOP/s.
    pub fn flops(self, flops: f64) -> Self {
        self.configure(|evaluation| evaluation.cost = Cost { flops: Some(flops), ..evaluation.cost })
    }

    /// The bytes that one call must move, which give the result in GB/s.
    pub fn bytes(self, bytes: f64) -> Self {
        self.configure(|evaluation| evaluation.cost = Cost { bytes: Some(bytes), ..evaluation.cost })
    }

    /// Changes anything else of the [`Evaluation`].
    pub fn configure(self, change: impl FnOnce(&mut Evaluation<'a>)) -> Self {
        self.try_configure(|evaluation| {
            change(evaluation);
            Ok(())
        })
    }

    fn configure_arg(self, step: &str, index: usize, change: impl FnOnce(&mut EvaluationArg<'a>)) -> Self {
        self.try_configure(|evaluation| {
            let arg = evaluation.args.get_mut(index);
            arg.map(change).ok_or_else(|| Error::invalid(format!("{step}: there is no argument {index}")))
        })
    }

    fn try_configure(mut self, change: impl FnOnce(&mut Evaluation<'a>) -> Result<()>) -> Self {
        if let Ok(evaluation) = &mut self.evaluation
            && let Err(error) = change(evaluation)
        {
            self.evaluation = Err(error.in_operation("bench").on_device(&self.device.name));
        }
        self
    }

    /// Runs the benchmark on this thread and returns the measurement.
    ///
    /// # Errors
    /// As [`evaluate`](crate::CommonRuntime::evaluate); the first mistake in the steps.
    pub fn run(self) -> Result<Measurement> {
        block_on(self.into_future())
    }
}

impl<'a> IntoFuture for Benchmark<'a> {
    type Output = Result<Measurement>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { evaluate(&self.device, &mut self.evaluation?).await })
    }
}

impl fmt::Debug for Benchmark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Benchmark")
            .field("device", &self.device.name)
            .field("evaluation", &self.evaluation)
            .finish()
    }
}

/// Wakes a blocked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
