//! Measures peaks of a device: all of them, or again those that a kernel has beaten.

use std::time::{SystemTime, UNIX_EPOCH};

use runtime_core::{CommonRuntime, Error, Result};

use super::bench::Bench;
use super::{Effort, Figure, MemoryLevel, Peak, Subject, compute, launches, memory, transfers};
use crate::crash_context::CrashContext;
use crate::describe;

/// Some peaks of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Operations per second.
    Compute,
    /// The bandwidth of a memory level, and that within so many bytes: a device may have more of the level than it tells.
    Memory { level: String, working_set_bytes: u64 },
}

impl Part {
    /// What one attempt to measure it again covers: the level of a working set may have another name afterwards.
    pub(super) fn attempted(&self) -> Self {
        match self {
            Self::Compute => Self::Compute,
            Self::Memory { working_set_bytes, .. } => {
                Self::Memory { level: String::new(), working_set_bytes: *working_set_bytes }
            }
        }
    }
}

/// Measures the peaks of a device; `progress` is called with what is about to be measured.
///
/// What the device does not have, or does not do right, is in [`Peak::missing`] with its reason.
///
/// # Errors
/// `Unsupported` for a simulated device, and for one that cannot be described or measured at all.
pub fn measure(device: &dyn CommonRuntime, effort: Effort, progress: &mut dyn FnMut(&str)) -> Result<Peak> {
    measure_with(device, effort, &mut |bench, peak| {
        progress("arithmetic");
        compute::measure(bench, peak);
        progress("memory");
        memory::measure(bench, peak);
        progress("transfers");
        transfers::measure(bench, peak);
        progress("launches");
        launches::measure(bench, peak);
    })
}

/// Measures some peaks again, thoroughly: the samples of a few quick figures are too short to tell whether the machine is busy.
///
/// # Errors
/// As [`measure`].
pub(crate) fn measure_again(device: &dyn CommonRuntime, part: &Part) -> Result<Peak> {
    measure_with(device, Effort::Full, &mut |bench, peak| match part {
        Part::Compute => compute::measure(bench, peak),
        Part::Memory { level, working_set_bytes } => {
            memory::measure_again(bench, (level, *working_set_bytes), peak);
        }
    })
}

fn measure_with(
    device: &dyn CommonRuntime,
    effort: Effort,
    figures: &mut dyn FnMut(&Bench<'_>, &mut Peak),
) -> Result<Peak> {
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
    figures(&bench, &mut peak);
    let disturbance = bench.disturbance();
    peak.figures_mut().for_each(|figure| figure.disturbance.clone_from(&disturbance));
    match (peak.compute.is_empty() && peak.memory.is_empty(), peak.missing.first()) {
        (true, Some(missing)) => Err(Error::unsupported(format!("{}: {}", missing.what, missing.reason))),
        _ => Ok(peak),
    }
}

impl Peak {
    /// What may have made operations or bandwidths smaller than they are; `None`: nothing did.
    #[must_use]
    pub fn disturbance(&self) -> Option<&str> {
        let compute = self.compute.iter().map(|compute| &compute.gflops_per_s);
        let mut figures = compute.chain(self.memory.iter().filter_map(MemoryLevel::best));
        figures.find_map(|figure| figure.disturbance.as_deref())
    }

    /// The figures that limits are computed from.
    pub(super) fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        let compute = self.compute.iter_mut().map(|compute| &mut compute.gflops_per_s);
        compute.chain(self.memory.iter_mut().flat_map(|level| level.figures_mut().into_iter().flatten()))
    }
}
