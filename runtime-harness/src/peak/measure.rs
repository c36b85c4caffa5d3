//! Measures all peaks of a device.

use std::time::{SystemTime, UNIX_EPOCH};

use runtime_core::{CommonRuntime, Error, Result};

use super::bench::Bench;
use super::{Effort, Peak, Subject, compute, launches, memory, transfers};
use crate::crash_context::CrashContext;
use crate::describe;

/// Measures the peaks of a device; `progress` is called with what is about to be measured.
///
/// What the device does not have, or does not do right, is in [`Peak::missing`] with its reason.
///
/// # Errors
/// `Unsupported` for a simulated device, and for one that cannot be described or measured at all.
pub fn measure(device: &dyn CommonRuntime, effort: Effort, progress: &mut dyn FnMut(&str)) -> Result<Peak> {
    let info = device.info();
    if info.properties.flag("simulated") {
        return Err(Error::unsupported("the device is simulated, so its speed means nothing"));
    }
    let subject = Subject::of(&describe::device(info));
    let subject = subject.ok_or_else(|| Error::unsupported("the device has no name"))?;
    let _context = CrashContext::enter(format!("while the peaks of {} were measured", subject.device));
    let bench = Bench::new(device, effort)?;
    let measured = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let mut peak = Peak {
        subject,
        measured_unix_s: measured,
        compute: Vec::new(),
        memory: Vec::new(),
        transfers: Vec::new(),
        launches: None,
        missing: Vec::new(),
    };
    progress("arithmetic");
    compute::measure(&bench, &mut peak);
    progress("memory");
    memory::measure(&bench, &mut peak);
    progress("transfers");
    transfers::measure(&bench, &mut peak);
    progress("launches");
    launches::measure(&bench, &mut peak);
    match (peak.compute.is_empty() && peak.memory.is_empty(), peak.missing.first()) {
        (true, Some(missing)) => Err(Error::unsupported(format!("{}: {}", missing.what, missing.reason))),
        _ => Ok(peak),
    }
}
