//! nvJitLink, the library that assembles PTX without a device: optional, and loaded on first use.
//!
//! `cudarc` does not declare it, so the signatures are those of `nvJitLink.h`. Result codes are integers, for the reasons given in
//! [`crate::driver`].

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the library's own names, so that they are found by a search")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

use libloading::Library;
use once_cell::sync::OnceCell;
use runtime_core::backend::c_text;
use runtime_core::{Error, ErrorKind, Result};

use super::nvrtc;
use crate::bind::{bind, open_first};
use crate::toolkit;

/// Names of the library, newest first.
const LIBRARY_NAMES: &[&str] =
    &["libnvJitLink.so.14", "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"];
/// Where NVIDIA's Python packages have it, seen from the folder of NVRTC's library.
const BESIDE_NVRTC: [&str; 2] = ["", "../../nvjitlink/lib"];

/// `nvJitLinkResult` as a number: a library may return codes newer than any list.
type Code = c_uint;
type Handle = *mut c_void;

const SUCCESS: Code = 0;
/// `NVJITLINK_INPUT_PTX`.
const INPUT_PTX: c_int = 2;
/// Names of the codes from 1 on.
const CODE_NAMES: [&str; 10] = [
    "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
    "NVJITLINK_ERROR_MISSING_ARCH",
    "NVJITLINK_ERROR_INVALID_INPUT",
    "NVJITLINK_ERROR_PTX_COMPILE",
    "NVJITLINK_ERROR_NVVM_COMPILE",
    "NVJITLINK_ERROR_INTERNAL",
    "NVJITLINK_ERROR_THREADPOOL",
    "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
    "NVJITLINK_ERROR_FINALIZE",
    "NVJITLINK_ERROR_NULL_INPUT",
];

bind! { Code;
/// Functions that every supported version has.
Required {
    nvJitLinkCreate: fn(*mut Handle, u32, *const *const c_char);
    nvJitLinkDestroy: fn(*mut Handle);
    nvJitLinkAddData: fn(Handle, c_int, *const c_void, usize, *const c_char);
    nvJitLinkComplete: fn(Handle);
    nvJitLinkGetLinkedCubinSize: fn(Handle, *mut usize);
    nvJitLinkGetLinkedCubin: fn(Handle, *mut c_char);
    nvJitLinkGetErrorLogSize: fn(Handle, *mut usize);
    nvJitLinkGetErrorLog: fn(Handle, *mut c_char);
    nvJitLinkGetInfoLogSize: fn(Handle, *mut usize);
    nvJitLinkGetInfoLog: fn(Handle, *mut c_char);
}
}

/// A function that reports a size, and one that writes so many bytes.
type Output =
    (unsafe extern "C" fn(Handle, *mut usize) -> Code, unsafe extern "C" fn(Handle, *mut c_char) -> Code);

/// What the library made of PTX, and what it said.
pub(crate) struct Assembled {
    pub(crate) cubin: Vec<u8>,
    pub(crate) log: String,
}

/// What failed, and the log of errors.
pub(crate) struct Failure {
    pub(crate) function: &'static str,
    pub(crate) code: i64,
    pub(crate) name: &'static str,
    pub(crate) log: String,
}

/// nvJitLink's functions. Loaded once per process and never unloaded.
#[derive(Debug)]
pub(crate) struct NvJitLink {
    required: Required,
    _library: Library,
}

