//! NVRTC, the CUDA C compiler library: optional, and loaded on first use, with the types and signatures of `cudarc`'s `sys`.
//!
//! The loader is handwritten, and result codes are integers, for the reasons given in [`crate::driver`].

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the library's own names, so that they are found by a search")]

use std::collections::HashSet;
use std::ffi::{CString, c_char, c_int, c_uint};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};
use libloading::Library;
use once_cell::sync::OnceCell;
use runtime_core::backend::{c_text, c_text_at, named_paths, on_confined_thread};
use runtime_core::{Error, ErrorKind, Result};

use super::ptxas_log;
use crate::bind::{bind, bind_as_in_header, open_first};
use crate::toolkit;

/// Names of the library, newest first.
const LIBRARY_NAMES: &[&str] =
    &["libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];
/// A header that every toolkit has, by which its include folder is found.
const TOOLKIT_HEADER: &str = "cuda_fp16.h";

/// `nvrtcResult` as a number: a library may return codes newer than any list.
type Code = c_uint;

const SUCCESS: Code = nvrtcResult::NVRTC_SUCCESS as Code;
const COMPILATION: Code = nvrtcResult::NVRTC_ERROR_COMPILATION as Code;
const INVALID_OPTION: Code = nvrtcResult::NVRTC_ERROR_INVALID_OPTION as Code;

bind_as_in_header! { Code as nvrtcResult;
/// Functions that every supported version has.
Required {
    nvrtcCreateProgram: fn(
        *mut nvrtcProgram, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
    );
    nvrtcDestroyProgram: fn(*mut nvrtcProgram);
    nvrtcCompileProgram: fn(nvrtcProgram, c_int, *const *const c_char);
    nvrtcGetProgramLogSize: fn(nvrtcProgram, *mut usize);
    nvrtcGetProgramLog: fn(nvrtcProgram, *mut c_char);
    nvrtcGetPTXSize: fn(nvrtcProgram, *mut usize);
    nvrtcGetPTX: fn(nvrtcProgram, *mut c_char);
    nvrtcGetCUBINSize: fn(nvrtcProgram, *mut usize);
    nvrtcGetCUBIN: fn(nvrtcProgram, *mut c_char);
}

/// The list of supported architectures.
Architectures {
    nvrtcGetNumSupportedArchs: fn(*mut c_int);
    nvrtcGetSupportedArchs: fn(*mut c_int);
}
}

bind! { *const c_char;
/// Texts of codes, which are numbers here and a closed enum in the header.
CodeTexts {
    nvrtcGetErrorString: fn(Code);
}
}

/// NVRTC's functions. Loaded once per process and never unloaded.
#[derive(Debug)]
pub(crate) struct Nvrtc {
    required: Required,
    code_texts: CodeTexts,
    architectures: Option<Architectures>,
    /// Include folder of the toolkit that contains the library.
    include: Option<PathBuf>,
    /// The library's file; `None` where only the system's loader found it, and it does not say where.
    file: Option<PathBuf>,
    _library: Library,
}

/// The output of NVRTC.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DeviceCode {
    /// Binary code for the device itself.
    Cubin(Vec<u8>),
    /// PTX for the driver's compiler, for a device newer than the library.
    Ptx(Vec<u8>),
}

/// A source and its compile options.
#[derive(Clone, Debug)]
pub(crate) struct CompileRequest<'a> {
    pub(crate) text: &'a [u8],
    /// File name in the log.
    pub(crate) name: &'a str,
    /// An architecture by name; `None` for the device's own.
    pub(crate) arch: Option<&'a str>,
    /// Compute capability of the device, `major * 10 + minor`.
    pub(crate) compute: u32,
    pub(crate) include: Vec<String>,
    pub(crate) options: Vec<&'a str>,
    /// Whether the log has the resources of each kernel.
    pub(crate) with_figures: bool,
}

