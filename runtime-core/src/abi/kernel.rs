//! What a backend tells of its kernels.

use super::DType;

/// What a driver says of a kernel. [`UNKNOWN`] where it does not say.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelInfo {
    /// End of the last field.
    pub struct_size: u32,
    /// Registers of one work-item.
    pub registers: u32,
    /// Bytes of one work-item that were spilled to memory.
    pub spilled_bytes: u32,
    /// Bytes of work-group memory fixed by the code.
    pub shared_bytes: u32,
    /// Most work-items of a group with this kernel.
    pub max_group_items: u32,
    /// Group size fixed by the code, all zero if the launch chooses.
    pub group_size: [u32; 3],
    /// The parameters, null if the code does not say. Borrowed from the kernel.
    pub params: *const Param,
    /// Number of `params`.
    pub param_count: usize,
    /// Version of the instruction set that the code is for, as the driver counts (CUDA: 90 for `sm_90`); 0 as `UNKNOWN`.
    /// Since minor 2, like what follows.
    pub binary_version: u32,
    /// Version of the virtual instruction set that it was compiled from (CUDA: 90 for `compute_90`); 0 as `UNKNOWN`.
    pub virtual_version: u32,
    /// What the size of a group should be a multiple of; 0 as `UNKNOWN`.
    pub preferred_multiple: u32,
    /// Bytes of memory of its own that one work-item needs, spilled ones included.
    pub private_bytes: u32,
}

/// How much of a compute unit the groups of a launch can fill at once. Since minor 2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Occupancy {
    /// End of the last field.
    pub struct_size: u32,
    /// Groups that one compute unit runs at once.
    pub groups: u32,
    /// Sub-groups of those groups.
    pub sub_groups: u32,
    /// Most sub-groups that one compute unit runs at once, whatever the kernel.
    pub max_sub_groups: u32,
}

/// A figure that a driver does not tell.
pub const UNKNOWN: u32 = u32::MAX;

/// One parameter of a kernel. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// `ARG_*`.
    pub kind: u8,
    /// `ACCESS_*` of a tensor; older hosts ignore `ACCESS_STRIDED`.
    pub access: u8,
    /// Zero.
    pub reserved: u16,
    /// Element type; all zero if the code does not say.
    pub dtype: DType,
}
