//! Timestamps: timing events of a queue, converted to nanoseconds of one clock per device.

#![allow(unsafe_code, reason = "calls the driver")]

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::Result;
use runtime_core::backend::UnreadTimestamps;

use crate::context::PrimaryContext;
use crate::driver::abi::{Event, Stream};

/// Time of the first event that is read: far enough from zero for older events.
const EPOCH_NS: f64 = (1_u64 << 50) as f64;
/// Longest time measured from one reference event: the driver returns milliseconds as an `f32`, whose 24 bits are too coarse for
/// more.
const MAX_ELAPSED_MS: f32 = 100.0;

/// The clock of a device: a reference event and its time, from which other events are measured.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    primary: Arc<PrimaryContext>,
    reference: Mutex<Option<(Event, f64)>>,
}

impl DeviceClock {
    pub(crate) fn new(primary: &Arc<PrimaryContext>) -> Self {
        Self { primary: Arc::clone(primary), reference: Mutex::default() }
    }

    /// The time of a complete event, and the event that is now free: this one or the previous reference.
    fn read(&self, event: Event) -> Result<(f64, Option<Event>)> {
        let mut reference = self.reference.lock();
        let Some((previous, previous_ns)) = *reference else {
            *reference = Some((event, EPOCH_NS));
            return Ok((EPOCH_NS, None));
        };
        let elapsed_ms = self.primary.query("cuEventElapsedTime", 0.0_f32, |driver, elapsed_ms| {
            // SAFETY: both events are alive and of the current context, and the out-parameter is writable.
            unsafe { (driver.cuEventElapsedTime)(elapsed_ms, previous.0, event.0) }
        })?;
        let now_ns = previous_ns + f64::from(elapsed_ms) * 1e6;
        if elapsed_ms.abs() > MAX_ELAPSED_MS {
            *reference = Some((event, now_ns));
            return Ok((now_ns, Some(previous)));
        }
        Ok((now_ns, Some(event)))
    }
}

impl Drop for DeviceClock {
    fn drop(&mut self) {
        self.primary.close_events(self.reference.get_mut().take().map(|(event, _)| event));
    }
}

/// The timestamps of a queue.
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    pub(crate) unread: UnreadTimestamps<Event>,
    free: Vec<Event>,
}

impl Timestamps {
    /// Records a timestamp on the stream.
    pub(crate) fn record(&mut self, primary: &PrimaryContext, stream: Stream, ticket: u64) -> Result<Event> {
        let event = match self.free.pop() {
            Some(event) => event,
            None => primary.open_event(true)?,
        };
        // SAFETY: event and stream are alive and of one context.
        let code = unsafe { (primary.driver.cuEventRecord)(event.0, stream.0) };
        if !code.is_success() {
            self.free.push(event);
            return Err(primary.fail("cuEventRecord", code));
        }
        self.unread.add(ticket, event);
        Ok(event)
    }

    /// Discards the oldest timestamp if there are too many and it has ended; returns its event.
    pub(crate) fn discard_oldest(&mut self, ended: u64) -> Option<Event> {
        let event = self.unread.discard(ended)?;
        self.free.push(event);
        Some(event)
    }

    /// The time of a complete event, which nothing else uses.
    pub(crate) fn read(&mut self, clock: &DeviceClock, event: Event) -> Result<u64> {
        let (time_ns, free) = clock.read(event)?;
        self.free.extend(free);
        Ok(round_ns(time_ns))
    }

    /// Removes all events.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Event> {
        self.unread.drain().chain(self.free.drain(..))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and times are positive"
)]
fn round_ns(time_ns: f64) -> u64 {
    time_ns.round() as u64
}
