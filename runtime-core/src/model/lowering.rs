//! The lowering of portable code, as core sees it: what it takes, and what it makes.

use std::fmt;
use std::sync::Arc;

use crate::{CodeFormat, DeviceInfo, OptionSpec, Options, Param, Result};

/// Turns portable code into code that a device takes. The crate `runtime-kernel` has one for WGSL.
///
/// A program registers it once, with [`RuntimeBuilder::lower_with`](crate::RuntimeBuilder::lower_with); from then on its
/// format stands in [`DeviceInfo::formats`] of every device that it has a target for, and loading such code is the same
/// call as loading any other.
///
/// # Safety
/// Portable code is safe to load and to launch, whoever wrote it; an implementation vouches for what it makes of it.
/// Whatever [`ModuleSource`] safe code can make, the lowered code touches no memory but that of the arguments of its
/// launch, with the access that its [`LoweredKernel`] states, and does not harm the process.
#[allow(unsafe_code, reason = "decides what native code runs")]
pub unsafe trait Lowering: fmt::Debug + Send + Sync {
    /// The code format that it takes.
    fn format(&self) -> CodeFormat;

    /// The load options that it understands. Others, which only trusted code may have
    /// ([`ModuleSource::unchecked`]), go to the backend with the lowered code.
    fn options(&self) -> Vec<OptionSpec>;

    /// The format, of those that the device accepts, that it would lower to; `None` if it can make none of them.
    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat>;

    /// Lowers code for a device that it has a target for. The code that it makes touches no memory but that of the
    /// arguments, whatever they are, unless the option `unchecked` of [`ModuleSource::unchecked`] is set.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's own words; `Unsupported` for what the device cannot do.
    fn lower(&self, source: &Portable<'_>, device: &DeviceInfo) -> Result<Lowered>;
}

/// Portable code to lower.
#[derive(Clone, Copy, Debug)]
pub struct Portable<'a> {
    /// The text.
    pub code: &'a str,
    /// The file it came from, for messages; empty if it came from memory.
    pub path: &'a str,
    /// Those of the load options that the lowering documents, validated.
    pub options: &'a Options,
}

/// Lowered code.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// A format of the device.
    pub format: CodeFormat,
    /// The code.
    pub code: Vec<u8>,
    /// Load options for the backend.
    pub options: Options,
    /// The entry points.
    pub kernels: Vec<LoweredKernel>,
}

/// An entry point of lowered code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredKernel {
    /// Its name in the portable code.
    pub name: String,
    /// Its name in the lowered code.
    pub symbol: String,
    /// Its parameters: what a launch gives.
    pub params: Vec<LoweredParam>,
    /// Work-items of a group per dimension.
    pub group_size: [u32; 3],
    /// Bytes of work-group memory.
    pub shared_bytes: u32,
    /// After these parameters the lowered code takes a `u64` per tensor, in order: how many bytes there are from its
    /// first element to the end of its last.
    pub tensor_sizes: bool,
    /// In front of these parameters the lowered code takes the tensor of a report: one `u32` that is 0. If the kernel
    /// leaves another number there, the launch has failed in that line of the text that this is the name of; `u32::MAX`
    /// stands for an unknown line. Such a launch waits for its end.
    pub reports_on: Option<String>,
}

/// A parameter of an entry point of lowered code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoweredParam {
    /// What it takes.
    pub param: Param,
    /// A tensor's least size in bytes.
    pub min_bytes: u64,
    /// What the address of a tensor's first element must be a multiple of, in bytes: the alignment of what the code reads
    /// there at once. A power of two.
    pub alignment_bytes: u64,
}

/// Adds the formats that a lowering brings to a device's own.
pub(crate) fn add_portable_formats(lowerings: &[Arc<dyn Lowering>], device: &mut DeviceInfo) {
    for lowering in lowerings {
        let format = lowering.format().to_string();
        if !device.formats.contains(&format) && lowering.target(device).is_some() {
            device.formats.push(format);
        }
    }
}
