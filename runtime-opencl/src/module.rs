//! Loaded code: programs of the driver, built for one device.

#![allow(unsafe_code, reason = "loads code through the driver")]

use std::ffi::{CString, c_void};
use std::path::Path;
use std::sync::Arc;

use cl3::ext::{
    CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BUILD_LOG, CL_PROGRAM_DEVICES,
    CL_PROGRAM_KERNEL_NAMES, cl_int,
};
use runtime_core::backend::{Module, Source};
use runtime_core::{Error, ErrorKind, OptionSpec, Result, suggest};

use crate::context::Primary;
use crate::deferred_release::Object;
use crate::driver::handle::{Owned, Program};
use crate::driver::{Raw, code_text, numbers, written};
use crate::facts::Facts;
use crate::kernel::OpenClKernel;

/// Makes the driver tell the parameters of kernels.
const ARG_INFO: &str = "-cl-kernel-arg-info";
/// First word of SPIR-V.
const SPIRV: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// The formats that a device takes, preferred first.
pub(crate) fn formats(facts: &Facts) -> Vec<String> {
    let known =
        [("opencl-binary", true), ("spirv-kernel", facts.takes_spirv), ("opencl-c", facts.has_compiler)];
    known.iter().filter(|(_, taken)| *taken).map(|(format, _)| (*format).to_owned()).collect()
}

/// The load options.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "build_options",
            "",
            "Options of the driver's compiler, e.g. -cl-std=CL3.0 or -cl-intel-256-GRF-per-thread; a list.",
        ),
        OptionSpec::module(
            "include",
            "",
            "Folder of header files of OpenCL C, relative to the source file's; a list.",
        ),
        OptionSpec::module(
            "save_binary",
            "",
            "File that what the driver made of the code is written to, as \"opencl-binary\".",
        ),
    ]
}

/// A built program, and the device that it is built for.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) primary: Arc<Primary>,
    /// Always there until the drop.
    program: Option<Owned<Program>>,
    device: usize,
}

impl Loaded {
    pub(crate) fn program(&self) -> Raw {
        self.program.as_ref().map_or(std::ptr::null_mut(), Owned::raw)
    }

    pub(crate) fn device(&self) -> Raw {
        std::ptr::with_exposed_provenance_mut(self.device)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(program) = self.program.take() {
            self.primary.release(Object::Program(program));
        }
    }
}

/// Loaded code.
#[derive(Debug)]
pub struct OpenClModule {
    loaded: Arc<Loaded>,
    symbols: Vec<String>,
}

