//! Timestamps: when markers of a queue completed, by the device's clock.

#![allow(unsafe_code, reason = "queries the driver")]

use std::collections::BTreeMap;

use cl3::ext::CL_PROFILING_COMMAND_END;
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::driver::handle::{Event, Owned};

/// Maximum number of unread timestamps of a queue; older ones are dropped.
const MAX_UNREAD: usize = 1 << 14;

/// The unread timestamps of a queue, by ticket.
#[derive(Debug, Default)]
pub(crate) struct Timestamps(BTreeMap<u64, Owned<Event>>);

impl Timestamps {
    pub(crate) fn add(&mut self, ticket: u64, event: Owned<Event>) {
        if self.0.len() >= MAX_UNREAD {
            self.0.pop_first();
        }
        self.0.insert(ticket, event);
    }

    /// Removes the event of a ticket: each timestamp is read once.
    pub(crate) fn take(&mut self, ticket: u64) -> Result<Owned<Event>> {
        self.0.remove(&ticket).ok_or_else(|| {
            let message = format!(
                "ticket {ticket} is not an unread timestamp; read each timestamp once, before {MAX_UNREAD} later ones"
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

/// When a completed command ended, in nanoseconds of the device's clock.
pub(crate) fn end_time_ns(context: &SharedContext, event: &Owned<Event>) -> Result<u64> {
    let mut time_ns = 0_u64;
    context.check("clGetEventProfilingInfo", |cl| {
        let (size, value) = (size_of::<u64>(), (&raw mut time_ns).cast());
        // SAFETY: the event is alive, and the time has that size.
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
