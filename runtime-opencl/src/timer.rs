//! Timestamps: when markers of a queue passed, by the device's clock.

#![allow(unsafe_code, reason = "asks the driver")]

use std::collections::BTreeMap;

use cl3::ext::CL_PROFILING_COMMAND_END;
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::driver::handle::{Event, Owned};

/// Timestamps of one queue that may wait to be read; older ones are forgotten.
const MAX_UNREAD: usize = 1 << 14;

/// The timestamps of a queue.
#[derive(Debug, Default)]
pub(crate) struct Timestamps(BTreeMap<u64, Owned<Event>>);

impl Timestamps {
    pub(crate) fn add(&mut self, ticket: u64, event: Owned<Event>) {
        if self.0.len() >= MAX_UNREAD {
            self.0.pop_first();
        }
        self.0.insert(ticket, event);
    }

    /// Takes out the event of a ticket, which is not looked for again.
    pub(crate) fn take(&mut self, ticket: u64) -> Result<Owned<Event>> {
        self.0.remove(&ticket).ok_or_else(|| {
            let message = format!(
                "ticket {ticket} is no timestamp, was read before, or has {MAX_UNREAD} later ones; read each once, and in time"
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

/// When a command that has ended did so, in nanoseconds of the device's clock.
pub(crate) fn end_time_ns(context: &SharedContext, event: &Owned<Event>) -> Result<u64> {
    let mut time_ns = 0_u64;
    context.check("clGetEventProfilingInfo", |cl| {
        let (size, value) = (size_of::<u64>(), (&raw mut time_ns).cast());
        // SAFETY: the event is alive, and the time is of that size.
        Some(unsafe {
            (cl.clGetEventProfilingInfo?)(
                event.raw(),
                CL_PROFILING_COMMAND_END,
                size,
                value,
                std::ptr::null_mut(),
            )
        })
    })?;
    Ok(time_ns)
}
