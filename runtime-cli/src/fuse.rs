//! `runtime fuse`: runs kernels of several specs on each other's results, one by one and fused, and checks both.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use runtime_core::{
    CommonRuntime, Error, ErrorKind, FusionOptions, FusionReport, Result, Runtime, Validation,
};
use runtime_harness::chain::{Chain, ChainRow, Expected, LinkRequest};
use runtime_harness::crash_context::CrashContext;
use runtime_harness::row::{error_text, status_of};
use runtime_harness::spec::Spec;
use runtime_kernel::{Checks, Program, Specialisation};

use crate::arguments::{OpenArguments, OverrideArguments};
use crate::lower::{Target, lower_to};
use crate::output;
use crate::registry;

#[derive(Debug, Args)]
pub(crate) struct FuseArguments {
    /// The spec files, in the order in which their kernels run
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<PathBuf>,
    /// The device [default: the first available one that accepts the code of all kernels]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    #[command(flatten)]
    open: OpenArguments,
    #[command(flatten)]
    overrides: OverrideArguments,
    /// Tensor x of kernel B is tensor y of the earlier kernel A; may be repeated [default: the first tensor that a kernel reads is
    /// the first one that the kernel before it writes]
    #[arg(long = "link", value_name = "B.x=A.y", value_parser = LinkRequest::parse)]
    links: Vec<LinkRequest>,
    /// Print the code of the fused kernels
    #[arg(long, value_name = "FORMAT", value_enum)]
    emit: Option<Emit>,
}

/// A format in which fused kernels are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
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

/// Runs the kernels one by one and fused.
///
/// # Errors
/// `InvalidArgument` for specs that cannot be linked, with the argument and the remedy; any error of a reference or a device.
pub(crate) fn fuse(arguments: &FuseArguments) -> Result<ExitCode> {
    let overrides = arguments.overrides.overrides()?;
    let specs =
        arguments.specs.iter().map(|path| Spec::load(path, &overrides)).collect::<Result<Vec<_>>>()?;
    let mut chain = Chain::new(specs, &arguments.links)?;
    let runtime = registry::runtime();
    let device = open(&runtime, &chain, arguments)?;
    let expected = chain.expected(&runtime)?;
    let (name, id) = (chain.names().join(" → "), device.device_id().to_string());
    let _context = CrashContext::enter(format!("while \"{name}\" ran on {id}"));
    chain.links().try_for_each(|link| output::print(&format!("{link}\n")))?;
    let rows = one_by_one(&chain, &*device, &expected);
    let mut code = print(&format!("one by one on {id}"), rows)?;
    match fused(&chain, &*device, &expected) {
        Ok((report, rows)) => {
            output::print(&format!("{report}\n"))?;
            if print(&format!("fused on {id}"), Ok(rows))? == ExitCode::FAILURE {
                code = ExitCode::FAILURE;
            }
            if let Some(format) = arguments.emit {
                emit(&report, format)?;
            }
        }
        Err(error) => code = print(&format!("fused on {id}"), Err(error))?,
    }
    Ok(code)
}

/// Runs the kernels one after the other.
fn one_by_one(chain: &Chain, device: &dyn CommonRuntime, expected: &Expected) -> Result<Vec<ChainRow>> {
    let bound = chain.bind(device)?;
    bound.submit(&device.queue()?)?.wait()?;
    bound.compare(expected)
}

/// Runs the kernels fused.
fn fused(
    chain: &Chain,
    device: &dyn CommonRuntime,
    expected: &Expected,
) -> Result<(FusionReport, Vec<ChainRow>)> {
    let (bound, queue) = (chain.bind(device)?, device.queue()?);
    let fuser = queue.fuser(&FusionOptions::default())?;
    bound.submit(fuser.queue())?;
    let (event, report) = fuser.complete()?;
    event.wait()?;
    Ok((report, bound.compare(expected)?))
}

/// Prints the code of the fused kernels.
fn emit(report: &FusionReport, format: Emit) -> Result<()> {
    let target = match format {
        Emit::Wgsl => None,
        Emit::C => Some(Target::C),
        Emit::CudaC => Some(Target::CudaC),
        Emit::OpenclC => Some(Target::OpenclC),
        Emit::Spirv => Some(Target::Spirv),
    };
    if target == Some(Target::Spirv) && std::io::stdout().is_terminal() {
        return Err(Error::invalid("SPIR-V is binary: pipe it, e.g. to `spirv-dis`"));
    }
    for code in report.kernels.iter().filter_map(|kernel| kernel.code.as_deref()) {
        match target {
            None => output::print(&format!("{code}\n"))?,
            Some(target) => {
                let program = Program::parse(code, "fused.wgsl", &Specialisation::default())?;
                output::print(&lower_to(&program, target, Checks::Bounded)?)?;
            }
        }
    }
    Ok(())
}

/// Prints the result of each tensor.
fn print(how: &str, rows: Result<Vec<ChainRow>>) -> Result<ExitCode> {
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => {
            output::print_stderr(&format!("{how}: failed: {}", error_text(&error)));
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut code = ExitCode::SUCCESS;
    for ChainRow { tensor, validation } in &rows {
        let status = status_of(validation).name();
        let detail = match validation {
            Validation::Passed(agreement) => {
                format!(
                    " ({} elements, largest error {:.1e})",
                    agreement.elements, agreement.max_absolute_error
                )
            }
            Validation::Failed(mismatch) => format!(": {mismatch}"),
            Validation::Skipped { reason } => format!(": {reason}"),
        };
        if validation.is_failed() {
            code = ExitCode::FAILURE;
        }
        output::print(&format!("{how}: {tensor} {status}{detail}\n"))?;
    }
    Ok(code)
}

/// The device named, or the first available one that accepts the code of all kernels.
fn open(runtime: &Runtime, chain: &Chain, arguments: &FuseArguments) -> Result<Arc<dyn CommonRuntime>> {
    let options = arguments.open.options();
    if let Some(name) = &arguments.device {
        return runtime.open_with(name, &options);
    }
    let devices = runtime.devices();
    let info = devices.iter().find(|info| {
        info.unavailable_reason.is_none() && chain.specs().all(|spec| info.accepts(&spec.kernel.format))
    });
    let info = info.ok_or_else(|| {
        let message = "no available device accepts the code of all kernels; see `runtime devices`";
        Error::new(ErrorKind::Unavailable, message)
    })?;
    runtime.open_with(&info.id.to_string(), &options)
}