impl Nvrtc {
    /// Loads the library, once per process. A failed attempt is repeated.
    ///
    /// # Errors
    /// `Unavailable` if it is not installed.
    pub(crate) fn load() -> Result<&'static Self> {
        static LOADED: OnceCell<Nvrtc> = OnceCell::new();
        LOADED.get_or_try_init(Self::open)
    }

    fn open() -> Result<Self> {
        // SAFETY: NVIDIA's compiler library may be loaded at any time, on any thread.
        unsafe { open_first(library_candidates(), Self::bind) }.map_err(|reason| {
            let message = format!(
                "CUDA C requires NVRTC, which could not be loaded ({reason}); install the CUDA toolkit, set CUDA_HOME, or pass PTX or a cubin"
            );
            Error::new(ErrorKind::Unavailable, message)
        })
    }

    /// Binds the functions of a library; the name of the first one that it lacks if that fails.
    fn bind(library: Library, path: &Path) -> std::result::Result<Self, &'static str> {
        let required = Required::bind(&library)?;
        Ok(Self {
            code_texts: CodeTexts::bind(&library)?,
            architectures: Architectures::bind(&library).ok(),
            include: toolkit_include_folder(path),
            file: Some(path.to_owned())
                .filter(|path| path.is_absolute())
                .or_else(|| loaded_file(required.nvrtcCreateProgram as *const std::ffi::c_void)),
            required,
            _library: library,
        })
    }

    /// Compiles a source; returns the code, and the log.
    ///
    /// # Errors
    /// `CompileFailed` or `OutOfResources` with the whole log; `InvalidArgument` for invalid options.
    pub(crate) fn compile(&self, request: &CompileRequest<'_>) -> Result<(DeviceCode, String)> {
        let (arch, real) = self.architecture(request);
        let options = self.options(request, &arch)?;
        let program = self.create(request)?;
        let code = self.run(&program, &options, request)?;
        if code != SUCCESS {
            let log = program.log().unwrap_or_default();
            // With figures, NVRTC 11.8 to 13.5 leave the assembler's own errors out of the log.
            let lacks_error = !ptxas_log::messages(&log).contains("error");
            return match request.with_figures && code == COMPILATION && lacks_error {
                true => self.compile(&CompileRequest { with_figures: false, ..request.clone() }),
                false => Err(self.error("nvrtcCompileProgram", code, &log)),
            };
        }
        let code = if real {
            let (size, read) = (self.required.nvrtcGetCUBINSize, self.required.nvrtcGetCUBIN);
            program.output("nvrtcGetCUBIN", size, read).map(DeviceCode::Cubin)?
        } else {
            let (size, read) = (self.required.nvrtcGetPTXSize, self.required.nvrtcGetPTX);
            program.output("nvrtcGetPTX", size, read).map(DeviceCode::Ptx)?
        };
        Ok((code, program.log()?))
    }

    /// Compiles a program, whose text may not be trusted.
    fn run(
        &self,
        program: &OwnedProgram<'_>,
        options: &[CString],
        request: &CompileRequest<'_>,
    ) -> Result<Code> {
        /// What the function takes.
        struct Call(nvrtcProgram, Vec<*const c_char>);
        // SAFETY: the caller waits for the thread, and NVRTC's functions may be called on any.
        unsafe impl Send for Call {}
        let call = Call(program.handle, options.iter().map(|option| option.as_ptr()).collect());
        on_confined_thread(
            || self.readable(request),
            move || {
                let Call(program, options) = { call };
                let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
                // SAFETY: the program is alive, and there are as many options.
                unsafe { (self.required.nvrtcCompileProgram)(program, count, options.as_ptr()) }
            },
        )
    }

    /// What the library reads: its own files, and the folders of included ones.
    fn readable(&self, request: &CompileRequest<'_>) -> Vec<PathBuf> {
        let own = self.file.iter().filter_map(|file| Some(file.parent()?.to_owned()));
        let given = request.include.iter().map(PathBuf::from);
        let named = request.options.iter().flat_map(|option| named_paths(option));
        own.chain(self.include.clone()).chain(given).chain(named).collect()
    }

    fn options(&self, request: &CompileRequest<'_>, arch: &str) -> Result<Vec<CString>> {
        let mut options = vec![format!("--gpu-architecture={arch}")];
        options.extend(request.include.iter().map(|folder| format!("--include-path={folder}")));
        options.extend(self.include.iter().map(|folder| format!("--include-path={}", folder.display())));
        options.extend(request.with_figures.then(|| ptxas_log::VERBOSE.to_owned()));
        options.extend(request.options.iter().map(|&option| option.to_owned()));
        options.iter().map(|option| to_c_string("options", option.as_bytes())).collect()
    }

    fn create(&self, request: &CompileRequest<'_>) -> Result<OwnedProgram<'_>> {
        let text = to_c_string("code", request.text)?;
        let name = to_c_string("path", request.name.as_bytes())?;
        let (mut handle, none, nothing) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
        // SAFETY: both strings are terminated and live during the call, and there are no headers.
        let code = unsafe {
            (self.required.nvrtcCreateProgram)(
                &raw mut handle,
                text.as_ptr(),
                name.as_ptr(),
                0,
                none,
                nothing,
            )
        };
        self.check("nvrtcCreateProgram", code)?;
        Ok(OwnedProgram { nvrtc: self, handle })
    }

    /// The architecture to compile for, and whether it is a real one, which gives a cubin.
    fn architecture(&self, request: &CompileRequest<'_>) -> (String, bool) {
        match request.arch {
            Some(arch) => (arch.to_owned(), arch.starts_with("sm_")),
            None => choose_architecture(&self.supported_architectures(), request.compute),
        }
    }

    /// The architectures that the library supports; empty if it does not report them.
    pub(crate) fn supported_architectures(&self) -> Vec<c_int> {
        let Some(api) = self.architectures else { return Vec::new() };
        let mut number = 0;
        // SAFETY: the out-parameter is writable.
        if unsafe { (api.nvrtcGetNumSupportedArchs)(&raw mut number) } != SUCCESS {
            return Vec::new();
        }
        let mut supported = vec![0; usize::try_from(number).unwrap_or(0)];
        // SAFETY: the array has the length that the library reported.
        let code = unsafe { (api.nvrtcGetSupportedArchs)(supported.as_mut_ptr()) };
        if code == SUCCESS { supported } else { Vec::new() }
    }

    fn check(&self, function: &str, code: Code) -> Result<()> {
        if code == SUCCESS { Ok(()) } else { Err(self.error(function, code, "")) }
    }

    fn error(&self, function: &str, code: Code, log: &str) -> Error {
        // SAFETY: takes any number and returns a static string.
        let name = unsafe { (self.code_texts.nvrtcGetErrorString)(code) };
        // SAFETY: NVRTC's strings are terminated.
        let name = unsafe { c_text_at(name) };
        // A log comes with errors in the source; without one, an option or the library itself is at fault.
        let (kind, message) = match ptxas_log::messages(log).as_str() {
            "" if code == INVALID_OPTION => (
                ErrorKind::InvalidArgument,
                "an option is invalid; check \"options\" and \"arch\"".to_owned(),
            ),
            "" => (ErrorKind::CompileFailed, "NVRTC reported no reason".to_owned()),
            log if ptxas_log::is_out_of_resources(log) => (ErrorKind::OutOfResources, log.to_owned()),
            log => (ErrorKind::CompileFailed, log.to_owned()),
        };
        Error::new(kind, message).with_driver(name, i64::from(code)).in_operation(function)
    }
}

