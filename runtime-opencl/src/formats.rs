//! The formats of code that a device accepts.

use runtime_core::backend::{Source, check_format};
use runtime_core::{CodeFormat, Result};

use crate::device_caps::DeviceCaps;

/// The code formats that a device accepts, preferred first.
pub(crate) fn of_device(caps: &DeviceCaps) -> Vec<CodeFormat> {
    let known = [
        (CodeFormat::OPENCL_BINARY, true),
        (CodeFormat::SPIRV_KERNEL, caps.accepts_spirv),
        (CodeFormat::OPENCL_C, caps.has_compiler),
    ];
    known.into_iter().filter(|(_, is_accepted)| *is_accepted).map(|(format, _)| format).collect()
}

/// Refuses code of any other format.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check(caps: &DeviceCaps, source: &Source<'_>) -> Result<()> {
    let accepted = of_device(caps);
    check_format(source.format, &accepted.iter().map(CodeFormat::as_str).collect::<Vec<_>>())
}
