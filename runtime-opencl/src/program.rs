//! Programs of the driver: created from each format, built for one device, and read back as binaries.

#![allow(unsafe_code, reason = "compiles code through the driver")]

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cl3::ext::{
    CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BUILD_LOG, CL_PROGRAM_DEVICES,
    CL_PROGRAM_KERNEL_NAMES, cl_int,
};
use runtime_core::backend::Source;
use runtime_core::{CodeFormat, Error, ErrorKind, Result, did_you_mean};

use crate::context::SharedContext;
use crate::deferred_release::DeferredObject;
use crate::driver::handle::{Owned, Program};
use crate::driver::info::{decode_text, decode_usizes};
use crate::driver::{Raw, code_name};
use crate::signature::{self, Parameter};
use crate::{build_failure, debug, module, registers};

/// Makes the driver keep the parameters of kernels for queries.
const KERNEL_ARG_INFO: &str = "-cl-kernel-arg-info";
/// Magic number of SPIR-V.
const SPIRV_MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// A built program and its device.
#[derive(Debug)]
pub(crate) struct BuiltProgram {
    pub(crate) context: Arc<SharedContext>,
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
    pub(crate) fn new(context: &Arc<SharedContext>, device: Raw, source: &Source<'_>) -> Result<Self> {
        context.check_alive()?;
        check_format(context, source)?;
        let options = build_options(context, source)?;
        let code = &source.bytes()?;
        if code.is_empty() {
            // To a driver, a length of 0 means a NUL-terminated text.
            let message = "the code is empty; check the path";
            return Err(Error::new(ErrorKind::CompileFailed, message));
        }
        let program = match source.format {
            "opencl-binary" => create_with_binary(context, device, code)?,
            "spirv-kernel" => create_with_il(context, code)?,
            _ => create_with_source(context, code)?,
        };
        // With the option, NVIDIA's compiler emits invalid code for kernels without parameters: then build without it.
        let has_arg_info = source.format == "opencl-c"
            && debug::first_accepted(source, &format!("{KERNEL_ARG_INFO} {options}"), |options| {
                build(context, &program, device, options)
            })
            .is_ok();
        if !has_arg_info {
            debug::first_accepted(source, &options, |options| build(context, &program, device, options))?;
        }
        let (context, device) = (Arc::clone(context), device.expose_provenance());
        let signatures = source.options.texts("parameters").map(str::to_owned).collect();
        Ok(Self { context, program: Some(program), device, signatures })
    }

    pub(crate) fn raw(&self) -> Raw {
        self.program.as_ref().map_or(std::ptr::null_mut(), Owned::raw)
    }

    pub(crate) fn device(&self) -> Raw {
        std::ptr::with_exposed_provenance_mut(self.device)
    }

    /// The sorted names of the kernels; empty if the driver does not tell.
    pub(crate) fn symbols(&self) -> Vec<String> {
        let names = decode_text(&program_info(&self.context, self.raw(), CL_PROGRAM_KERNEL_NAMES));
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
        build_log(&self.context, self.raw(), self.device())
    }

    /// The compiled code, in format `opencl-binary`.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not provide it.
    pub(crate) fn binary(&self) -> Result<Vec<u8>> {
        let (driver, program) = (self.context.driver, self.raw());
        let devices = program_info(&self.context, program, CL_PROGRAM_DEVICES);
        let sizes = program_info(&self.context, program, CL_PROGRAM_BINARY_SIZES);
        let mut binaries: Vec<Vec<u8>> =
            decode_usizes(&sizes).into_iter().map(|size| vec![0; size]).collect();
        let pointers: Vec<*mut u8> = binaries
            .iter_mut()
            .map(|bytes| if bytes.is_empty() { std::ptr::null_mut() } else { bytes.as_mut_ptr() })
            .collect();
        driver.check("clGetProgramInfo", |cl| {
            let (size, value) = (size_of_val(pointers.as_slice()), pointers.as_ptr().cast_mut().cast());
            // SAFETY: one buffer per device, of the size that the driver reported.
            Some(unsafe {
                (cl.clGetProgramInfo?)(program, CL_PROGRAM_BINARIES, size, value, std::ptr::null_mut())
            })
        })?;
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
            self.context.release(DeferredObject::Program(program));
        }
    }
}

/// A property of a program; empty if the query fails.
fn program_info(context: &SharedContext, program: Raw, key: u32) -> Vec<u8> {
    let info = context.driver.query_info(|cl, size, value, needed| {
        // SAFETY: the program is alive, and `value` has room for `size` bytes.
        Some(unsafe { (cl.clGetProgramInfo?)(program, key, size, value, needed) })
    });
    info.unwrap_or_default()
}