/// An `nvrtcProgram`, destroyed on drop.
struct OwnedProgram<'a> {
    nvrtc: &'a Nvrtc,
    handle: nvrtcProgram,
}

impl OwnedProgram<'_> {
    fn log(&self) -> Result<String> {
        let api = &self.nvrtc.required;
        let (size, read) = (api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog);
        self.output("nvrtcGetProgramLog", size, read).map(|log| c_text(&log))
    }

    /// Reads an output through its pair of functions, one for the size and one for the bytes.
    fn output(
        &self,
        function: &str,
        size: unsafe extern "C" fn(nvrtcProgram, *mut usize) -> Code,
        read: unsafe extern "C" fn(nvrtcProgram, *mut c_char) -> Code,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and the out-parameter is writable.
        self.nvrtc.check(function, unsafe { size(self.handle, &raw mut bytes) })?;
        let mut output = vec![0_u8; bytes];
        // SAFETY: the program is alive, and the buffer has the size that the library reported.
        self.nvrtc.check(function, unsafe { read(self.handle, output.as_mut_ptr().cast()) })?;
        Ok(output)
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `nvrtcCreateProgram`, destroyed once.
        let _ = unsafe { (self.nvrtc.required.nvrtcDestroyProgram)(&raw mut self.handle) };
    }
}

