//! Compilation without loading: CUDA C by NVRTC, for a device or for an architecture, and PTX by the driver for its device, or by
//! nvJitLink for an architecture; what the results depend on, and how they fit a device.

pub(crate) mod architecture;
pub(crate) mod binary_check;
mod compatibility;
pub(crate) mod cuda_c;
mod identity;
pub(crate) mod jit;
mod nvjitlink;
mod nvrtc;
pub(crate) mod offline_device;
pub(crate) mod parameter_counts;
pub(crate) mod ptx;
pub(crate) mod ptxas_log;
pub(crate) mod registers;

use runtime_core::backend::Source;
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::{Error, Result};

use crate::context::PrimaryContext;
use crate::formats;
use architecture::Architecture;
use cuda_c::Target;
use ptx::PtxOptions;

/// Compute capability of a device, `major * 10 + minor`.
pub(crate) fn compute_capability(primary: &PrimaryContext) -> u32 {
    let (major, minor) = primary.driver.compute_capability(primary.ordinal);
    major * 10 + minor
}

/// What identifies everything outside a source, the device and the driver that its compiled form depends on.
///
/// # Errors
/// `Unsupported` for native code, and for code whose compiled form must not be kept; `Unavailable` without the compiler.
pub(crate) fn identity(source: &Source<'_>) -> Result<String> {
    match source.format {
        // The driver links what it compiles without loading it, and linked code can be slower than that of its JIT by a
        // quarter. It also has a cache of its own.
        "ptx" => Err(Error::unsupported("PTX is left to the driver, which compiles it when it loads it")),
        "cuda-c" => identity::of_cuda_c(source),
        format => Err(is_native(format)),
    }
}

fn is_native(format: &str) -> Error {
    Error::unsupported(format!("\"{format}\" is native code, which is not compiled"))
}

/// Compiles CUDA C or PTX for an open device.
///
/// # Errors
/// `Unsupported` for native code, and where the driver cannot compile PTX without loading it; `CompileFailed` or
/// `OutOfResources` with the log.
pub(crate) fn for_device(primary: &PrimaryContext, source: &Source<'_>) -> Result<CompiledCode> {
    primary.check_alive()?;
    formats::check(source)?;
    let options = PtxOptions::parse(source.options)?;
    let code = source.bytes()?;
    match source.format {
        "ptx" => jit::compile_ptx(primary, &jit::ptx_text(code.into_owned())?, options),
        "cuda-c" => {
            let compiled = cuda_c::compile(source, &code, Target::Device(compute_capability(primary)))?;
            if compiled.format.as_str() != "ptx" || primary.driver.linker.is_none() {
                return Ok(compiled);
            }
            let ptx = jit::ptx_text(compiled.code)?;
            let linked = jit::compile_ptx(primary, &ptx, options)?;
            let log = [compiled.log, linked.log].join("\n").trim().to_owned();
            Ok(CompiledCode { log, ..linked })
        }
        format => Err(is_native(format)),
    }
}

/// Compiles CUDA C or PTX for an architecture, without a driver.
///
/// # Errors
/// `NotFound` for an unknown architecture; `Unsupported` for other code; `Unavailable` without NVRTC, or for PTX without an
/// assembler; `CompileFailed` or `OutOfResources` with the log.
pub(crate) fn for_architecture(name: &str, source: &Source<'_>) -> Result<CompiledCode> {
    formats::check(source)?;
    if !["cuda-c", "ptx"].contains(&source.format) {
        return Err(is_native(source.format));
    }
    let arch = offline_device::find(name)?;
    if source.format == "ptx" {
        return ptx_for(name, arch, source);
    }
    if let Some(other) = cuda_c::CudaSource::new(source).arch.filter(|other| *other != name) {
        return Err(Error::invalid(format!(
            "option \"arch\" is \"{other}\", but the code is to be compiled for \"{name}\"; leave the option out"
        )));
    }
    cuda_c::compile(source, &source.bytes()?, Target::Architecture(name))
}

/// Assembles PTX for a real architecture.
fn ptx_for(name: &str, arch: Architecture, source: &Source<'_>) -> Result<CompiledCode> {
    if arch.is_virtual {
        return Err(Error::invalid(format!(
            "PTX is compiled to a cubin, and \"{name}\" is a virtual architecture; name a real one, such as \"{}\"",
            name.replace("compute_", "sm_")
        )));
    }
    let text = jit::ptx_text(source.bytes()?.into_owned())?;
    ptx::assemble(&text, name, PtxOptions::parse(source.options)?)
}

/// How native code fits a device.
///
/// # Errors
/// `Io`.
pub(crate) fn fits(primary: &PrimaryContext, source: &Source<'_>) -> Result<Fit> {
    let (compute, cuda_version) = (compute_capability(primary), primary.driver.cuda_version());
    Ok(compatibility::Target { compute, cuda_version }.fit(source.format, &source.bytes()?))
}
