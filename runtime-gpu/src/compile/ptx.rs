//! PTX: its options, and its assembly without a device, by `ptxas` or nvJitLink.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use runtime_core::backend::{OptionSpec, Sandbox, SandboxPolicy, TemporaryFolder};
use runtime_core::code::CompiledCode;
use runtime_core::{Error, ErrorKind, Options, Result};

use super::nvjitlink::{Failure, NvJitLink};
use super::{binary_check, ptxas_log, registers};
use crate::formats::OPTIMIZATION;
use crate::toolkit;

/// The value that leaves the level to the assembler.
const DEFAULT: &str = "default";
/// What the assembler says of an architecture that it does not know.
const UNKNOWN_ARCHITECTURE: &str = "is not defined for option 'gpu-name'";
/// No code takes an assembler this long.
const DEADLINE: Duration = Duration::from_secs(600);
/// Room for the registers of thousands of kernels.
const LOG_BYTES: usize = 16 << 20;
/// How to get an assembler.
const REMEDY: &str = "install the CUDA toolkit or the Python package nvidia-nvjitlink-cu12, and set CUDA_HOME if it is not found; or use \
                      the PTX itself, which the driver compiles";

/// Declares the option for the level of optimisation.
pub(crate) fn option() -> OptionSpec {
    OptionSpec::module(
        OPTIMIZATION,
        DEFAULT,
        "Optimisation of PTX, 0 to 4 (`ptxas -O`); \"default\" is 3. For CUDA C, use options = \"--ptxas-options=-O1\".",
    )
}

/// How PTX is assembled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PtxOptions {
    /// Most registers of a work-item.
    pub(crate) registers: Option<u32>,
    /// Level of optimisation.
    pub(crate) optimization: Option<u32>,
}

impl PtxOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// `InvalidArgument` for values that the assembler does not have.
    pub(crate) fn parse(options: &Options) -> Result<Self> {
        let optimization = match options.text(OPTIMIZATION).unwrap_or(DEFAULT) {
            DEFAULT => None,
            level => Some(level.parse().ok().filter(|level| *level <= 4).ok_or_else(|| {
                Error::invalid(format!(
                    "option \"{OPTIMIZATION}\" cannot be \"{level}\"; give \"{DEFAULT}\", or a number from 0 to 4"
                ))
            })?),
        };
        Ok(Self { registers: registers::parse(options)?, optimization })
    }

    /// As options of an assembler, whose own begin with `prefix`.
    fn arguments(self, arch: &str, prefix: &str) -> Vec<String> {
        let mut arguments = vec![format!("-arch={arch}")];
        arguments.extend(self.registers.map(|registers| format!("-maxrregcount={registers}")));
        arguments.extend(self.optimization.map(|level| format!("{prefix}-O{level}")));
        arguments
    }
}

/// Whether PTX can be assembled here: with `ptxas` or nvJitLink.
pub(crate) fn can_assemble() -> bool {
    NvJitLink::load().is_ok() || toolkit::program("ptxas").is_some()
}

