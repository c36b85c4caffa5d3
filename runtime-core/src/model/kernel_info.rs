//! Properties of kernels, and results of embedded runs.

use serde::{Deserialize, Serialize};

use crate::model::access::ArgKind;
use crate::{Access, DType};

/// Properties of a kernel ([`Kernel::info`](crate::Kernel::info)); `None` for those that the driver does not report.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let kernel = device.kernel(&unsafe { ModuleSource::native("null", "add_f32") }, "add_f32")?;
/// let info = kernel.info();
/// // The largest group of whole sub-groups that the kernel and the device allow.
/// let most = info.max_group_items.unwrap_or(device.info().limits.group_items);
/// let multiple = info.preferred_multiple.unwrap_or(1);
/// assert_eq!(most / multiple * multiple, 1024);
/// assert_eq!((info.registers, info.spilled_bytes, info.binary_version), (Some(16), Some(0), None));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Registers per work-item.
    pub registers: Option<u32>,
    /// Bytes spilled to memory per work-item.
    pub spilled_bytes: Option<u32>,
    /// Bytes of private memory per work-item, including spills.
    pub private_bytes: Option<u32>,
    /// Bytes of work-group memory that the code declares.
    pub shared_bytes: Option<u32>,
    /// Maximum number of work-items in a group of this kernel.
    pub max_group_items: Option<u32>,
    /// The group size should be a multiple of this number.
    pub preferred_multiple: Option<u32>,
    /// Version of the instruction set that the code targets, in the driver's numbering: 90 for CUDA's
    /// `sm_90`.
    pub binary_version: Option<u32>,
    /// Version of the virtual instruction set that it was compiled from: 90 for CUDA's `compute_90`.
    pub virtual_version: Option<u32>,
    /// Group size fixed by the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<[u32; 3]>,
    /// The parameters, if the code describes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Vec<Param>>,
}

impl KernelInfo {
    /// Takes over what only `other` knows.
    pub(crate) fn complete(&mut self, other: &Self) {
        macro_rules! complete {
            ($($field:ident),*) => { $(if self.$field.is_none() { self.$field.clone_from(&other.$field); })* };
        }
        complete!(registers, spilled_bytes, shared_bytes, max_group_items, group_size, params);
        complete!(binary_version, virtual_version, preferred_multiple, private_bytes);
    }
}

/// A kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// The kind of argument that it takes. A scalar without an element type takes any value: a scalar or a structure.
    pub kind: ArgKind,
    /// How the kernel accesses a tensor, if the code states it: a pointer without `const` states nothing.
    pub access: Option<Access>,
    /// Whether the code uses the strides of a tensor, so that non-contiguous views are accepted.
    #[serde(default)]
    pub strided: bool,
    /// Element type, if the code states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
}

/// Result of running an embedded program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Exit code of the program.
    pub exit_code: i32,
    /// Count of the device's counter, of cycles or, under an emulator, of instructions; `None` if it has no counter.
    pub cycles: Option<u64>,
    /// Wall-clock time of the run in nanoseconds, as the backend measured it.
    pub elapsed_ns: u64,
    /// Count between two readings of the counter, which is part of `cycles`; 0 if it is unknown.
    pub overhead: u64,
    /// Peak stack use of the run in bytes.
    pub stack_bytes: Option<u64>,
    /// The sizes of the image.
    pub image: Option<ImageSizes>,
}

/// A register of an embedded device's processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The processor's name for it, such as `pc`.
    pub name: String,
    /// Its bits, zero-extended.
    pub value: u64,
}

/// Bytes of an image, by kind of section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSizes {
    /// Code.
    pub code_bytes: u64,
    /// Constants, which stay in flash like the code.
    pub constant_bytes: u64,
    /// Initialised data: in RAM, and copied there from flash.
    pub data_bytes: u64,
    /// Zero-initialised data (.bss), in RAM.
    pub zeroed_bytes: u64,
}
