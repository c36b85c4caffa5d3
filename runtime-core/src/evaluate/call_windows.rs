//! Times calls that are made elsewhere, as in another process.

use std::time::{Duration, Instant};

use super::timing_target::{TimingTarget, Window};
use super::{Clock, ClockChoice, Cost, Measurement, Moment, Observer, Timing, Validation};
use super::{measurement, timing_loop};
use crate::model::throttle_reasons::ThrottleReasons;
use crate::{Error, Result};

/// Whoever makes the calls of windows, and times them by the host's clock.
pub trait CallWindows: Send {
    /// Makes calls of the kernel, waits for them, and returns how long that took, in nanoseconds.
    ///
    /// # Errors
    /// Those of the kernel.
    fn calls(&mut self, number: u64) -> Result<f64>;

    /// Whether each call needs its initial contents: then it is a window of its own.
    fn restores_each_call(&self) -> bool {
        false
    }

    /// The same with a function that does nothing.
    ///
    /// # Errors
    /// As for [`calls`](Self::calls).
    fn empty_calls(&mut self, number: u64) -> Result<f64>;

    /// Evicts everything from the caches.
    ///
    /// # Errors
    /// Any error of that.
    fn flush_cache(&mut self) -> Result<()>;

    /// Why the processor runs slower than it could; `None` if it does not report that.
    fn throttle_reasons(&mut self) -> Option<ThrottleReasons> {
        None
    }
}

/// Times calls by the loop that times kernels of this process, so that its times compare with those of an
/// [`Evaluation`](super::Evaluation). Results are not checked.
///
/// # Errors
/// `InvalidArgument` for an inconsistent timing; `Unsupported` for another clock than [`Clock::HostWall`]; those of the calls.
pub async fn time_calls(
    calls: &mut dyn CallWindows,
    timing: &Timing,
    cost: Cost,
    observer: &mut Option<Observer<'_>>,
) -> Result<Measurement> {
    timing.check()?;
    cost.check()?;
    if !matches!(timing.clock, ClockChoice::Auto | ClockChoice::Use(Clock::HostWall)) {
        let message = format!("clock {} does not time calls of another process; use host_wall", timing.clock);
        return Err(Error::unsupported(message));
    }
    let mut target = CallTarget { calls, observer, begin: Instant::now(), count: 0 };
    let samples = timing_loop::run(&mut target, timing, None).await?;
    let overhead_ns = timing_loop::overhead(&mut target, samples.number).await?;
    let made = measurement::Made { clock: Clock::HostWall, calls: target.count, transfer_bytes: None };
    measurement::of_samples(samples, made, (timing, cost), (overhead_ns, Validation::default()))
}

struct CallTarget<'c, 'o, 'f> {
    calls: &'c mut dyn CallWindows,
    observer: &'o mut Option<Observer<'f>>,
    begin: Instant,
    count: u64,
}

impl TimingTarget for CallTarget<'_, '_, '_> {
    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn wake_time(&mut self) -> Duration {
        Duration::ZERO
    }

    fn setup(&mut self) {}

    fn restores_each_call(&self) -> bool {
        self.calls.restores_each_call()
    }

    fn observe(&mut self, moment: Moment) {
        if let Some(observer) = self.observer {
            observer(moment);
        }
    }

    fn throttle_reasons(&mut self) -> Option<ThrottleReasons> {
        self.calls.throttle_reasons()
    }

    fn flush_cache(&mut self) -> Result<()> {
        self.calls.flush_cache()
    }

    fn pause(&mut self, duration: Duration) {
        if !duration.is_zero() {
            std::thread::sleep(duration);
        }
    }

    async fn window(&mut self, number: u64) -> Result<Window> {
        self.count += number;
        self.calls.calls(number).map(|elapsed_ns| Window { elapsed_ns, transfer_ns: 0.0 })
    }

    async fn empty_window(&mut self, number: u64) -> Result<Option<f64>> {
        self.calls.empty_calls(number).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::evaluate::Warmup;

    /// A kernel of 3 µs per call, and a handshake of 1 µs per window.
    struct Made(Vec<u64>);

    impl CallWindows for Made {
        fn calls(&mut self, number: u64) -> Result<f64> {
            self.0.push(number);
            Ok(1000.0 + 3000.0 * number as f64)
        }

        fn empty_calls(&mut self, _: u64) -> Result<f64> {
            Ok(1000.0)
        }

        fn flush_cache(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut future = std::pin::pin!(future);
        loop {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
        }
    }

    #[test]
    fn windows_of_calls_become_samples() {
        let timing = Timing { repeat: 3, number: Some(10), warmup: Warmup::Calls(2), ..Timing::default() };
        let mut made = Made(Vec::new());
        let measured = block_on(time_calls(&mut made, &timing, Cost::default(), &mut None)).unwrap();
        assert_eq!(measured.samples_ns, [3100.0; 3]);
        assert_eq!(
            (measured.overhead_ns, measured.clock, measured.calls),
            (Some(100.0), Clock::HostWall, 32)
        );
        assert_eq!(made.0, [1, 1, 10, 10, 10]);
    }

    #[test]
    fn a_clock_of_the_device_is_refused() {
        let timing = Timing { clock: Clock::DeviceBatch.into(), ..Timing::default() };
        let error =
            block_on(time_calls(&mut Made(Vec::new()), &timing, Cost::default(), &mut None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
