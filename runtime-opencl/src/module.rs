//! Loaded code: OpenCL programs, built for one device.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use runtime_core::backend::{Module, OptionSpec, Source};
use runtime_core::{Error, ErrorKind, Result};

use crate::built_program::BuiltProgram;
use crate::device_state::DeviceState;
use crate::driver::Raw;
use crate::kernel::OpenClKernel;
use crate::{debug, offline, registers};

/// The load options.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "build_options",
            "",
            "Options for the driver's compiler, e.g. -cl-std=CL3.0 or -cl-intel-256-GRF-per-thread; a list.",
        ),
        OptionSpec::module(
            "include",
            "",
            "Folder with OpenCL C headers, relative to the source file's folder; a list.",
        ),
        OptionSpec::module("save_binary", "", "Write the compiled code to this file, as \"opencl-binary\"."),
        OptionSpec::module(
            "parameters",
            "",
            "Parameters of a kernel in an \"opencl-binary\", as compiling reported them, for drivers that do not keep them; a list.",
        ),
        debug::option(),
        registers::option(),
        offline::option(),
    ]
}

/// Loaded code.
#[derive(Debug)]
pub struct OpenClModule {
    program: Arc<BuiltProgram>,
    symbols: Vec<String>,
}

impl OpenClModule {
    pub(crate) fn load(shared: &Arc<DeviceState>, device: Raw, source: &Source<'_>) -> Result<Self> {
        offline::check_not_given(source.options)?;
        let module = Self::new(BuiltProgram::new(shared, device, source)?);
        if let Some(path) = source.options.text("save_binary").filter(|path| !path.is_empty()) {
            save(&module.binary()?, Path::new(path))?;
        }
        Ok(module)
    }

    pub(crate) fn new(program: BuiltProgram) -> Self {
        Self { symbols: program.symbols(), program: Arc::new(program) }
    }

    /// The compiled code, in format `opencl-binary`.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not provide it.
    pub fn binary(&self) -> Result<Vec<u8>> {
        self.program.binary()
    }
}

fn save(binary: &[u8], path: &Path) -> Result<()> {
    std::fs::write(path, binary).map_err(|error| {
        let message = format!("save_binary: \"{}\": {error}; check the path", path.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}

impl Module for OpenClModule {
    type Kernel = OpenClKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<OpenClKernel> {
        let missing = || Error::new(ErrorKind::NotFound, format!("no kernel \"{name}\""));
        let known = self.symbols.is_empty() || self.symbols.iter().any(|symbol| symbol == name);
        let terminated = CString::new(name).ok().filter(|_| known && !name.is_empty()).ok_or_else(missing)?;
        OpenClKernel::find(&self.program, terminated)
    }
}