impl OpenClModule {
    pub(crate) fn load(primary: &Arc<Primary>, device: Raw, source: &Source<'_>) -> Result<Self> {
        primary.check_alive()?;
        let known = formats(&primary.facts);
        if !known.iter().any(|format| format == source.format) {
            let names: Vec<_> = known.iter().map(String::as_str).collect();
            let message =
                format!("format \"{}\" on this device; {}", source.format, suggest(source.format, &names));
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let read;
        let code = match source.code {
            Some(code) => code,
            None => {
                read = self::read(Path::new(source.path))?;
                &read
            }
        };
        if code.is_empty() {
            // A driver takes a length of 0 for a text that ends with a zero byte.
            let message = "the code is empty; check the path";
            return Err(Error::new(ErrorKind::CompileFailed, message));
        }
        let program = match source.format {
            "opencl-binary" => with_binary(primary, device, code)?,
            "spirv-kernel" => with_il(primary, code)?,
            _ => with_source(primary, code)?,
        };
        let options = build_options(primary, source);
        // With it NVIDIA's compiler makes wrong code of a kernel without parameters.
        let told = source.format == "opencl-c"
            && build(primary, &program, device, &format!("{ARG_INFO} {options}")).is_ok();
        if !told {
            build(primary, &program, device, &options)?;
        }
        let module = Self {
            symbols: symbols(primary, &program),
            loaded: Arc::new(Loaded {
                primary: Arc::clone(primary),
                program: Some(program),
                device: device.expose_provenance(),
            }),
        };
        if let Some(path) = source.options.text("save_binary").filter(|path| !path.is_empty()) {
            let written = std::fs::write(path, module.binary()?);
            written.map_err(|error| {
                let message = format!("save_binary: \"{path}\": {error}; check the path");
                Error::new(ErrorKind::Io, message).with_source(error)
            })?;
        }
        Ok(module)
    }

    /// What the driver made of the code, for format `opencl-binary`.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not give it.
    pub fn binary(&self) -> Result<Vec<u8>> {
        let (driver, program) = (self.loaded.primary.driver, self.loaded.program());
        let devices = tell(&self.loaded.primary, program, CL_PROGRAM_DEVICES);
        let sizes = tell(&self.loaded.primary, program, CL_PROGRAM_BINARY_SIZES);
        let mut binaries: Vec<Vec<u8>> = numbers(&sizes).into_iter().map(|size| vec![0; size]).collect();
        let places: Vec<*mut u8> = binaries
            .iter_mut()
            .map(|bytes| if bytes.is_empty() { std::ptr::null_mut() } else { bytes.as_mut_ptr() })
            .collect();
        driver.check("clGetProgramInfo", |calls| {
            let (size, value) = (size_of_val(places.as_slice()), places.as_ptr().cast_mut().cast());
            // SAFETY: a place for each device's binary, of the size that the driver has told.
            Some(unsafe {
                (calls.clGetProgramInfo?)(program, CL_PROGRAM_BINARIES, size, value, std::ptr::null_mut())
            })
        })?;
        let own =
            numbers(&devices).into_iter().zip(binaries).find(|(device, _)| *device == self.loaded.device);
        own.map(|(_, binary)| binary)
            .filter(|binary| !binary.is_empty())
            .ok_or_else(|| Error::unsupported("the driver gives no binary of this code"))
    }
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
        OpenClKernel::find(&self.loaded, terminated)
    }
}

/// What the driver tells of a program; empty if it does not.
fn tell(primary: &Primary, program: Raw, key: u32) -> Vec<u8> {
    let told = primary.driver.ask(|calls, size, value, needed| {
        // SAFETY: the program is alive, and there is room as told.
        Some(unsafe { (calls.clGetProgramInfo?)(program, key, size, value, needed) })
    });
    told.unwrap_or_default()
}

