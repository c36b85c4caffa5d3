//! The drivers that the tests know, and where they are.

use std::path::Path;

/// Where Debian's packages have their drivers, by file.
const PACKAGED: [(Driver, &str, &str); 2] = [
    (Driver::Pocl, "/etc/OpenCL/vendors/pocl.icd", "pocl-opencl-icd"),
    (Driver::Oclgrind, "/usr/lib/oclgrind/liboclgrind-rt-icd.so", "oclgrind"),
];

/// A driver of OpenCL that needs no special hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// PoCL: OpenCL C and binaries.
    Pocl,
    /// Intel's for CPUs: SPIR-V, shared memory, half precision and sub-groups too.
    Intel,
    /// Oclgrind, which watches what kernels do.
    Oclgrind,
}

impl Driver {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pocl, Self::Intel, Self::Oclgrind];

    /// Its name in names of tests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pocl => "pocl",
            Self::Intel => "intel",
            Self::Oclgrind => "oclgrind",
        }
    }

    /// Its word in `RUNTIME_REQUIRE`.
    #[must_use]
    pub const fn requirement(self) -> &'static str {
        match self {
            Self::Pocl => "opencl",
            Self::Intel => "intel-opencl",
            Self::Oclgrind => "oclgrind",
        }
    }

    /// What a file of the loader's folder says of it: the path of its library.
    ///
    /// # Errors
    /// How to have it.
    pub fn library(self) -> Result<String, String> {
        if let Some((_, file, package)) = PACKAGED.iter().find(|(driver, ..)| *driver == self) {
            let remedy = || format!("{file} is not there; on Debian: ocl-icd-libopencl1 {package}");
            return match self {
                Self::Pocl => std::fs::read_to_string(file).map_err(|_| remedy()),
                _ => Path::new(file).is_file().then(|| (*file).to_owned()).ok_or_else(remedy),
            };
        }
        let path = std::env::var("RUNTIME_TEST_INTEL_OPENCL").map_err(
            |_| "RUNTIME_TEST_INTEL_OPENCL names no libintelocl.so; tests/opencl/install.sh fetches one",
        )?;
        let is_there = Path::new(&path).is_file();
        is_there.then(|| path.clone()).ok_or_else(|| format!("RUNTIME_TEST_INTEL_OPENCL: no file `{path}`"))
    }
}
