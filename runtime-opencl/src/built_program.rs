//! Programs that are built for a device.

#![allow(unsafe_code, reason = "reads binaries back from the driver")]

use std::ffi::CStr;
use std::sync::Arc;

use cl3::ext::{CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_DEVICES, CL_PROGRAM_KERNEL_NAMES};
use runtime_core::backend::{Source, c_text, named_paths};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::deferred_release::DeferredObject;
use crate::device_state::DeviceState;
use crate::driver::handle::{Kernel, Owned, Program};
use crate::driver::info::decode_usizes;
use crate::driver::{Raw, call};
use crate::signature::{self, Parameter};
use crate::{debug, formats, grid_lock, program};

/// Makes the driver keep the parameters of kernels for queries.
const KERNEL_ARG_INFO: &str = "-cl-kernel-arg-info";

/// A built program and its device.
#[derive(Debug)]
pub(crate) struct BuiltProgram {
    shared: Arc<DeviceState>,
    /// `None` only during drop.
    program: Option<Owned<Program>>,
    device: usize,
    /// The option `parameters`: the signatures of kernels.
    signatures: Vec<String>,
}

impl BuiltProgram {
    /// Compiles or loads `source` for a device of the context.
    ///
    /// # Errors
    /// `Unsupported` for a format that the device does not accept; `InvalidArgument` for `registers` that the device does not
    /// have; `CompileFailed` or `OutOfResources` with the compiler's log; `Io`.
    pub(crate) fn new(shared: &Arc<DeviceState>, device: Raw, source: &Source<'_>) -> Result<Self> {
        let context = &*shared.context;
        context.check_alive()?;
        formats::check(&context.caps, source)?;
        let options = program::build_options(context, source)?;
        let code = &source.bytes()?;
        if code.is_empty() {
            // To a driver, a length of 0 means a NUL-terminated text.
            let message = "the code is empty; check the path";
            return Err(Error::new(ErrorKind::CompileFailed, message));
        }
        let program = match source.format {
            "opencl-binary" => program::create_with_binary(context, device, code)?,
            "spirv-kernel" => program::create_with_il(context, code)?,
            _ => program::create_with_source(context, code)?,
        };
        let mut include = program::include_folders(source);
        include.extend(source.options.texts("build_options").flat_map(named_paths));
        // With the option, NVIDIA's compiler emits invalid code for kernels without parameters, and the build fails: then build
        // without it. A compiler that does not know the option needs that too, so the second try stays.
        let has_arg_info = source.format == "opencl-c"
            && debug::first_accepted(source, &format!("{KERNEL_ARG_INFO} {options}"), |options| {
                program::build(context, &program, device, (options, &include))
            })
            .is_ok();
        if !has_arg_info {
            debug::first_accepted(source, &options, |options| {
                program::build(context, &program, device, (options, &include))
            })?;
        }
        let (shared, device) = (Arc::clone(shared), device.expose_provenance());
        let signatures = source.options.texts("parameters").map(str::to_owned).collect();
        Ok(Self { shared, program: Some(program), device, signatures })
    }

    #[inline]
    pub(crate) fn context(&self) -> &SharedContext {
        &self.shared.context
    }

    pub(crate) fn raw(&self) -> Raw {
        self.program.as_ref().map_or(std::ptr::null_mut(), Owned::raw)
    }

    /// A kernel object of its own, for one queue or for queries.
    pub(crate) fn create_kernel(&self, name: &CStr) -> Result<Owned<Kernel>> {
        program::create_kernel(self.context(), self.raw(), name)
    }

    pub(crate) fn device(&self) -> Raw {
        std::ptr::with_exposed_provenance_mut(self.device)
    }

    /// The sorted names of the kernels; empty if the driver does not tell.
    pub(crate) fn symbols(&self) -> Vec<String> {
        let names = c_text(&program::info(self.context(), self.raw(), CL_PROGRAM_KERNEL_NAMES));
        let mut names: Vec<_> = names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// The parameters of a kernel that came with the binary.
    pub(crate) fn kept_signature(&self, kernel: &str) -> Option<Vec<Parameter>> {
        signature::from_texts(self.signatures.iter().map(String::as_str), kernel)
    }

    /// The messages of the compiler; may be empty.
    pub(crate) fn log(&self) -> String {
        program::build_log(self.context(), self.raw(), self.device())
    }

    /// The compiled code, in format `opencl-binary`.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not provide it.
    pub(crate) fn binary(&self) -> Result<Vec<u8>> {
        let (driver, program) = (self.context().driver, self.raw());
        let devices = program::info(self.context(), program, CL_PROGRAM_DEVICES);
        let sizes = program::info(self.context(), program, CL_PROGRAM_BINARY_SIZES);
        let mut binaries: Vec<Vec<u8>> =
            decode_usizes(&sizes).into_iter().map(|size| vec![0; size]).collect();
        let pointers: Vec<*mut u8> = binaries
            .iter_mut()
            .map(|bytes| if bytes.is_empty() { std::ptr::null_mut() } else { bytes.as_mut_ptr() })
            .collect();
        let (size, value) = (size_of_val(pointers.as_slice()), pointers.as_ptr().cast_mut().cast());
        let (key, none) = (CL_PROGRAM_BINARIES, std::ptr::null_mut());
        grid_lock::while_idle(
            self.context(),
            || self.symbols(),
            || {
                // SAFETY: one buffer per device, of the size that the driver reported.
                unsafe { call!(driver.check, clGetProgramInfo(program, key, size, value, none)) }
            },
        )?;
        let binary =
            decode_usizes(&devices).into_iter().zip(binaries).find(|(device, _)| *device == self.device);
        binary
            .map(|(_, binary)| binary)
            .filter(|binary| !binary.is_empty())
            .ok_or_else(|| Error::unsupported("the driver provides no binary of this code"))
    }
}

impl Drop for BuiltProgram {
    fn drop(&mut self) {
        if let Some(program) = self.program.take() {
            self.shared.deferred.release(DeferredObject::Program(program));
        }
    }
}
