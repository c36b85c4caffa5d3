//! Compiles the shim against the SDK, and loads it.

#![allow(unsafe_code, reason = "loads and calls the shim")]

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use libloading::Library;
use runtime_core::backend::{TemporaryFolder, open_library};
use runtime_core::{Error, ErrorKind, Result};

use super::functions::Functions;
use crate::process::{self, NO_ROOM, io_error};
use crate::unavailable;

const SOURCE: &str = include_str!("shim.c");
const LIBRARY: &str = "libruntime_mppa_shim.so";
/// The header that the shim is compiled against.
pub(crate) const HEADER: &str = "include/mppa_offload_host.h";
/// The libraries of the SDK that the shim calls.
const LIBRARIES: [&str; 3] = ["-lmppa_offload_host", "-lmppa_rproc_host", "-lmopd"];
const DEADLINE: Duration = Duration::from_secs(120);
/// What compilers print then.
const DISK_FULL: [&str; 3] = ["No space left on device", "Disk quota exceeded", "File too large"];

/// The loaded shim. It stays loaded, because the SDK's libraries may leave threads behind.
#[derive(Debug)]
pub struct Shim {
    pub(super) functions: Functions,
    /// What the compiler printed.
    pub(super) output: String,
}

impl Shim {
    /// Compiles the shim in `folder` with `cc`, against the SDK's header and libraries, and loads it.
    ///
    /// # Errors
    /// `Unavailable` without the SDK's header, a compiler, or a library of the SDK; `CompileFailed` with the compiler's output.
    ///
    /// # Safety
    /// The header and the libraries are those of Kalray's offload library.
    pub unsafe fn build(sdk: &Path, folder: &Path) -> Result<Arc<Self>> {
        if !has_header(sdk) {
            return Err(unavailable(format!(
                "no SDK: {} does not exist; install AccessCore and set KALRAY_TOOLCHAIN_DIR to its folder",
                sdk.join(HEADER).display()
            )));
        }
        let output = compile(sdk, folder)?;
        // SAFETY: the library was compiled from our source; loading it loads the SDK's libraries, which the caller guarantees to be Kalray's.
        let library = open_library(&folder.join(LIBRARY), |path| unsafe { Library::new(path) })?;
        // SAFETY: the library was compiled from our source, and it is never unloaded.
        let functions = unsafe { Functions::bind(&library) };
        std::mem::forget(library);
        Ok(Arc::new(Self { functions: functions?, output }))
    }
}

pub(super) fn firmware_name(firmware: &str) -> Result<CString> {
    CString::new(firmware)
        .map_err(|_| Error::invalid(format!("the firmware \"{firmware}\" has a zero byte in its name")))
}

/// Whether an SDK has the offload library.
pub(crate) fn has_header(sdk: &Path) -> bool {
    sdk.join(HEADER).is_file()
}

/// A folder to compile in.
///
/// # Errors
/// As [`process::folder`].
pub(crate) fn compile_folder() -> Result<TemporaryFolder> {
    process::folder("runtime-mppa-shim-")
}

/// Compiles the shim without loading it, and returns what the compiler printed.
///
/// # Errors
/// As [`Shim::build`].
pub(crate) fn try_compile(sdk: &Path) -> Result<String> {
    compile(sdk, compile_folder()?.path())
}

fn compile(sdk: &Path, folder: &Path) -> Result<String> {
    let source = folder.join("shim.c");
    std::fs::write(&source, SOURCE).map_err(|error| io_error(&source, error))?;
    let text = |path: &Path| path.display().to_string();
    let (include, libraries) = (text(&sdk.join("include")), text(&sdk.join("lib")));
    let mut words =
        ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-fvisibility=hidden", "-o", LIBRARY, "shim.c"]
            .map(str::to_owned)
            .to_vec();
    words.extend([format!("-I{include}"), format!("-L{libraries}")]);
    // `-Wl` would split a path at its commas.
    words.extend(["-Xlinker", "-rpath", "-Xlinker", &libraries].map(str::to_owned));
    words.extend(LIBRARIES.map(str::to_owned));
    let mut compiler = process::start(&words, folder, &[("LC_ALL", "C".to_owned())])?;
    match compiler.wait(DEADLINE)? {
        status if status.success() => Ok(compiler.output()),
        _ if DISK_FULL.iter().any(|words| compiler.output().contains(words)) => {
            let what = format!("cannot write to {}{NO_ROOM}", folder.display());
            Err(compiler.failure(ErrorKind::Io, &what))
        }
        status => Err(compiler.failure(
            ErrorKind::CompileFailed,
            &format!("failed ({status}); the SDK's header differs from what this backend knows, so please send this output"),
        )),
    }
}
