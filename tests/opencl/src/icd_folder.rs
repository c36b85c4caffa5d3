//! A folder that tells the loader of OpenCL which drivers there are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Driver;

/// Of this machine's own settings, what would bring in something else.
const FOREIGN: [&str; 5] =
    ["OCL_ICD_FILENAMES", "OCL_ICD_PLATFORM_SORT", "OPENCL_DYLIB_PATH", "OPENCL_LAYERS", "POCL_DEVICES"];

/// Of `RUNTIME_REQUIRE` what such a process looks for itself: it sees nothing else.
const REQUIRED: [&str; 3] = ["clang", "llvm-spirv", "opencl"];

/// What Oclgrind is to look at. It starts a thread per core for each launch, and mixes up the reports of several.
const WATCHFUL: [(&str, &str); 2] = [("OCLGRIND_DATA_RACES", "1"), ("OCLGRIND_NUM_THREADS", "1")];

/// A folder with a file for each driver.
#[derive(Debug)]
pub struct IcdFolder(tempfile::TempDir);

impl IcdFolder {
    /// A folder that names nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with these drivers.
    ///
    /// # Errors
    /// The first that is missing, and how to have it.
    pub fn with_drivers(drivers: &[Driver]) -> Result<Self, (Driver, String)> {
        let icd_folder = Self::empty();
        for driver in drivers {
            icd_folder.add(driver.name(), &driver.library().map_err(|remedy| (*driver, remedy))?);
        }
        Ok(icd_folder)
    }

    /// Adds a driver by the path of its library, whatever is there.
    pub fn add(&self, name: &str, library: &str) {
        let file = self.path().join(name).with_extension("icd");
        std::fs::write(file, library).expect("a temporary file can be written");
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("report")
    }

    /// What Oclgrind has reported of the commands that have ended.
    #[must_use]
    pub fn report(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default().trim().to_owned()
    }

    /// A command that sees these drivers, and of the backends only OpenCL's.
    ///
    /// # Errors
    /// The backend is not built.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, String> {
        let mut command = Command::new(program);
        command.env("OCL_ICD_VENDORS", self.path()).env("RUNTIME_BACKENDS", crate::backend()?);
        FOREIGN.into_iter().chain(["RUNTIME_BACKEND_PATH", "LD_LIBRARY_PATH"]).for_each(|name| {
            command.env_remove(name);
        });
        command.envs(WATCHFUL).env("OCLGRIND_LOG", self.log());
        let required: Vec<_> = REQUIRED.into_iter().filter(|name| crate::required(name)).collect();
        command.env("RUNTIME_REQUIRE", required.join(","));
        Ok(command)
    }
}
