//! The drivers that the tests use, and where they are installed.

use std::path::Path;

/// Drivers from Debian packages: file and package.
const PACKAGED: [(Driver, &str, &str); 2] = [
    (Driver::Pocl, "/etc/OpenCL/vendors/pocl.icd", "pocl-opencl-icd"),
    (Driver::Oclgrind, "/usr/lib/oclgrind/liboclgrind-rt-icd.so", "oclgrind"),
];

/// An OpenCL driver that needs no special hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// PoCL: OpenCL C and binaries.
    Pocl,
    /// Intel's CPU driver: also SPIR-V, shared memory, half precision and sub-groups.
    Intel,
    /// Oclgrind, a simulator that checks the memory accesses of kernels.
    Oclgrind,
}

impl Driver {
    /// All drivers.
    pub const ALL: [Self; 3] = [Self::Pocl, Self::Intel, Self::Oclgrind];

    /// Its name in test names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pocl => "pocl",
            Self::Intel => "intel",
            Self::Oclgrind => "oclgrind",
        }
    }

    /// Its name in `RUNTIME_REQUIRE`.
    #[must_use]
    pub const fn requirement(self) -> &'static str {
        match self {
            Self::Pocl => "opencl",
            Self::Intel => "intel-opencl",
            Self::Oclgrind => "oclgrind",
        }
    }

    /// The path of its library, as in an `.icd` file.
    ///
    /// # Errors
    /// How to install it.
    pub fn library(self) -> Result<String, String> {
        if let Some((_, file, package)) = PACKAGED.iter().find(|(driver, ..)| *driver == self) {
            let remedy = || format!("{file} is missing; on Debian, install ocl-icd-libopencl1 {package}");
            return match self {
                Self::Pocl => std::fs::read_to_string(file).map_err(|_| remedy()),
                _ => Path::new(file).is_file().then(|| (*file).to_owned()).ok_or_else(remedy),
            };
        }
        let path = std::env::var("RUNTIME_TEST_INTEL_OPENCL").map_err(
            |_| "RUNTIME_TEST_INTEL_OPENCL is not set; tests/opencl/install.sh fetches the driver",
        )?;
        let is_there = Path::new(&path).is_file();
        is_there.then(|| path.clone()).ok_or_else(|| format!("RUNTIME_TEST_INTEL_OPENCL: no file `{path}`"))
    }
}
