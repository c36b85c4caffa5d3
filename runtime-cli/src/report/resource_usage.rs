//! The resources that the measured code uses, as the driver reports them.

use runtime_core::{Kernel, KernelInfo, LaunchConfig, Occupancy};
use serde_json::{Value, json};

/// A kernel's resource usage, and its occupancy with the geometry of the spec.
#[derive(Debug)]
pub(crate) struct ResourceUsage {
    info: KernelInfo,
    occupancy: Option<Occupancy>,
}

impl ResourceUsage {
    /// The usage of a kernel that is launched with `config` and so much dynamic work-group memory.
    pub(crate) fn of(kernel: &Kernel, config: &LaunchConfig, local_bytes: u64) -> Self {
        let occupancy = config.geometry().and_then(|geometry| kernel.occupancy(geometry, local_bytes).ok());
        Self { info: kernel.info().clone(), occupancy }
    }

    pub(crate) fn to_json(&self) -> Value {
        let occupancy = self.occupancy.map(|occupancy| {
            json!({
                "groups": occupancy.groups,
                "sub_groups": occupancy.sub_groups,
                "max_sub_groups": occupancy.max_sub_groups,
                "fraction": occupancy.fraction(),
            })
        });
        json!({
            "registers": self.info.registers,
            "spilled_bytes": self.info.spilled_bytes,
            "private_bytes": self.info.private_bytes,
            "shared_bytes": self.info.shared_bytes,
            "max_group_items": self.info.max_group_items,
            "preferred_multiple": self.info.preferred_multiple,
            "binary_version": self.info.binary_version,
            "virtual_version": self.info.virtual_version,
            "occupancy": occupancy,
        })
    }

    /// A warning about spilled registers, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        let spilled = self.info.spilled_bytes.filter(|bytes| *bytes > 0)?;
        Some(format!("{spilled} bytes of each work-item are spilled to memory"))
    }
}