/// Assembles PTX to a cubin for a real architecture, without a driver.
///
/// # Errors
/// `Unavailable` without an assembler; `NotFound` for an architecture that it does not know; `CompileFailed` or
/// `OutOfResources` with the log; `Timeout`.
pub(crate) fn assemble(text: &CStr, arch: &str, options: PtxOptions) -> Result<CompiledCode> {
    // `ptxas` makes the code that the driver makes. What nvJitLink 13.0 made of a matrix product took 25% longer on an H100.
    let (code, log) = match (toolkit::program("ptxas"), NvJitLink::load()) {
        (Some(ptxas), _) => by_program(&ptxas, text, arch, options)?,
        (None, Ok(library)) => by_library(library, text, arch, options)?,
        (None, Err(error)) => {
            let reason = error.message();
            let message = format!(
                "compiling PTX without a device requires ptxas or nvJitLink, and neither was found ({reason}); {REMEDY}"
            );
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
    };
    binary_check::check_cubin(&code)?;
    Ok(ptxas_log::cubin(code, &log))
}

fn by_library(
    library: &NvJitLink,
    text: &CStr,
    arch: &str,
    options: PtxOptions,
) -> Result<(Vec<u8>, String)> {
    let mut arguments = options.arguments(arch, "-Xptxas=");
    arguments.push("-verbose".to_owned());
    let arguments = arguments
        .into_iter()
        .map(|argument| CString::new(argument).map_err(|_| Error::invalid("an option contains a NUL byte")));
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let assembled = library.assemble(text, &arguments).map_err(|failure| {
        let Failure { function, code, name, log } = failure;
        error(&log, arch).with_driver(name, code).in_operation(function)
    })?;
    Ok((assembled.cubin, assembled.log))
}

fn by_program(ptxas: &Path, text: &CStr, arch: &str, options: PtxOptions) -> Result<(Vec<u8>, String)> {
    let io = |what: &str, error: std::io::Error| {
        Error::new(ErrorKind::Io, format!("{what}: {error}")).with_source(error)
    };
    let folder = TemporaryFolder::new("runtime-cuda-")
        .map_err(|error| io("cannot make a temporary folder; set TMPDIR to a writable folder", error))?;
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    std::fs::write(path("kernel.ptx"), text.to_bytes()).map_err(|error| io("cannot write the PTX", error))?;
    let mut command = Command::new(ptxas);
    command.current_dir(folder.path()).arg("-v").args(options.arguments(arch, ""));
    command.args(["-o", "kernel.cubin", "kernel.ptx"]);
    let sandbox = Sandbox::new().compiler([&*ptxas.to_string_lossy()]).write(folder.path());
    let output = sandbox.run(SandboxPolicy::of_process()?, &mut command, (DEADLINE, LOG_BYTES))?;
    let log = output.text();
    if !output.status.success() {
        return Err(error(&log, arch).with_note(format!("{}: {}", ptxas.display(), output.status)));
    }
    let code = std::fs::read(path("kernel.cubin")).map_err(|error| io("cannot read the cubin", error))?;
    Ok((code, log))
}

/// The error that a log of an assembler tells.
fn error(log: &str, arch: &str) -> Error {
    match ptxas_log::messages(log) {
        log if log.is_empty() => Error::new(ErrorKind::CompileFailed, "the assembler reported no reason"),
        log if log.contains(UNKNOWN_ARCHITECTURE) => {
            let message = format!("the assembler of PTX does not know the architecture \"{arch}\": {log}");
            Error::new(ErrorKind::NotFound, message)
        }
        log if ptxas_log::is_out_of_resources(&log) => Error::new(ErrorKind::OutOfResources, log),
        log => Error::new(ErrorKind::CompileFailed, log),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_those_of_each_assembler() {
        let parsed = |key: &str, value: &str| PtxOptions::parse(&Options::new().with(key, value));
        let options = PtxOptions { registers: Some(32), optimization: Some(1) };
        assert_eq!(parsed("registers", "32").unwrap(), PtxOptions { optimization: None, ..options });
        assert_eq!(parsed(OPTIMIZATION, "1").unwrap(), PtxOptions { registers: None, ..options });
        assert_eq!(parsed(OPTIMIZATION, DEFAULT).unwrap(), PtxOptions::default());
        let library = ["-arch=sm_90", "-maxrregcount=32", "-Xptxas=-O1"];
        assert_eq!(options.arguments("sm_90", "-Xptxas="), library);
        assert_eq!(options.arguments("sm_90", ""), ["-arch=sm_90", "-maxrregcount=32", "-O1"]);
        for wrong in ["5", "-1", "", "fast"] {
            let error = parsed(OPTIMIZATION, wrong).unwrap_err();
            assert!(error.message().contains("0 to 4"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_log_tells_what_kind_of_error_it_is() {
        let kind = |log: &str| error(log, "sm_12").kind();
        assert_eq!(
            kind("ptxas fatal   : Value 'sm_12' is not defined for option 'gpu-name'"),
            ErrorKind::NotFound
        );
        assert_eq!(
            kind("error   : Entry function 'f' uses too much shared data (0x61a80 bytes, 0xc000 max)"),
            ErrorKind::OutOfResources
        );
        assert_eq!(
            kind("ptxas application ptx input, line 4; error   : Not a name"),
            ErrorKind::CompileFailed
        );
        assert_eq!(kind(""), ErrorKind::CompileFailed);
    }
}
