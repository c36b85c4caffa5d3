//! What the timing loop needs of whatever it times.

use std::future::Future;
use std::time::Duration;

use super::Moment;
use crate::Result;
use crate::model::throttle_reasons::ThrottleReasons;

/// The operations that the timing loop performs.
pub(crate) trait TimingTarget: Send {
    /// The host's clock, in nanoseconds since an arbitrary point in time.
    fn now_ns(&mut self) -> u64;

    /// How long the device must work before its clocks are up.
    fn wake_time(&mut self) -> Duration;

    /// Runs the caller's setup hook before a window.
    fn setup(&mut self);

    /// Whether each call needs its initial contents, and so a window of its own.
    fn restores_each_call(&self) -> bool {
        false
    }

    /// Writes the initial contents that each call needs.
    fn restore(&mut self) -> Result<()> {
        Ok(())
    }

    /// Calls the caller's observer.
    fn observe(&mut self, moment: Moment);

    /// Why the device runs slower than it could, now or since the last call; `None` if it does not report that.
    fn throttle_reasons(&mut self) -> Option<ThrottleReasons>;

    /// Evicts everything from the caches.
    fn flush_cache(&mut self) -> Result<()>;

    /// Lets the device cool down.
    fn pause(&mut self, duration: Duration);

    /// Times `number` calls and waits for them.
    fn window(&mut self, number: u64) -> impl Future<Output = Result<Window>> + Send;

    /// Times `number` calls of a no-op kernel with the same clock, in nanoseconds; `None` if there is no such
    /// kernel.
    fn empty_window(&mut self, number: u64) -> impl Future<Output = Result<Option<f64>>> + Send;
}

/// A timed window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Window {
    /// Duration by the evaluation's clock, including transfers.
    pub(crate) elapsed_ns: f64,
    /// Duration of the transfers, by the host's clock.
    pub(crate) transfer_ns: f64,
}