pub(crate) fn create_with_source(context: &SharedContext, code: &[u8]) -> Result<Owned<Program>> {
    if std::str::from_utf8(code).is_err() {
        let message = "the code is not UTF-8; is it OpenCL C?";
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let (mut text, length) = (code.as_ptr().cast(), code.len());
    let raw = context.driver.create("clCreateProgramWithSource", |cl, code| {
        let context = context.handle.raw();
        // SAFETY: one text of that length, which the driver copies.
        Some(unsafe { (cl.clCreateProgramWithSource?)(context, 1, &raw mut text, &raw const length, code) })
    })?;
    // SAFETY: it was just created.
    Ok(unsafe { Owned::new(context.driver, raw) })
}

fn create_with_il(context: &SharedContext, code: &[u8]) -> Result<Owned<Program>> {
    if !code.starts_with(&SPIRV_MAGIC) || !code.len().is_multiple_of(4) {
        let message = "the code is not SPIR-V in this machine's byte order; pass the bytes of a .spv file";
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let (driver, handle, il) = (context.driver, context.handle.raw(), code.as_ptr().cast::<c_void>());
    let raw = if context.caps.version >= (2, 1) {
        driver.create("clCreateProgramWithIL", |cl, status| {
            // SAFETY: `il` has that many bytes, which the driver copies.
            Some(unsafe { (cl.clCreateProgramWithIL?)(handle, il, code.len(), status) })
        })?
    } else {
        let create = driver
            .create_program_with_il(context.listed.platform)
            .ok_or_else(|| Error::unsupported("this driver does not accept SPIR-V"))?;
        driver.create("clCreateProgramWithILKHR", |_, status| {
            // SAFETY: as above.
            Some(unsafe { create(handle, il, code.len(), status) })
        })?
    };
    // SAFETY: it was just created.
    Ok(unsafe { Owned::new(driver, raw) })
}

pub(crate) fn create_with_binary(
    context: &SharedContext,
    device: Raw,
    code: &[u8],
) -> Result<Owned<Program>> {
    let (length, mut bytes) = (code.len(), code.as_ptr());
    let mut status: cl_int = 0;
    let created = context.driver.create("clCreateProgramWithBinary", |cl, code| {
        let context = context.handle.raw();
        // SAFETY: one device of the context, and one binary of that length, which the driver copies.
        Some(unsafe {
            (cl.clCreateProgramWithBinary?)(
                context,
                1,
                &raw const device,
                &raw const length,
                &raw mut bytes,
                &raw mut status,
                code,
            )
        })
    });
    let raw = created.map_err(|error| match error.driver() {
        // Some drivers return INVALID_VALUE for bytes that are not a binary: report INVALID_BINARY.
        Some((_, -30)) => context.driver.error("clCreateProgramWithBinary", -42),
        _ => error,
    })?;
    // SAFETY: it was just created.
    let program = unsafe { Owned::new(context.driver, raw) };
    if status != 0 {
        return Err(context.driver.error("clCreateProgramWithBinary", status));
    }
    Ok(program)
}

fn check_format(context: &SharedContext, source: &Source<'_>) -> Result<()> {
    let known = module::formats(&context.caps);
    if known.iter().any(|format| format.as_str() == source.format) {
        return Ok(());
    }
    let names: Vec<_> = known.iter().map(CodeFormat::as_str).collect();
    let message = format!(
        "this device does not accept format \"{}\"; {}",
        source.format,
        did_you_mean(source.format, &names)
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// The compiler options of a load.
fn build_options(context: &SharedContext, source: &Source<'_>) -> Result<String> {
    let mut words = vec![context.quirks.build_options.clone()];
    if source.format == "opencl-c" {
        words.extend(include_folders(source).iter().map(|folder| include_option(&folder.to_string_lossy())));
    }
    words.extend(source.options.texts("build_options").map(str::to_owned));
    words.extend(registers::flag(&context.caps, source.options)?.map(str::to_owned));
    words.retain(|word| !word.is_empty());
    Ok(words.join(" "))
}

/// The folders in which the compiler looks for included files.
pub(crate) fn include_folders(source: &Source<'_>) -> Vec<PathBuf> {
    let folder = Path::new(source.path).parent().unwrap_or(Path::new("")).to_path_buf();
    let own = (!source.path.is_empty() && !folder.as_os_str().is_empty()).then(|| folder.clone());
    let given = source.options.texts("include").filter(|path| !path.is_empty());
    given.map(|path| folder.join(path)).chain(own).collect()
}

pub(crate) fn include_option(folder: &str) -> String {
    if folder.contains(char::is_whitespace) { format!("-I \"{folder}\"") } else { format!("-I {folder}") }
}

fn build_log(context: &SharedContext, program: Raw, device: Raw) -> String {
    let log = context.driver.query_info(|cl, size, value, needed| {
        // SAFETY: the program is alive, and `value` has room for `size` bytes.
        Some(unsafe {
            (cl.clGetProgramBuildInfo?)(program, device, CL_PROGRAM_BUILD_LOG, size, value, needed)
        })
    });
    log.map_or_else(String::new, |log| decode_text(&log))
}

pub(crate) fn build(
    context: &SharedContext,
    program: &Owned<Program>,
    device: Raw,
    options: &str,
) -> Result<()> {
    let terminated =
        CString::new(options).map_err(|_| Error::invalid("build_options contains a NUL byte; remove it"))?;
    let none = std::ptr::null_mut();
    let guard = context.lock_compiler();
    let code = context.driver.call("clBuildProgram", |cl| {
        // SAFETY: program and device are in one context, the options are NUL-terminated, and there is no callback.
        Some(unsafe {
            (cl.clBuildProgram?)(program.raw(), 1, &raw const device, terminated.as_ptr(), None, none)
        })
    })?;
    drop(guard);
    if code == 0 {
        return Ok(());
    }
    let log = build_log(context, program.raw(), device);
    let error = context.error("clBuildProgram", code);
    if log.is_empty() {
        return Err(error.with_note(format_args!("options: {options}")));
    }
    let kind = if error.kind() == ErrorKind::Driver { ErrorKind::CompileFailed } else { error.kind() };
    let kind = build_failure::kind_by_log(kind, &log);
    Err(Error::new(kind, format!("clBuildProgram: {log}")).with_driver(code_name(code), i64::from(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_spaces_are_quoted() {
        assert_eq!(include_option("/a/b"), "-I /a/b");
        assert_eq!(include_option("/a b"), "-I \"/a b\"");
    }
}