impl NvJitLink {
    /// Loads the library, once per process. A failed attempt is repeated.
    ///
    /// # Errors
    /// `Unavailable`, with the reason, if it is not installed.
    pub(crate) fn load() -> Result<&'static Self> {
        static LOADED: OnceCell<NvJitLink> = OnceCell::new();
        LOADED.get_or_try_init(Self::open)
    }

    fn open() -> Result<Self> {
        let bind =
            |library: Library, _: &Path| Ok(Self { required: Required::bind(&library)?, _library: library });
        // SAFETY: NVIDIA's library may be loaded at any time, on any thread.
        let opened = unsafe { open_first(candidates(), bind) };
        opened.map_err(|reason| Error::new(ErrorKind::Unavailable, reason))
    }

    /// Assembles PTX to a cubin.
    ///
    /// # Errors
    /// The function that failed, with the whole log.
    pub(crate) fn assemble(
        &self,
        text: &CStr,
        options: &[CString],
    ) -> std::result::Result<Assembled, Failure> {
        let link = Link::new(&self.required, options)?;
        let text = text.to_bytes_with_nul();
        // SAFETY: the link is alive; the text has so many bytes and, like the name, lives during the call.
        let code = unsafe {
            (self.required.nvJitLinkAddData)(
                link.handle,
                INPUT_PTX,
                text.as_ptr().cast(),
                text.len(),
                c"kernel.ptx".as_ptr(),
            )
        };
        link.check("nvJitLinkAddData", code)?;
        // SAFETY: the link is alive.
        link.check("nvJitLinkComplete", unsafe { (self.required.nvJitLinkComplete)(link.handle) })?;
        let api = &self.required;
        let cubin = (api.nvJitLinkGetLinkedCubinSize, api.nvJitLinkGetLinkedCubin);
        let cubin = link.output(cubin).map_err(|code| link.failure("nvJitLinkGetLinkedCubin", code))?;
        let log = link.output((api.nvJitLinkGetInfoLogSize, api.nvJitLinkGetInfoLog)).unwrap_or_default();
        Ok(Assembled { cubin, log: c_text(&log) })
    }
}

/// An `nvJitLinkHandle`, destroyed on drop.
struct Link<'a> {
    api: &'a Required,
    handle: Handle,
}

impl<'a> Link<'a> {
    fn new(api: &'a Required, options: &[CString]) -> std::result::Result<Self, Failure> {
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = u32::try_from(options.len()).unwrap_or(0);
        let mut handle = std::ptr::null_mut();
        // SAFETY: there are as many options, which are terminated, and the out-parameter is writable.
        let code = unsafe { (api.nvJitLinkCreate)(&raw mut handle, count, options.as_ptr()) };
        match code {
            SUCCESS => Ok(Self { api, handle }),
            // The handle is written, but does not live: using it crashes (nvJitLink 12.9).
            _ => Err(failure("nvJitLinkCreate", code, String::new())),
        }
    }

    fn check(&self, function: &'static str, code: Code) -> std::result::Result<(), Failure> {
        if code == SUCCESS { Ok(()) } else { Err(self.failure(function, code)) }
    }

    fn failure(&self, function: &'static str, code: Code) -> Failure {
        let log = self.output((self.api.nvJitLinkGetErrorLogSize, self.api.nvJitLinkGetErrorLog));
        failure(function, code, c_text(&log.unwrap_or_default()))
    }

    fn output(&self, (size, read): Output) -> std::result::Result<Vec<u8>, Code> {
        let mut bytes = 0;
        // SAFETY: the link is alive, and the out-parameter is writable.
        let code = unsafe { size(self.handle, &raw mut bytes) };
        if code != SUCCESS {
            return Err(code);
        }
        // A log's terminator may not be counted.
        let mut output = vec![0_u8; bytes.saturating_add(1)];
        // SAFETY: the link is alive, and the buffer has the size that the library reported, and more.
        let code = unsafe { read(self.handle, output.as_mut_ptr().cast()) };
        output.truncate(bytes);
        if code == SUCCESS { Ok(output) } else { Err(code) }
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `nvJitLinkCreate`, destroyed once.
        let _ = unsafe { (self.api.nvJitLinkDestroy)(&raw mut self.handle) };
    }
}

fn failure(function: &'static str, code: Code, log: String) -> Failure {
    let name = usize::try_from(code).ok().and_then(|code| CODE_NAMES.get(code.checked_sub(1)?));
    Failure { function, code: i64::from(code), name: name.copied().unwrap_or("NVJITLINK_ERROR"), log }
}

/// Paths to try: files, and last the bare names, for a library that only the system's loader finds.
fn candidates() -> Vec<PathBuf> {
    let beside = |library: PathBuf| {
        let folder = library.parent().map(PathBuf::from).unwrap_or_default();
        BESIDE_NVRTC
            .into_iter()
            .flat_map(move |beside| toolkit::files_in(&folder.join(beside), LIBRARY_NAMES))
    };
    let near = nvrtc::library_files().into_iter().flat_map(beside);
    let names = LIBRARY_NAMES.iter().map(PathBuf::from);
    toolkit::library_files(LIBRARY_NAMES).into_iter().chain(near).chain(names).collect()
}
