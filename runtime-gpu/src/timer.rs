//! Timestamps: timing events of a queue, as nanoseconds of one clock per device.

#![allow(unsafe_code, reason = "calls the driver")]

use std::collections::BTreeMap;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

use crate::context::Primary;
use crate::driver::Driver;
use crate::driver::abi::{Event, Stream};

/// Where the clock begins: far enough from zero for events that are older than the first one that is read.
const EPOCH_NS: f64 = (1_u64 << 50) as f64;
/// The driver tells the time between two events in milliseconds of 24 bits: over more than this it is too coarse.
const PRECISE_MS: f32 = 100.0;
/// Timestamps of one queue that may wait to be read; older ones are forgotten.
const UNREAD: usize = 1 << 14;

/// The clock of a device: an event whose time is known, from which others are measured.
#[derive(Debug, Default)]
pub(crate) struct DeviceClock(Mutex<Option<(Event, f64)>>);

impl DeviceClock {
    /// The time of an event that has passed, and an event that is free now: this one or an earlier reference.
    fn read(&self, primary: &Primary, event: Event) -> Result<(f64, Option<Event>)> {
        let mut reference = self.0.lock();
        let Some((known, known_ns)) = *reference else {
            *reference = Some((event, EPOCH_NS));
            return Ok((EPOCH_NS, None));
        };
        let elapsed_ms = between(primary, known, event)?;
        let now_ns = known_ns + f64::from(elapsed_ms) * 1e6;
        if elapsed_ms.abs() > PRECISE_MS {
            *reference = Some((event, now_ns));
            return Ok((now_ns, Some(known)));
        }
        Ok((now_ns, Some(event)))
    }

    /// Ends the reference. The context is current.
    pub(crate) fn close(&self, driver: &Driver) {
        if let Some((event, _)) = self.0.lock().take() {
            // SAFETY: ours, and used by nobody any more.
            let _ = unsafe { (driver.cuEventDestroy_v2)(event) };
        }
    }
}

fn between(primary: &Primary, begin: Event, end: Event) -> Result<f32> {
    let _current = primary.enter()?;
    let mut elapsed_ms = 0.0;
    // SAFETY: both events are alive and of the current context, and the out-parameter is writable.
    let code = unsafe { (primary.driver.cuEventElapsedTime)(&raw mut elapsed_ms, begin, end) };
    primary.check("cuEventElapsedTime", code)?;
    Ok(elapsed_ms)
}

/// The timestamps of a queue.
#[derive(Debug, Default)]
pub(crate) struct Timestamps {
    unread: BTreeMap<u64, Event>,
    free: Vec<Event>,
}

impl Timestamps {
    /// Records a timestamp on the stream.
    pub(crate) fn record(&mut self, primary: &Primary, stream: Stream, ticket: u64) -> Result<Event> {
        let event = match self.free.pop() {
            Some(event) => event,
            None => primary.open_event(true)?,
        };
        // SAFETY: event and stream are alive and of one context.
        let code = unsafe { (primary.driver.cuEventRecord)(event, stream) };
        if !code.is_success() {
            self.free.push(event);
            return Err(primary.fail("cuEventRecord", code));
        }
        self.unread.insert(ticket, event);
        Ok(event)
    }

    /// The oldest timestamp, once there are too many, if it has passed.
    pub(crate) fn forget(&mut self, ended: u64) -> Option<Event> {
        let (&ticket, &event) = self.unread.first_key_value()?;
        if self.unread.len() < UNREAD || ticket > ended {
            return None;
        }
        self.unread.remove(&ticket);
        self.free.push(event);
        Some(event)
    }

    /// The event of a ticket, which is not looked for again.
    pub(crate) fn take(&mut self, ticket: u64) -> Result<Event> {
        self.unread.remove(&ticket).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("ticket {ticket} is no timestamp, or was read before"))
        })
    }

    /// Puts an event back whose work has not ended.
    pub(crate) fn keep(&mut self, ticket: u64, event: Event) {
        self.unread.insert(ticket, event);
    }

    /// The time of an event that has passed and nobody else uses.
    pub(crate) fn read(&mut self, primary: &Primary, event: Event) -> Result<u64> {
        let (time_ns, free) = primary.clock.read(primary, event)?;
        self.free.extend(free);
        Ok(whole(time_ns))
    }

    /// Ends all events. The context is current.
    pub(crate) fn close(&mut self, driver: &Driver) {
        let unread = std::mem::take(&mut self.unread).into_values();
        for event in unread.chain(self.free.drain(..)) {
            // SAFETY: ours, and used by nobody any more.
            let _ = unsafe { (driver.cuEventDestroy_v2)(event) };
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and times are positive"
)]
fn whole(time_ns: f64) -> u64 {
    time_ns.round() as u64
}
