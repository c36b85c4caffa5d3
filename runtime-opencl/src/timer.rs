//! Timestamps: when markers of a queue completed, by the device's clock.

#![allow(unsafe_code, reason = "queries the driver")]

use cl3::ext::CL_PROFILING_COMMAND_END;
use runtime_core::Result;

use crate::context::SharedContext;
use crate::driver::call;
use crate::driver::handle::{Event, Owned};

/// When a completed command ended, in nanoseconds of the device's clock.
pub(crate) fn end_time_ns(context: &SharedContext, event: &Owned<Event>) -> Result<u64> {
    let mut time_ns = 0_u64;
    let (key, value) = (CL_PROFILING_COMMAND_END, (&raw mut time_ns).cast());
    let (event, size, none) = (event.raw(), size_of::<u64>(), std::ptr::null_mut());
    // SAFETY: the event is alive, and the time has that size.
    unsafe { call!(context.check, clGetEventProfilingInfo(event, key, size, value, none)) }?;
    Ok(time_ns)
}
