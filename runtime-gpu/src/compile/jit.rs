//! Options and logs of the driver's PTX compiler.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::{CStr, CString, c_uint, c_void};
use std::ptr::without_provenance_mut;

use cudarc::driver::sys::{CUjit_option, CUjitInputType, CUlinkState};
use runtime_core::backend::c_text;
use runtime_core::code::CompiledCode;
use runtime_core::{Error, ErrorKind, Result};

use super::ptx::PtxOptions;
use super::ptxas_log;
use crate::context::PrimaryContext;
use crate::driver::Linker;
use crate::driver::abi::CuResult;

/// Size of each log.
const LOG_BYTES: usize = 64 << 10;

/// The options of a call, with the logs that it fills.
pub(crate) struct JitOptions {
    keys: Vec<CUjit_option>,
    values: Vec<*mut c_void>,
    errors: Vec<u8>,
    information: Vec<u8>,
}

impl JitOptions {
    /// No options and no logs.
    pub(crate) fn none() -> Self {
        Self { keys: Vec::new(), values: Vec::new(), errors: Vec::new(), information: Vec::new() }
    }

    /// Options of PTX, and logs of errors, with `figures` of the resources of each kernel too.
    pub(crate) fn with_logs(ptx: PtxOptions, figures: bool) -> Self {
        let mut options =
            Self { errors: vec![0; LOG_BYTES], information: vec![0; LOG_BYTES], ..Self::none() };
        // The driver takes numbers themselves in place of pointers to them.
        let number = |value: usize| without_provenance_mut(value);
        let (errors, information) = (options.errors.as_mut_ptr(), options.information.as_mut_ptr());
        options.push(CUjit_option::CU_JIT_ERROR_LOG_BUFFER, errors.cast());
        options.push(CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, number(LOG_BYTES));
        options.push(CUjit_option::CU_JIT_INFO_LOG_BUFFER, information.cast());
        options.push(CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, number(LOG_BYTES));
        if figures {
            options.push(CUjit_option::CU_JIT_LOG_VERBOSE, number(1));
        }
        if let Some(registers) = ptx.registers {
            options.push(CUjit_option::CU_JIT_MAX_REGISTERS, number(registers as usize));
        }
        if let Some(level) = ptx.optimization {
            options.push(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, number(level as usize));
        }
        options
    }

    fn push(&mut self, key: CUjit_option, value: *mut c_void) {
        self.keys.push(key);
        self.values.push(value);
    }

    /// Calls `call` with the number of options, their keys and their values.
    pub(crate) fn with_raw<R>(
        &mut self,
        call: impl FnOnce(c_uint, *mut CUjit_option, *mut *mut c_void) -> R,
    ) -> R {
        let count = c_uint::try_from(self.keys.len()).unwrap_or(0);
        call(count, self.keys.as_mut_ptr(), self.values.as_mut_ptr())
    }

    /// The log of information.
    pub(crate) fn information(&self) -> String {
        c_text(&self.information)
    }

    /// The driver's error for a code, with the log of errors.
    pub(crate) fn error(&self, primary: &PrimaryContext, function: &str, code: CuResult) -> Error {
        let error = primary.fail(function, code);
        let log = c_text(&self.errors);
        let error = match ptxas_log::is_out_of_resources(&log) && error.kind() == ErrorKind::CompileFailed {
            true => out_of_resources(&error),
            false => error,
        };
        if log.is_empty() { error } else { error.with_note(log) }
    }
}

/// The same error with another kind.
fn out_of_resources(error: &Error) -> Error {
    let (symbol, code) = error.driver().unwrap_or_default();
    Error::new(ErrorKind::OutOfResources, error.message())
        .with_driver(symbol, code)
        .in_operation(error.operation())
}

/// Calls `compile` with figures of the kernels, and without them if it fails: with them, NVIDIA's compilers leave out errors.
///
/// # Errors
/// Those of `compile`.
pub(crate) fn with_figures<R>(compile: impl Fn(bool) -> Result<R>) -> Result<R> {
    match compile(true) {
        Err(error) if matches!(error.kind(), ErrorKind::CompileFailed | ErrorKind::Driver) => compile(false),
        other => other,
    }
}

/// PTX as the driver reads it.
///
/// # Errors
/// `CompileFailed` if it is not text.
pub(crate) fn ptx_text(mut code: Vec<u8>) -> Result<CString> {
    while code.last() == Some(&0) {
        code.pop();
    }
    CString::new(code).map_err(|_| {
        Error::new(
            ErrorKind::CompileFailed,
            "PTX is text, but the code contains a NUL byte; set the format that it really has",
        )
    })
}

/// Compiles PTX to a cubin for the device.
///
/// # Errors
/// `Unsupported` if the driver has no linker; `CompileFailed` or `OutOfResources` with the log.
pub(crate) fn compile_ptx(primary: &PrimaryContext, text: &CStr, ptx: PtxOptions) -> Result<CompiledCode> {
    let api = primary.driver.linker.ok_or_else(|| {
        Error::unsupported("the driver cannot compile PTX without loading it; update it, or load the PTX")
    })?;
    let _current = primary.make_current()?;
    let (code, log) = with_figures(|figures| {
        let mut link = Link::new(primary, api, JitOptions::with_logs(ptx, figures))?;
        link.add(text)?;
        Ok((link.complete()?, link.options.information()))
    })?;
    Ok(ptxas_log::cubin(code, &log))
}

/// A `CUlinkState`, in whose context this is. The driver writes to its options' logs until it is destroyed.
struct Link<'a> {
    primary: &'a PrimaryContext,
    api: Linker,
    state: CUlinkState,
    options: JitOptions,
}

impl<'a> Link<'a> {
    fn new(primary: &'a PrimaryContext, api: Linker, mut options: JitOptions) -> Result<Self> {
        let mut state: CUlinkState = std::ptr::null_mut();
        let code = options.with_raw(|count, keys, values| {
            // SAFETY: there are as many options, and their logs outlive the link.
            unsafe { (api.cuLinkCreate_v2)(count, keys, values, &raw mut state) }
        });
        match code.is_success() {
            true => Ok(Self { primary, api, state, options }),
            false => Err(options.error(primary, "cuLinkCreate", code)),
        }
    }

    fn check(&self, function: &str, code: CuResult) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.options.error(self.primary, function, code)) }
    }

    fn add(&mut self, text: &CStr) -> Result<()> {
        let (bytes, none) = (text.to_bytes_with_nul().len(), std::ptr::null_mut());
        // SAFETY: the link is alive; the text is terminated, and the driver only reads it during the call.
        let code = unsafe {
            (self.api.cuLinkAddData_v2)(
                self.state,
                CUjitInputType::CU_JIT_INPUT_PTX,
                text.as_ptr().cast_mut().cast(),
                bytes,
                c"kernel.ptx".as_ptr(),
                0,
                none,
                std::ptr::null_mut(),
            )
        };
        self.check("cuLinkAddData", code)
    }

    /// The cubin, copied: the driver's own lives as long as the link.
    fn complete(&mut self) -> Result<Vec<u8>> {
        let (mut code, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the link is alive, and the out-parameters are writable.
        let status = unsafe { (self.api.cuLinkComplete)(self.state, &raw mut code, &raw mut bytes) };
        self.check("cuLinkComplete", status)?;
        if code.is_null() {
            return Err(Error::new(ErrorKind::CompileFailed, "the driver's linker returned no code"));
        }
        // SAFETY: the driver returned so many bytes, which live until the link is destroyed.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes) }.to_vec())
    }
}

impl Drop for Link<'_> {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { (self.api.cuLinkDestroy)(self.state) };
    }
}
