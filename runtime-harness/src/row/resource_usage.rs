//! The resources that the measured code uses, as the driver reports them.

use runtime_core::{Kernel, LaunchConfig, Occupancy as CoreOccupancy};
use serde::{Deserialize, Serialize};

/// A kernel's resource usage; `None` for what the driver does not report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceUsage {
    /// Registers per work-item.
    pub registers: Option<u32>,
    /// Bytes spilled to memory per work-item.
    pub spilled_bytes: Option<u32>,
    /// Bytes of private memory per work-item, including spills.
    pub private_bytes: Option<u32>,
    /// Bytes of work-group memory that the code declares.
    pub shared_bytes: Option<u32>,
    /// Maximum number of work-items in a group.
    pub max_group_items: Option<u32>,
    /// The group size should be a multiple of this number.
    pub preferred_multiple: Option<u32>,
    /// Version of the instruction set, in the driver's numbering.
    pub binary_version: Option<u32>,
    /// Version of the virtual instruction set.
    pub virtual_version: Option<u32>,
    /// Occupancy with the geometry of the spec.
    pub occupancy: Option<Occupancy>,
}

/// Occupancy of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Resident groups.
    pub groups: u32,
    /// Their sub-groups.
    pub sub_groups: u32,
    /// Limit of the resident sub-groups.
    pub max_sub_groups: u32,
    /// `sub_groups / max_sub_groups`.
    pub fraction: f64,
}

impl ResourceUsage {
    /// The usage of a kernel that is launched with `config` and so much dynamic work-group memory.
    pub(crate) fn of(kernel: &Kernel, config: &LaunchConfig, local_bytes: u64) -> Self {
        let occupancy = config.geometry().and_then(|geometry| kernel.occupancy(geometry, local_bytes).ok());
        let info = kernel.info();
        Self {
            registers: info.registers,
            spilled_bytes: info.spilled_bytes,
            private_bytes: info.private_bytes,
            shared_bytes: info.shared_bytes,
            max_group_items: info.max_group_items,
            preferred_multiple: info.preferred_multiple,
            binary_version: info.binary_version,
            virtual_version: info.virtual_version,
            occupancy: occupancy.map(Occupancy::from),
        }
    }

    /// A warning about spilled registers, if there are any.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let spilled = self.spilled_bytes.filter(|bytes| *bytes > 0)?;
        Some(format!("{spilled} bytes of each work-item are spilled to memory"))
    }
}

impl From<CoreOccupancy> for Occupancy {
    fn from(occupancy: CoreOccupancy) -> Self {
        Self {
            groups: occupancy.groups,
            sub_groups: occupancy.sub_groups,
            max_sub_groups: occupancy.max_sub_groups,
            fraction: occupancy.fraction(),
        }
    }
}