fn symbols(primary: &Primary, program: &Owned<Program>) -> Vec<String> {
    let names = written(&tell(primary, program.raw(), CL_PROGRAM_KERNEL_NAMES));
    let mut names: Vec<_> = names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort_unstable();
    names
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let message = format!("\"{}\": {error}; check the path", path.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}

pub(crate) fn with_source(primary: &Primary, code: &[u8]) -> Result<Owned<Program>> {
    if std::str::from_utf8(code).is_err() {
        let message = "the code is not UTF-8; is it really OpenCL C?";
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let (mut text, length) = (code.as_ptr().cast(), code.len());
    let raw = primary.driver.make("clCreateProgramWithSource", |calls, code| {
        let context = primary.context.raw();
        // SAFETY: one text of that length, which the driver copies.
        Some(unsafe {
            (calls.clCreateProgramWithSource?)(context, 1, &raw mut text, &raw const length, code)
        })
    })?;
    // SAFETY: it was just made.
    Ok(unsafe { Owned::new(primary.driver, raw) })
}

fn with_il(primary: &Primary, code: &[u8]) -> Result<Owned<Program>> {
    if !code.starts_with(&SPIRV) || !code.len().is_multiple_of(4) {
        let message = "the code is not SPIR-V of this machine's byte order; pass the bytes of a .spv file";
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let (driver, context, il) = (primary.driver, primary.context.raw(), code.as_ptr().cast::<c_void>());
    let raw = if primary.facts.version >= (2, 1) {
        driver.make("clCreateProgramWithIL", |calls, status| {
            // SAFETY: so many bytes, which the driver copies.
            Some(unsafe { (calls.clCreateProgramWithIL?)(context, il, code.len(), status) })
        })?
    } else {
        let create = driver
            .il_program(primary.entry.platform)
            .ok_or_else(|| Error::unsupported("this driver takes no SPIR-V"))?;
        driver.make("clCreateProgramWithILKHR", |_, status| {
            // SAFETY: as above.
            Some(unsafe { create(context, il, code.len(), status) })
        })?
    };
    // SAFETY: it was just made.
    Ok(unsafe { Owned::new(driver, raw) })
}

fn with_binary(primary: &Primary, device: Raw, code: &[u8]) -> Result<Owned<Program>> {
    let (length, mut bytes) = (code.len(), code.as_ptr());
    let mut status: cl_int = 0;
    let made = primary.driver.make("clCreateProgramWithBinary", |calls, code| {
        let context = primary.context.raw();
        // SAFETY: one device of the context, and one binary of that length, which the driver copies.
        Some(unsafe {
            (calls.clCreateProgramWithBinary?)(
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
    let raw = made.map_err(|error| match error.driver() {
        // The driver's answer to bytes that it makes nothing of.
        Some((_, -30)) => primary.driver.error("clCreateProgramWithBinary", -42),
        _ => error,
    })?;
    // SAFETY: it was just made.
    let program = unsafe { Owned::new(primary.driver, raw) };
    if status != 0 {
        return Err(primary.driver.error("clCreateProgramWithBinary", status));
    }
    Ok(program)
}

/// What the driver's compiler is told.
fn build_options(primary: &Primary, source: &Source<'_>) -> String {
    let mut words = vec![primary.quirks.build_options.clone()];
    if source.format == "opencl-c" {
        let folder = Path::new(source.path).parent().unwrap_or(Path::new("")).to_path_buf();
        let own = (!source.path.is_empty() && !folder.as_os_str().is_empty()).then(|| folder.clone());
        let given = source.options.texts("include").filter(|path| !path.is_empty());
        let folders = given.map(|path| folder.join(path)).chain(own);
        words.extend(folders.map(|folder| include(&folder.to_string_lossy())));
    }
    words.extend(source.options.texts("build_options").map(str::to_owned));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn include(folder: &str) -> String {
    if folder.contains(char::is_whitespace) { format!("-I \"{folder}\"") } else { format!("-I {folder}") }
}

pub(crate) fn build(primary: &Primary, program: &Owned<Program>, device: Raw, options: &str) -> Result<()> {
    let terminated = CString::new(options)
        .map_err(|_| Error::invalid("build_options has a zero byte in it; remove it"))?;
    let none = std::ptr::null_mut();
    let alone = primary.compiler();
    let code = primary.driver.call("clBuildProgram", |calls| {
        // SAFETY: program and device are of one context, the options are terminated, and nobody is called back.
        Some(unsafe {
            (calls.clBuildProgram?)(program.raw(), 1, &raw const device, terminated.as_ptr(), None, none)
        })
    })?;
    drop(alone);
    if code == 0 {
        return Ok(());
    }
    let log = primary.driver.ask(|calls, size, value, needed| {
        // SAFETY: the program is alive, and there is room as told.
        Some(unsafe {
            (calls.clGetProgramBuildInfo?)(program.raw(), device, CL_PROGRAM_BUILD_LOG, size, value, needed)
        })
    });
    let error = primary.fail("clBuildProgram", code);
    let log = log.map_or_else(String::new, |log| written(&log));
    if log.is_empty() {
        return Err(error.with_note(format_args!("options: {options}")));
    }
    let kind = if error.kind() == ErrorKind::Driver { ErrorKind::CompileFailed } else { error.kind() };
    Err(Error::new(kind, format!("clBuildProgram: {log}")).with_driver(code_text(code), i64::from(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_spaces_are_quoted() {
        assert_eq!(include("/a/b"), "-I /a/b");
        assert_eq!(include("/a b"), "-I \"/a b\"");
    }
}
