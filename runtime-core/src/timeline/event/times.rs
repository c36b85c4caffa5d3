//! When the work of an event was submitted, started and ended.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::timeline::Timeline;
use crate::timeline::event::Event;
use crate::timeline::event::Source;
use crate::{Error, Result};

/// The clock of a start and an end. Times of different clocks cannot be compared.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventClock {
    /// The clock of the device with this name; its zero is arbitrary.
    Device(String),
    /// The clock of the host; its zero is when the device started its first thread for host tasks.
    Host,
}

impl fmt::Display for EventClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(name) => write!(f, "{name}"),
            Self::Host => f.write_str("host"),
        }
    }
}

/// When the work of an event was submitted, started and ended: see [`Event::times`].
///
/// ```
/// # use runtime_core::{QueueOptions, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
/// let event = queue.timed(|queue| queue.launch_noop())?;
/// event.wait()?;
/// let times = event.times()?;
/// println!("{} ns by the clock of {}", times.end_ns - times.start_ns, times.clock);
/// assert_eq!(times.clock.to_string(), "null:0");
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTimes {
    /// When the program submitted it, by the clock of the host, whatever `clock` is.
    pub submitted: Instant,
    /// The clock of `start_ns` and `end_ns`.
    pub clock: EventClock,
    /// When the work started, in nanoseconds.
    pub start_ns: u64,
    /// When the work ended, in nanoseconds.
    pub end_ns: u64,
}

/// The timestamps before and after some submissions.
#[derive(Debug)]
pub(crate) struct Stamps {
    pub(crate) submitted: Instant,
    /// Their tickets.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Both in nanoseconds. A backend gives each of them once.
    read: OnceLock<Result<(u64, u64)>>,
}

impl Stamps {
    pub(crate) fn new(submitted: Instant, start: u64, end: u64) -> Arc<Self> {
        Arc::new(Self { submitted, start, end, read: OnceLock::new() })
    }

    fn read(&self, timeline: &Arc<Timeline>) -> Result<EventTimes> {
        // It follows the work immediately.
        timeline.wait(self.end, None)?;
        let both = || Ok((timeline.read_timestamp(self.start)?, timeline.read_timestamp(self.end)?));
        let (start_ns, end_ns) = self.read.get_or_init(both).clone()?;
        let clock = EventClock::Device(timeline.device_name().to_owned());
        Ok(EventTimes { submitted: self.submitted, clock, start_ns, end_ns })
    }
}

impl Timeline {
    /// Reads a timestamp in nanoseconds of the device's clock.
    ///
    /// # Errors
    /// `NotFound` if it is not a timestamp, or was read before; `Cancelled` if the device is closed.
    pub(crate) fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        let device = self.device.upgrade().ok_or_else(|| self.cancelled())?;
        device.state().check()?;
        let mut nanoseconds = 0;
        self.raw("read_timestamp", |calls, queue| {
            // SAFETY: the queue is open and the out-parameter is writable.
            unsafe { (calls.read_timestamp)(queue, ticket, &raw mut nanoseconds) }
        })?;
        Ok(nanoseconds)
    }
}

impl Event {
    /// When the work was submitted, started and ended. Known of what [`Queue::timed`](crate::Queue::timed) submits, and of host
    /// tasks. No time is estimated.
    ///
    /// # Errors
    /// `Unsupported` if the times were not recorded; `InvalidArgument` if the work has not ended; its failure; `Cancelled` if the
    /// device was closed before the times were first read; `NotFound` if thousands of later timestamps have displaced them.
    pub fn times(&self) -> Result<EventTimes> {
        if !self.is_done()? {
            return Err(Error::invalid(
                "the work has not ended, so its times are not known yet; wait for it",
            ));
        }
        match (&self.timeline, self.source(), self.stamps()) {
            (Some(timeline), _, Some(stamps)) => stamps.read(timeline.real()),
            (None, Some(Source::Signal(signal)), _) => signal.times().ok_or_else(unrecorded),
            _ => Err(unrecorded()),
        }
    }
}

fn unrecorded() -> Error {
    Error::unsupported(
        "the times of this work were not recorded; submit it with `Queue::timed`, on a queue with `timestamps`",
    )
}
