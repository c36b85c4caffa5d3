//! Kernel information, as C structures.

use super::DType;

/// Properties of a kernel; [`UNKNOWN`] where the driver does not report one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelInfo {
    /// End of the last field.
    pub struct_size: u32,
    /// Registers per work-item.
    pub registers: u32,
    /// Bytes spilled to memory per work-item.
    pub spilled_bytes: u32,
    /// Bytes of work-group memory that the code declares.
    pub shared_bytes: u32,
    /// Maximum number of work-items in a group of this kernel.
    pub max_group_items: u32,
    /// Group size fixed by the code; all zero if the launch chooses it.
    pub group_size: [u32; 3],
    /// The parameters; null if the code does not describe them. Borrowed from the kernel.
    pub params: *const Param,
    /// Number of `params`.
    pub param_count: usize,
    /// Version of the instruction set that the code targets, in the driver's numbering (CUDA: 90 for
    /// `sm_90`); 0 means `UNKNOWN`.
    pub binary_version: u32,
    /// Version of the virtual instruction set that it was compiled from (CUDA: 90 for `compute_90`); 0 means
    /// `UNKNOWN`.
    pub virtual_version: u32,
    /// The group size should be a multiple of this number; 0 means `UNKNOWN`.
    pub preferred_multiple: u32,
    /// Bytes of private memory per work-item, including spills.
    pub private_bytes: u32,
}

/// Occupancy of a compute unit by the groups of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Occupancy {
    /// End of the last field.
    pub struct_size: u32,
    /// Groups that are resident on one compute unit at the same time.
    pub groups: u32,
    /// Sub-groups of those groups.
    pub sub_groups: u32,
    /// Maximum number of sub-groups resident on one compute unit, for any kernel.
    pub max_sub_groups: u32,
}

/// A value that the driver does not report.
pub const UNKNOWN: u32 = u32::MAX;

/// One parameter of a kernel. Frozen.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// `ARG_*`. `ARG_SCALAR` without an element type takes any value: a scalar or a structure.
    pub kind: u8,
    /// `ACCESS_*` bits of a tensor; older cores ignore `ACCESS_STRIDED` and `ACCESS_UNKNOWN`.
    pub access: u8,
    /// Zero.
    pub reserved: u16,
    /// Element type; all zero if the code does not state it.
    pub dtype: DType,
}
