//! What the driver says of a kernel, and an embedded device of a run.

use crate::{Access, ArgKind, DType};

/// What the driver says of a kernel; `None` where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// Registers of one work-item.
    pub registers: Option<u32>,
    /// Bytes of one work-item that were spilled to memory.
    pub spilled_bytes: Option<u32>,
    /// Bytes of work-group memory fixed by the code.
    pub shared_bytes: Option<u32>,
    /// Most work-items of a group with this kernel.
    pub max_group_items: Option<u32>,
    /// Group size fixed by the code.
    pub group_size: Option<[u32; 3]>,
    /// The parameters, if the code says.
    pub params: Option<Vec<Param>>,
    /// Version of the instruction set that the code is for, as the driver counts: 90 for CUDA's `sm_90`.
    pub binary_version: Option<u32>,
    /// Version of the virtual instruction set that it was compiled from: 90 for CUDA's `compute_90`.
    pub virtual_version: Option<u32>,
    /// What the size of a group should be a multiple of.
    pub preferred_multiple: Option<u32>,
    /// Bytes of memory of its own that one work-item needs, spilled ones included.
    pub private_bytes: Option<u32>,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// What it takes.
    pub kind: ArgKind,
    /// How a tensor is used.
    pub access: Access,
    /// Whether the code computes with the strides of a tensor, so that it may be a view with gaps.
    pub strided: bool,
    /// Element type, if the code says.
    pub dtype: Option<DType>,
}

/// What an embedded run reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Exit code of the program.
    pub exit_code: i32,
    /// Cycles counted on the device, 0 if it has no counter.
    pub cycles: u64,
    /// Wall time of the run in nanoseconds, by the backend's clock.
    pub elapsed_ns: u64,
}
