//! The resources that the measured code uses, as the driver reports them.

use runtime_core::code::KernelInfo;
use runtime_core::{Kernel, LaunchConfig};
use serde::{Deserialize, Serialize};

/// A kernel's resource usage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// What the driver reports of the kernel.
    #[serde(flatten)]
    pub kernel: KernelInfo,
    /// Occupancy with the geometry of the spec; `None` if the driver does not report it.
    pub occupancy: Option<Occupancy>,
}

/// Occupancy of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// What is resident.
    #[serde(flatten)]
    pub resident: runtime_core::code::Occupancy,
    /// `sub_groups / max_sub_groups`.
    pub fraction: f64,
}

impl ResourceUsage {
    /// The usage of a kernel that is launched with `config` and so much dynamic work-group memory.
    pub(crate) fn of(kernel: &Kernel, config: &LaunchConfig, local_bytes: u64) -> Self {
        let resident = config.geometry().and_then(|geometry| kernel.occupancy(geometry, local_bytes).ok());
        let occupancy = resident.map(|resident| Occupancy { resident, fraction: resident.fraction() });
        // These fields describe launches, not resources.
        let kernel = KernelInfo { group_size: None, params: None, ..kernel.info().clone() };
        Self { kernel, occupancy }
    }

    /// That of code which is loaded in another process: nothing is known of it.
    pub(crate) fn unknown() -> Self {
        Self { kernel: KernelInfo::default(), occupancy: None }
    }

    /// A warning about spilled registers, if there are any.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let spilled = self.kernel.spilled_bytes.filter(|bytes| *bytes > 0)?;
        Some(format!("{spilled} bytes of each work-item are spilled to memory"))
    }
}
