//! A folder of `.icd` files, which registers drivers with the ICD loader.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Driver;

/// Environment variables of the machine that would add or change drivers.
const CLEARED_VARIABLES: [&str; 5] =
    ["OCL_ICD_FILENAMES", "OCL_ICD_PLATFORM_SORT", "OPENCL_DYLIB_PATH", "OPENCL_LAYERS", "POCL_DEVICES"];

/// The requirements of `RUNTIME_REQUIRE` that a child passes on; it sees no other drivers or tools.
const PASSED_REQUIREMENTS: [&str; 3] = ["clang", "llvm-spirv", "opencl"];

/// Settings of Oclgrind: check for data races, with one thread, since the reports of several get mixed up.
const OCLGRIND_SETTINGS: [(&str, &str); 2] = [("OCLGRIND_DATA_RACES", "1"), ("OCLGRIND_NUM_THREADS", "1")];

/// A temporary folder with an `.icd` file per driver.
#[derive(Debug)]
pub struct IcdFolder(tempfile::TempDir);

impl IcdFolder {
    /// A folder without drivers.
    #[must_use]
    pub fn empty() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with these drivers.
    ///
    /// # Errors
    /// The first missing driver, and how to install it.
    pub fn with_drivers(drivers: &[Driver]) -> Result<Self, (Driver, String)> {
        let icd_folder = Self::empty();
        for driver in drivers {
            icd_folder.add(driver.name(), &driver.library().map_err(|remedy| (*driver, remedy))?);
        }
        Ok(icd_folder)
    }

    /// Adds a driver by the path of its library, which may not exist.
    pub fn add(&self, name: &str, library: &str) {
        let file = self.path().join(name).with_extension("icd");
        std::fs::write(file, library).expect("write a temporary file");
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("report")
    }

    /// What Oclgrind reported for the commands so far.
    #[must_use]
    pub fn report(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default().trim().to_owned()
    }

    /// A command that sees these drivers and only the OpenCL backend.
    ///
    /// # Errors
    /// The backend is not built.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, String> {
        let mut command = Command::new(program);
        command.env("OCL_ICD_VENDORS", self.path()).env("RUNTIME_BACKENDS", crate::backend()?);
        CLEARED_VARIABLES.into_iter().chain(["RUNTIME_BACKEND_PATH", "LD_LIBRARY_PATH"]).for_each(|name| {
            command.env_remove(name);
        });
        // What one test run compiles is of no use to the next.
        command.env("RUNTIME_CACHE", self.path().join("cache"));
        command.envs(OCLGRIND_SETTINGS).env("OCLGRIND_LOG", self.log());
        let required: Vec<_> = PASSED_REQUIREMENTS.into_iter().filter(|name| crate::required(name)).collect();
        command.env("RUNTIME_REQUIRE", required.join(","));
        Ok(command)
    }
}
