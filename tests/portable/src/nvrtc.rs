//! NVIDIA's run-time compiler (NVRTC), loaded from a library.

#![allow(unsafe_code, reason = "calls the functions of NVRTC")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type LogSize = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Log = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

/// The functions of the compiler.
#[derive(Debug)]
pub struct Nvrtc {
    create: Create,
    compile: Compile,
    log_size: LogSize,
    log: Log,
    destroy: Destroy,
}

/// An NVRTC program, destroyed on drop.
struct NvrtcProgram<'a>(Program, &'a Nvrtc);

impl Nvrtc {
    /// Loads the library; it is never unloaded.
    ///
    /// # Errors
    /// A missing library or function.
    pub fn load(path: &Path) -> Result<Self, String> {
        let said = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: the user selected NVRTC, whose initialisers have no effect here.
        let library = Box::leak(Box::new(unsafe { Library::new(path) }.map_err(said)?));
        // The type is inferred from the field.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: `nvrtc.h` declares this type, and the library stays loaded.
                *unsafe { library.get($name) }.map_err(said)?
            };
        }
        Ok(Self {
            create: function!(b"nvrtcCreateProgram\0"),
            compile: function!(b"nvrtcCompileProgram\0"),
            log_size: function!(b"nvrtcGetProgramLogSize\0"),
            log: function!(b"nvrtcGetProgramLog\0"),
            destroy: function!(b"nvrtcDestroyProgram\0"),
        })
    }

    /// Compiles CUDA C++ for an architecture.
    ///
    /// # Errors
    /// The compiler's log.
    pub fn compile(&self, code: &[u8], architecture: &str) -> Result<(), String> {
        let code = CString::new(code).map_err(|error| error.to_string())?;
        let option =
            CString::new(format!("--gpu-architecture={architecture}")).map_err(|error| error.to_string())?;
        let (mut program, options) = (ptr::null_mut(), [option.as_ptr()]);
        // SAFETY: the strings are zero-terminated, and there are no headers.
        let made = unsafe {
            (self.create)(&raw mut program, code.as_ptr(), c"kernel.cu".as_ptr(), 0, ptr::null(), ptr::null())
        };
        if made != 0 {
            return Err(format!("nvrtcCreateProgram: {made}"));
        }
        let program = NvrtcProgram(program, self);
        // SAFETY: the program was created above, and there is one option.
        match unsafe { (self.compile)(program.0, 1, options.as_ptr()) } {
            0 => Ok(()),
            code => Err(format!("nvrtcCompileProgram: {code}\n{}", self.log(&program))),
        }
    }

    fn log(&self, program: &NvrtcProgram<'_>) -> String {
        let mut size = 0;
        // SAFETY: the program is not destroyed yet.
        if unsafe { (self.log_size)(program.0, &raw mut size) } != 0 {
            return String::new();
        }
        let mut text = vec![0u8; size];
        // SAFETY: the buffer has the size that NVRTC reported.
        if unsafe { (self.log)(program.0, text.as_mut_ptr().cast()) } != 0 {
            return String::new();
        }
        String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned()
    }
}

impl Drop for NvrtcProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the only place that destroys it.
        unsafe { (self.1.destroy)(&raw mut self.0) };
    }
}
