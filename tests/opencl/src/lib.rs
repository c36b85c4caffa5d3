//! The drivers on which the OpenCL backend is tested, and child processes that see a chosen set of them.
//!
//! The ICD loader reads the list of drivers once per process, so every set of drivers needs a process of its own. [`Driver`] lists
//! the drivers, [`IcdFolder`] registers some of them, and [`run_per_driver`] runs a test for one driver after the other. [`stub`]
//! is a loader that injects failures.

#![allow(clippy::missing_panics_doc, reason = "a test panics if its own files are wrong")]

mod driver;
pub mod driver_compiler;
mod icd_folder;
mod per_driver;
mod process;
pub mod smoke_test;
pub mod stub;

pub use driver::Driver;
pub use icd_folder::IcdFolder;
pub use per_driver::run_per_driver;
pub use process::{DEADLINE, current_program};
pub use test_process::{Finished, finish, required};

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Completion, Failed, Trial};

/// The trial of a missing requirement: ignored with the remedy, or failed if `RUNTIME_REQUIRE` names it.
#[must_use]
pub fn missing_trial(name: &'static str, remedy: String) -> Trial {
    Trial::ignorable_test(format!("{name}::open"), move || {
        let reason = format!("{name} is missing: {remedy}");
        if required(name) { Err(Failed::from(reason)) } else { Ok(Completion::ignored_with(reason)) }
    })
}

/// A file that cargo builds beside this test: the backend's library, or the command.
///
/// # Errors
/// It is not built.
pub fn built(name: &str) -> Result<PathBuf, String> {
    built_by(name, "cargo build --workspace")
}

fn built_by(name: &str, command: &str) -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let folders = executable.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{name} is not built; run `{command}`"))
}

/// The backend's library.
///
/// # Errors
/// It is not built.
pub fn backend() -> Result<PathBuf, String> {
    built("libruntime_opencl.so")
}

/// The library of the example of a vendor's backend, `runtime-opencl/examples/vendor.rs`.
///
/// # Errors
/// It is not built.
pub fn vendor_backend() -> Result<PathBuf, String> {
    built_by("examples/libvendor.so", "cargo build --package runtime-opencl --example vendor")
}

/// Reports why a test program cannot run. A failed trial would not do: a filter would hide it.
#[must_use]
#[allow(clippy::print_stderr, reason = "a test's report")]
pub fn cannot_run(reason: &str) -> ExitCode {
    eprintln!("cannot run: {reason}");
    ExitCode::FAILURE
}
