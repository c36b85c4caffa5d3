//! Times one peak kernel: finds how long to run it, runs it through the timing loop, and checks its result.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime_core::evaluate::{Benchmark, Measurement, Tolerance, Validation, Warmup};
use runtime_core::{
    Arg, CommonRuntime, Error, ErrorKind, HostArray, Kernel, LaunchConfig, Queue, Result, Tensor,
};

use super::Effort;
use crate::noise::Load;

/// A device whose peaks are measured.
pub(super) struct Bench<'a> {
    pub(super) device: &'a dyn CommonRuntime,
    pub(super) queue: Queue,
    pub(super) effort: Effort,
    load: Mutex<Load<'a>>,
}

/// A kernel with the size of its launches; `args` are those for an amount of work.
pub(super) struct Timed<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) config: LaunchConfig,
    pub(super) args: &'a dyn Fn(u32) -> Vec<Arg<'a>>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(device: &'a dyn CommonRuntime, effort: Effort) -> Result<Self> {
        Ok(Self { device, queue: device.queue()?, effort, load: Mutex::new(Load::new(device)) })
    }

    /// The amount of work for which a call takes long enough to hide its launch, at most `limit`.
    pub(super) fn amount(&self, timed: &Timed<'_>, limit: u32) -> Result<u32> {
        let call = |amount| self.queue.call(timed.kernel, timed.config, &(timed.args)(amount)[..]);
        // Some drivers compile at the first launch.
        call(1)?;
        let mut amount = 1;
        loop {
            let begin = Instant::now();
            call(amount)?;
            if begin.elapsed() >= self.effort.call() || amount >= limit {
                return Ok(amount);
            }
            amount = amount.saturating_mul(4).min(limit);
        }
    }

    /// Times the kernel with this amount of work; `expected` is the content of argument 0 afterwards.
    pub(super) fn time(&self, timed: &Timed<'_>, amount: u32, expected: HostArray) -> Result<Measurement> {
        let args = (timed.args)(amount);
        let benchmark = self.device.bench(timed.kernel, timed.config, &args[..]);
        let measurement =
            self.run(
                benchmark
                    .configure(|evaluation| evaluation.reference.push((0, expected)))
                    .tolerance(Tolerance { rtol: Some(0.0), atol: Some(0.0), ..Tolerance::default() }),
            )?;
        match &measurement.validation {
            Validation::Failed(mismatch) => Err(wrong(&mismatch.to_string())),
            _ => Ok(measurement),
        }
    }

    /// As [`Self::time`], for large results, of which each element is expected to be `expected`.
    pub(super) fn time_filling(
        &self,
        timed: &Timed<'_>,
        amount: u32,
        (result, expected): (&Tensor, f32),
    ) -> Result<Measurement> {
        result.fill(&f32::NAN.to_ne_bytes())?;
        let args = (timed.args)(amount);
        let measurement = self.run(self.device.bench(timed.kernel, timed.config, &args[..]))?;
        let contents = result.to_array()?;
        let elements = contents.as_slice::<f32>()?;
        match elements.iter().position(|element| *element != expected) {
            None => Ok(measurement),
            Some(index) => Err(wrong(&format!("[{index}] is {}, expected {expected}", elements[index]))),
        }
    }

    fn run<'b>(&'b self, benchmark: Benchmark<'b>) -> Result<Measurement> {
        let effort = self.effort;
        let measurement = benchmark
            .samples(effort.samples())
            .sample_time(effort.sample())
            .warmup(Warmup::Time(effort.sample()))
            .configure(|evaluation| {
                evaluation.timing.budget = effort.budget();
                evaluation.observer = Some(Box::new(|moment| self.load().observe(moment)));
            })
            .run()?;
        self.load().note(&measurement);
        Ok(measurement)
    }

    /// What has disturbed all that was timed so far.
    pub(super) fn disturbance(&self) -> Option<String> {
        self.load().disturbance()
    }

    fn load(&self) -> MutexGuard<'_, Load<'a>> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Times a transfer by the host's clock: the timing loop of core times kernels.
    pub(super) fn time_transfer(&self, transfer: &mut dyn FnMut() -> Result<()>) -> Result<Vec<f64>> {
        transfer()?;
        let deadline = Instant::now() + self.effort.budget();
        let mut samples_ns = Vec::new();
        while samples_ns.len() < self.effort.samples() && (samples_ns.is_empty() || Instant::now() < deadline)
        {
            let begin = Instant::now();
            transfer()?;
            samples_ns.push(nanoseconds(begin.elapsed()));
        }
        Ok(samples_ns)
    }
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

/// The error of a kernel whose result is wrong: its speed means nothing.
pub(super) fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::Failed, format!("the result is wrong: {what}"))
}
