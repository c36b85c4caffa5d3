//! The drivers that the OpenCL backend is tried on, and processes that see one of them.
//!
//! The loader of OpenCL reads once per process which drivers there are: whoever is to see another set of them is a process of its
//! own. [`Driver`] says which ones the tests know, [`IcdFolder`] is a folder that names some of them, and [`each`] runs the trials
//! of a test for one driver after the other. [`stub`] is a loader that fails as it is told.

#![allow(clippy::missing_panics_doc, reason = "a test panics where its own files are wrong")]

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

use libtest_mimic::{Completion, Failed, Trial};

/// A trial for what is not there: ignored with the remedy, or failed where it is required.
#[must_use]
pub fn missing_trial(name: &'static str, remedy: String) -> Trial {
    Trial::ignorable_test(format!("{name}::open"), move || {
        let reason = format!("{name} is missing: {remedy}");
        if required(name) { Err(Failed::from(reason)) } else { Ok(Completion::ignored_with(reason)) }
    })
}

/// A file that cargo builds with the workspace, beside this test: the backend's library, or the command.
///
/// # Errors
/// It is not there.
pub fn built(name: &str) -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let folders = executable.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{name} is not built; run `cargo build --workspace`"))
}

/// The backend's library.
///
/// # Errors
/// It is not built.
pub fn backend() -> Result<PathBuf, String> {
    built("libruntime_opencl.so")
}
