//! The interface for lowering portable code to a format that a device accepts.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::fusion::{FusionPlan, FusionRequest};
use crate::model::kernel_info::Param;
use crate::model::options::OptionSpec;
use crate::model::portable_source::PortableSource;
use crate::model::signature::SignatureParam;
use crate::{CodeFormat, DeviceInfo, DeviceKind, Error, Options, Result};

/// Lowers portable code to a code format that a device accepts. The crate `runtime-kernel` implements it for
/// WGSL.
///
/// Register a lowering once, with [`RuntimeBuilder::with_lowering`](crate::RuntimeBuilder::with_lowering). Its
/// format then appears in [`DeviceInfo::formats`] of every device that it can target, and its code is loaded
/// like any other.
///
/// # Safety
/// Portable code is safe to load and launch even if it is untrusted, and an implementation must preserve
/// this. For every [`ModuleSource`](crate::ModuleSource) that safe code can create, the lowered code accesses no memory other than
/// that of its launch arguments, with the access that its [`LoweredKernel`] states, and does not harm the
/// process.
#[allow(unsafe_code, reason = "determines which native code runs")]
pub unsafe trait Lowering: fmt::Debug + Send + Sync {
    /// The portable code format that it accepts.
    fn format(&self) -> CodeFormat;

    /// The load options that it accepts. All others, which only trusted code may set
    /// ([`ModuleSource::unchecked`](crate::ModuleSource::unchecked)), are passed to the backend with the lowered code.
    fn options(&self) -> Vec<OptionSpec>;

    /// The format that it would lower to for this device; `None` if it can produce none that the device
    /// accepts.
    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat>;

    /// A text that identifies this version of the lowering, and everything of `device` that lowered code depends on.
    /// Compiled code is kept under it, beside the source and its options. `None`, the default: it is not kept.
    fn identity(&self, _device: &DeviceInfo) -> Option<String> {
        None
    }

    /// The parameters of an entry point before an element type is chosen, in the order of the arguments. `None`, the
    /// default: the lowering cannot say.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's messages; `NotFound` for an unknown entry point.
    fn signature(&self, _source: &PortableSource<'_>, _entry: &str) -> Result<Option<Vec<SignatureParam>>> {
        Ok(None)
    }

    /// Lowers code for a device that it can target. Unless the option `unchecked` of
    /// [`ModuleSource::unchecked`](crate::ModuleSource::unchecked) is set, the lowered code accesses no memory other than that of its
    /// arguments, whatever their values.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's messages; `Unsupported` for features that the device lacks.
    fn lower(&self, source: &PortableSource<'_>, device: &DeviceInfo) -> Result<Lowered>;

    /// Plans how launches of this format become fewer kernels with the same results, for a device that it can target. What
    /// cannot be fused stays as it is, and the plan says why.
    ///
    /// # Errors
    /// `Unsupported`, the default, if the lowering fuses nothing at all; `CompileFailed` for code that it does not accept.
    fn fuse(&self, _request: &FusionRequest<'_>, _device: &DeviceInfo) -> Result<FusionPlan> {
        Err(Error::unsupported(format!("fusion of code of format \"{}\" is not supported", self.format())))
    }
}

/// Lowered code.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// A format that the device accepts.
    pub format: CodeFormat,
    /// The code.
    pub code: Vec<u8>,
    /// Load options for the backend.
    pub options: Options,
    /// The entry points.
    pub kernels: Vec<LoweredKernel>,
}

/// An entry point of lowered code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoweredKernel {
    /// Its name in the portable code.
    pub name: String,
    /// Its name in the lowered code.
    pub symbol: String,
    /// The parameters that a launch provides.
    pub params: Vec<LoweredParam>,
    /// Work-items per group, per dimension, as a launch gives them.
    pub group_size: [u32; 3],
    /// If set, the code runs the items of a group in loops, and the device launches groups of this size instead.
    pub work_items: Option<[u32; 3]>,
    /// Bytes of work-group memory.
    pub shared_bytes: u32,
    /// Whether the lowered code takes, after these parameters, one `u64` per tensor, in order: the bytes from
    /// its first element to the end of its last.
    pub tensor_sizes: bool,
    /// If set, an item of the lowered code can do the work of several, and the code takes a `u32` after these parameters,
    /// before the sizes.
    pub coarsening: Option<Coarsening>,
    /// If set, the lowered code takes a report tensor before these parameters: a single `u32`, initially 0.
    /// If the kernel stores another number there, the launch has failed at that line of the source with this
    /// name; `u32::MAX` means an unknown line. Such launches are synchronous.
    pub reports_on: Option<String>,
}

/// How the items of lowered code do the work of several: an item of group `g` does that of the groups `factor * g` to
/// `factor * g + factor - 1` along x. The code takes the number of groups along x that the launch asks for; if the device
/// runs as many, each item does its own work only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coarsening {
    /// Items whose work one item does, at least 2.
    pub factor: u32,
    /// Groups that a launch must have, over all dimensions, for core to divide their number along x by the factor, rounded up.
    pub min_groups: u64,
    /// Groups that it must have along x for that.
    pub min_groups_x: u32,
}

/// A parameter of a lowered entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoweredParam {
    /// The parameter.
    pub param: Param,
    /// Minimum size of a tensor in bytes.
    pub min_bytes: u64,
    /// Required alignment of a tensor's first element in bytes, given by the widest access of the code. A
    /// power of two.
    pub alignment_bytes: u64,
}

/// Adds the formats that can be lowered for a device to the formats it accepts. An embedded device is flashed, and loads none.
pub(crate) fn add_portable_formats(lowerings: &[Arc<dyn Lowering>], device: &mut DeviceInfo) {
    for lowering in lowerings {
        let format = lowering.format();
        let can_load = device.kind != DeviceKind::Embedded;
        if can_load && !device.accepts(&format) && lowering.target(device).is_some() {
            device.formats.push(format);
        }
    }
}
