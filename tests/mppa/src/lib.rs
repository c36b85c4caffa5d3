//! Child processes that see PoCL as the MPPA's stand-in, or a fake machine.
//!
//! **No test here runs on an MPPA.** The stand-in shows that the backend's own code works, with an MPPA's limits, on another OpenCL
//! device; fake machines show which devices are listed and how tools are started; the fake SDK, whose chip
//! is this machine, shows how the offload library is called.

mod checks;
mod elf_header;
mod eval;
mod fake_library;
mod fake_sdk;
mod processes;
mod tools;

pub use checks::{check, check_seen};
pub use elf_header::{KV3_1, KV3_2, elf_header};
pub use eval::{eval_row, eval_rows, start_eval};
pub use fake_library::FakeLibrary;
pub use fake_sdk::FakeSdk;
pub use processes::{becomes, ends, is_running};
pub use tools::write_tool;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use opencl::{Driver, IcdFolder, built, current_program, missing_trial};

/// The stand-in in `RUNTIME_REQUIRE`.
const REQUIREMENT: &str = "mppa-stand-in";
/// Variables of the machine that configure the backend.
const CLEARED_VARIABLES: [&str; 18] = [
    "KALRAY_TOOLCHAIN_DIR",
    "PLATFORM",
    "BENCHMARK",
    "MPPA_TRACE_ENABLE",
    "POCL_MPPA_TRACE_ENABLE",
    "MPPA_TRACE_USE_SYSCALL",
    "CLEAN_WORK_DIR",
    "POCL_MPPA_FIRMWARE_NAME",
    "RUNTIME_MPPA_ARCH",
    "RUNTIME_MPPA_ROOT",
    "RUNTIME_MPPA_STAND_IN",
    "RUNTIME_MPPA_WORK_DIR",
    "RUNTIME_MPPA_VERBOSE",
    "RUNTIME_MPPA_BUILD_VERBOSE",
    "MPPA_RPROC_PLATFORM_MODE",
    "MPPA_RPROC_SIM_PATH",
    "OMP_MPPA_FIRMWARE_NAME",
    "MLIR_MPPA_FIRMWARE_NAME",
];

/// The backend's library.
///
/// # Errors
/// It is not built.
pub fn backend() -> Result<PathBuf, String> {
    built("libruntime_mppa.so")
}

/// A folder that registers PoCL alone.
///
/// # Errors
/// The trial of the missing stand-in: ignored with the remedy, or failed if it is required.
pub fn pocl() -> Result<IcdFolder, Box<Trial>> {
    IcdFolder::with_drivers(&[Driver::Pocl])
        .map_err(|(_, remedy)| Box::new(missing_trial(REQUIREMENT, remedy)))
}

/// A command that sees the OpenCL drivers of `folder`, only the MPPA backend, and no setting of this machine.
///
/// # Errors
/// The backend is not built.
pub fn command(folder: &IcdFolder, program: impl AsRef<OsStr>) -> Result<Command, String> {
    let mut command = folder.command(program)?;
    CLEARED_VARIABLES.into_iter().for_each(|name| {
        command.env_remove(name);
    });
    command.env("RUNTIME_BACKENDS", backend()?);
    Ok(command)
}

/// As [`command`], with the stand-in.
///
/// # Errors
/// The backend is not built.
pub fn stand_in_command(folder: &IcdFolder, program: impl AsRef<OsStr>) -> Result<Command, String> {
    let mut command = command(folder, program)?;
    command.env("RUNTIME_MPPA_STAND_IN", "1");
    Ok(command)
}

/// Runs `tests` in a child of this program that sees the stand-in, marked by the variable `child`.
pub fn on_stand_in(child: &str, tests: impl FnOnce(&Arguments) -> ExitCode) -> ExitCode {
    let arguments = Arguments::from_args();
    if std::env::var_os(child).is_some() {
        return tests(&arguments);
    }
    match start(child) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trial) => libtest_mimic::run(&arguments, vec![*trial]).exit_code(),
    }
}

/// Runs this program on the stand-in, and returns whether it succeeds.
fn start(child: &str) -> Result<bool, Box<Trial>> {
    let folder = pocl()?;
    let run = || {
        let mut command = stand_in_command(&folder, current_program()?)?;
        command.args(std::env::args_os().skip(1)).env(child, "1");
        command.status().map(|status| status.success()).map_err(|error| error.to_string())
    };
    run().map_err(|reason| Box::new(Trial::test("mppa::start", || Err(reason.into()))))
}
