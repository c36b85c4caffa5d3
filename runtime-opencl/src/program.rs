//! The driver calls for programs: created from each format, and built for one device.

#![allow(unsafe_code, reason = "compiles code through the driver")]

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};

use cl3::ext::{CL_PROGRAM_BUILD_LOG, cl_int};
use runtime_core::backend::{Source, c_text, on_confined_thread};
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::driver::handle::{Kernel, Owned, Program};
use crate::driver::{Raw, call, code_name, create, query};
use crate::{build_failure, registers};

/// Magic number of SPIR-V.
const SPIRV_MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// A property of a program; empty if the query fails.
pub(crate) fn info(context: &SharedContext, program: Raw, key: u32) -> Vec<u8> {
    // SAFETY: the program is alive, and `value` has room for `size` bytes.
    let info = unsafe { query!(context.driver, clGetProgramInfo(program, key)) };
    info.unwrap_or_default()
}

pub(crate) fn create_with_source(context: &SharedContext, code: &[u8]) -> Result<Owned<Program>> {
    if std::str::from_utf8(code).is_err() {
        let message = "the code is not UTF-8; is it OpenCL C?";
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let (mut text, length) = (code.as_ptr().cast(), code.len());
    let (driver, handle) = (context.driver, context.handle.raw());
    let (text, length) = (&raw mut text, &raw const length);
    // SAFETY: one text of that length, which the driver copies.
    unsafe { create!(driver.create, clCreateProgramWithSource(handle, 1, text, length)) }
}

pub(crate) fn create_with_il(context: &SharedContext, code: &[u8]) -> Result<Owned<Program>> {
    if !code.starts_with(&SPIRV_MAGIC) || !code.len().is_multiple_of(4) {
        let message = "the code is not SPIR-V in this machine's byte order; pass the bytes of a .spv file";
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let (driver, handle, il) = (context.driver, context.handle.raw(), code.as_ptr().cast::<c_void>());
    if context.caps.version >= (2, 1) {
        // SAFETY: `il` has that many bytes, which the driver copies.
        unsafe { create!(driver.create, clCreateProgramWithIL(handle, il, code.len())) }
    } else {
        let create = driver
            .create_program_with_il(context.listed.platform)
            .ok_or_else(|| Error::unsupported("this driver does not accept SPIR-V"))?;
        driver.create("clCreateProgramWithILKHR", |_, status| {
            // SAFETY: `il` has that many bytes, which the driver copies.
            Some(unsafe { create(handle, il, code.len(), status) })
        })
    }
}

pub(crate) fn create_with_binary(
    context: &SharedContext,
    device: Raw,
    code: &[u8],
) -> Result<Owned<Program>> {
    let (length, mut bytes) = (code.len(), code.as_ptr());
    let mut status: cl_int = 0;
    let (driver, handle, devices) = (context.driver, context.handle.raw(), &raw const device);
    let (lengths, binaries, statuses) = (&raw const length, &raw mut bytes, &raw mut status);
    // SAFETY: one device of the context, and one binary of that length, which the driver copies.
    let created = unsafe {
        create!(driver.create, clCreateProgramWithBinary(handle, 1, devices, lengths, binaries, statuses))
    };
    let program = created.map_err(|error| match error.driver() {
        // Some drivers return INVALID_VALUE for bytes that are not a binary: report INVALID_BINARY.
        Some((_, -30)) => context.driver.error("clCreateProgramWithBinary", -42),
        _ => error,
    })?;
    if status != 0 {
        return Err(context.driver.error("clCreateProgramWithBinary", status));
    }
    Ok(program)
}

/// The compiler options of a load.
pub(crate) fn build_options(context: &SharedContext, source: &Source<'_>) -> Result<String> {
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

/// What drivers read when they compile, outside of the system's folders: their caches, and PoCL's own headers where it is not installed in
/// the system.
fn files_of_drivers() -> Vec<PathBuf> {
    /// In the folder of caches.
    const CACHES: [&str; 4] = ["pocl", "neo_compiler_cache", "mesa_shader_cache", "nvidia"];
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME");
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
    let mut paths: Vec<PathBuf> =
        ["POCL_CACHE_DIR", "CUDA_CACHE_PATH"].into_iter().filter_map(variable).collect();
    paths.extend(home.map(|home| home.join(".nv")));
    paths.extend(CACHES.iter().filter_map(|name| Some(caches.as_ref()?.join(name))));
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let files = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    let is_pocl =
        |file: &&Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libpocl"));
    for folder in files.filter(is_pocl).filter_map(Path::parent) {
        paths.extend([folder.to_owned(), folder.join("../share/pocl")]);
    }
    // Without a folder of caches, PoCL's is there; other compilers have temporary files in the one of this process.
    paths.push(std::env::temp_dir().join("pocl"));
    paths.extend(variable("TMPDIR"));
    paths
}

pub(crate) fn include_option(folder: &str) -> String {
    if folder.contains(char::is_whitespace) { format!("-I \"{folder}\"") } else { format!("-I {folder}") }
}

pub(crate) fn build_log(context: &SharedContext, program: Raw, device: Raw) -> String {
    // SAFETY: the program is alive, and `value` has room for `size` bytes.
    let log = unsafe { query!(context.driver, clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG)) };
    log.map_or_else(String::new, |log| c_text(&log))
}

/// Creates a kernel object of a built program.
pub(crate) fn create_kernel(context: &SharedContext, program: Raw, name: &CStr) -> Result<Owned<Kernel>> {
    // SAFETY: the program is built, and the name is NUL-terminated.
    unsafe { create!(context.driver.create, clCreateKernel(program, name.as_ptr())) }
}

/// Builds a program, whose text includes files of these folders.
pub(crate) fn build(
    context: &SharedContext,
    program: &Owned<Program>,
    device: Raw,
    (options, include): (&str, &[PathBuf]),
) -> Result<()> {
    let terminated =
        CString::new(options).map_err(|_| Error::invalid("build_options contains a NUL byte; remove it"))?;
    let guard = context.lock_compiler();
    let address = device.expose_provenance();
    let readable = || include.iter().cloned().chain(files_of_drivers()).collect();
    let built = on_confined_thread(readable, || {
        let (device, none) = (std::ptr::with_exposed_provenance_mut(address), std::ptr::null_mut());
        // SAFETY: program and device are in one context, the options are NUL-terminated, and there is no callback.
        unsafe {
            call!(
                context.driver.call,
                clBuildProgram(program.raw(), 1, &raw const device, terminated.as_ptr(), None, none)
            )
        }
    });
    drop(guard);
    let code = built??;
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
