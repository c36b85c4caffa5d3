//! `runtime fuse --emit`: prints the code of fused kernels, which needs no device.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::ValueEnum;
use runtime_core::lowering::FusionPlan;
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, Error, Result};
use runtime_harness::chain::Chain;
use runtime_kernel::{Checks, Program, Specialisation};

use crate::lower::{Target, lower_to};
use crate::output;

/// A format in which fused kernels are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Emit {
    /// WGSL, as it is fused
    Wgsl,
    /// C for the host
    C,
    /// CUDA C++
    CudaC,
    /// OpenCL C
    OpenclC,
    /// SPIR-V for Vulkan (binary)
    Spirv,
}

/// Prints the code of the fused kernels, and on standard error why others were not fused. Fails if none was.
pub(super) fn emit(chain: &Chain, keep: bool, format: Emit) -> Result<ExitCode> {
    let target = match format {
        Emit::Wgsl => None,
        Emit::C => Some(Target::C),
        Emit::CudaC => Some(Target::CudaC),
        Emit::OpenclC => Some(Target::OpenclC),
        Emit::Spirv => Some(Target::Spirv),
    };
    if format == Emit::Spirv && std::io::stdout().is_terminal() {
        return Err(Error::invalid("--emit spirv: SPIR-V is binary: pipe it, e.g. to `spirv-dis`"));
    }
    let plan = chain.with_request(keep, |request| runtime_kernel::wgsl().fuse(request, &device()))?;
    print_seams(chain, &plan);
    let codes: Vec<_> = plan.kernels.iter().filter_map(|kernel| kernel.code.as_ref()).collect();
    if format == Emit::Spirv && codes.len() > 1 {
        let count = codes.len();
        let message = format!(
            "--emit spirv: there are {count} fused kernels, and a SPIR-V file has one module; fuse fewer specs at a time"
        );
        return Err(Error::invalid(message));
    }
    for code in &codes {
        match target {
            None => output::print_exact(&format!("{}\n", code.text))?,
            Some(target) => {
                let program = Program::parse(&code.text, "fused.wgsl", &Specialisation::default())?;
                output::print_exact(&lower_to(&program, target, Checks::Bounded)?)?;
            }
        }
    }
    Ok(if codes.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A device with the limits of most devices.
fn device() -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "any device");
    info.formats = vec![CodeFormat::SPIRV_SHADER];
    info.limits.group_size = [1024, 1024, 64];
    info.limits.group_items = 1024;
    info.limits.shared_bytes = 32 << 10;
    info
}

fn print_seams(chain: &Chain, plan: &FusionPlan) {
    let names = chain.names();
    for (at, seam) in plan.seams.iter().enumerate().filter(|(_, seam)| !seam.fused) {
        output::print_stderr(&format!("{} | {} not: {}", names[at], names[at + 1], seam.reason));
    }
    if names.len() == 1 {
        output::print_stderr(&format!("{} is one kernel; give at least two specs", names[0]));
    }
}