/// The architecture for a device, and whether it is a real one: the device's own, else the newest older virtual one, as PTX.
fn choose_architecture(supported: &[c_int], compute: u32) -> (String, bool) {
    let own = c_int::try_from(compute).unwrap_or(0);
    if supported.is_empty() || supported.contains(&own) {
        return (format!("sm_{compute}"), true);
    }
    let older = supported.iter().copied().filter(|&arch| arch < own).max();
    (format!("compute_{}", older.unwrap_or(own)), false)
}

/// The files that decide what CUDA C is compiled to: the libraries that may be loaded, and the toolkit's headers. Loads
/// nothing, unless only the system's loader finds a library.
///
/// # Errors
/// `Unavailable` without NVRTC; `Unsupported` if its file is unknown.
pub(crate) fn files() -> Result<&'static [PathBuf]> {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(files) = FILES.get() {
        return Ok(files);
    }
    let mut libraries = library_files();
    if libraries.is_empty() {
        let file = Nvrtc::load()?.file.clone();
        libraries.push(file.ok_or_else(|| Error::unsupported("the file of NVRTC's library is unknown"))?);
    }
    let headers = libraries.iter().filter_map(|file| toolkit_include_folder(file));
    let headers: Vec<_> = headers.flat_map(|folder| [folder.join(TOOLKIT_HEADER), folder]).collect();
    // Most of them are links to the same few files; the first ones are what is loaded.
    let mut known = HashSet::new();
    let is_new = |path: &PathBuf| path.metadata().is_ok_and(|file| known.insert((file.dev(), file.ino())));
    let files = libraries.into_iter().chain(headers).filter(is_new).collect();
    Ok(FILES.get_or_init(|| files))
}

/// Paths to try: files, and last the bare names, for a library that is loaded already or that only the system's loader finds.
fn library_candidates() -> Vec<PathBuf> {
    library_files().into_iter().chain(LIBRARY_NAMES.iter().map(PathBuf::from)).collect()
}

/// The libraries that exist, searched for once per process if there are any: that takes a hundred system calls.
pub(crate) fn library_files() -> Vec<PathBuf> {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return found.clone();
    }
    let files = toolkit::library_files(LIBRARY_NAMES);
    match files.is_empty() {
        true => files,
        false => FOUND.get_or_init(|| files).clone(),
    }
}

/// The file of the loaded library that contains a function.
fn loaded_file(function: *const std::ffi::c_void) -> Option<PathBuf> {
    // SAFETY: all fields of this structure may be zero.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: takes any address, and the out-parameter is writable.
    let found = unsafe { libc::dladdr(function, &raw mut info) };
    // SAFETY: the loader's names are terminated and live as long as the library, which is never unloaded.
    let name = unsafe { c_text_at(info.dli_fname) };
    Some(PathBuf::from(name)).filter(|path| found != 0 && path.is_absolute())
}

/// The include folder of the toolkit: next to the library, or of the configured or default toolkit.
fn toolkit_include_folder(library: &Path) -> Option<PathBuf> {
    let beside = library.parent().and_then(Path::parent).map(|toolkit| toolkit.join("include"));
    let installed = toolkit::folders().into_iter().map(|toolkit| toolkit.join("include"));
    beside.into_iter().chain(installed).find(|folder| folder.join(TOOLKIT_HEADER).is_file())
}

fn to_c_string(what: &str, text: &[u8]) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid(format!("{what} contains a NUL byte; CUDA C is text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_a_cubin_or_ptx_that_it_supports() {
        assert_eq!(choose_architecture(&[75, 80, 90], 90), ("sm_90".to_owned(), true));
        assert_eq!(choose_architecture(&[75, 80, 90], 120), ("compute_90".to_owned(), false));
        assert_eq!(choose_architecture(&[], 120), ("sm_120".to_owned(), true));
        assert_eq!(choose_architecture(&[75], 50), ("compute_50".to_owned(), false));
    }
}
