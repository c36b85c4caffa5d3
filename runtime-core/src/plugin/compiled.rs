//! Converts code that a backend compiled to owned data.

#![allow(unsafe_code, reason = "reads structures received across the ABI")]

use crate::Result;
use crate::abi::{self, Handle, Str};
use crate::model::compiled::CompiledCode;
use crate::model::kernel_info::KernelInfo;
use crate::plugin::negotiate::DispatchTable;
use crate::plugin::{convert, kernel_info};

/// Copies compiled code, and releases it.
///
/// # Errors
/// `AbiMismatch` for an invalid description.
///
/// # Safety
/// `compiled` came from `compile` or `compile_for` of these tables, and is not used afterwards.
pub(crate) unsafe fn take(calls: &DispatchTable, compiled: Handle) -> Result<CompiledCode> {
    convert::check_handle("compiled code", compiled)?;
    let mut raw = abi::CompiledCode {
        struct_size: crate::end_of!(abi::CompiledCode, kernel_count),
        reserved: 0,
        format: Str::EMPTY,
        code: std::ptr::null(),
        code_bytes: 0,
        log: Str::EMPTY,
        options: std::ptr::null(),
        option_count: 0,
        kernels: std::ptr::null(),
        kernel_count: 0,
    };
    // SAFETY: the code was compiled, and `raw` is writable.
    let status = unsafe { (calls.module.compiled_code)(compiled, &raw mut raw) };
    // SAFETY: the status is an owned error object, or null.
    let reported = unsafe { convert::from_status(status) };
    // SAFETY: what `raw` points to belongs to the compiled code, which is alive.
    let read = reported.and_then(|()| unsafe { read(&raw) });
    // SAFETY: guaranteed by the caller; everything has been copied.
    unsafe { (calls.module.release_compiled)(compiled) };
    read
}

unsafe fn read(raw: &abi::CompiledCode) -> Result<CompiledCode> {
    // SAFETY: the texts and lists are readable, as the caller guarantees.
    let format = unsafe { convert::read_str("CompiledCode.format", raw.format) }?;
    // SAFETY: as above.
    let code =
        unsafe { convert::borrow_slice("CompiledCode.code", raw.code, raw.code_bytes, abi::MAX_CODE_BYTES) }?;
    // SAFETY: as above.
    let log =
        unsafe { convert::borrow_slice("CompiledCode.log", raw.log.ptr, raw.log.len, abi::MAX_LOG_BYTES) }?;
    let log = String::from_utf8_lossy(log).into_owned();
    let field = "CompiledCode.options";
    // SAFETY: as above.
    let options = unsafe { convert::read_properties(field, raw.options, raw.option_count) }?;
    let field = "CompiledCode.kernels";
    // SAFETY: as above.
    let list = unsafe { convert::borrow_slice(field, raw.kernels, raw.kernel_count, abi::MAX_SYMBOLS) }?;
    // SAFETY: as above.
    let kernels = list.iter().enumerate().map(|(at, raw)| unsafe { kernel(at, raw) });
    Ok(CompiledCode {
        format: format.into(),
        code: code.to_vec(),
        log,
        options,
        kernels: kernels.collect::<Result<_>>()?,
    })
}

unsafe fn kernel(at: usize, raw: &abi::CompiledKernel) -> Result<(String, KernelInfo)> {
    // SAFETY: the caller guarantees a readable name.
    let name = unsafe { convert::read_str(format_args!("CompiledCode.kernels[{at}].name"), raw.name) }?;
    if !convert::is_plausible_pointer(raw.info) {
        return Err(convert::abi_mismatch(format!(
            "CompiledCode.kernels[{at}].info is {:p}, which is not a valid address",
            raw.info
        )));
    }
    let mut info = kernel_info::unknown();
    // SAFETY: the caller guarantees a description, which begins with its size.
    let stated = unsafe { *raw.info.cast::<u32>() } as usize;
    let bytes = stated.min(size_of::<abi::KernelInfo>());
    let (from, to) = (raw.info.cast::<u8>(), (&raw mut info).cast::<u8>());
    // SAFETY: both are valid for `bytes`; fields that the backend lacks stay unknown.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    let field = format_args!("CompiledCode.kernels[{at}]");
    // SAFETY: the parameters are readable.
    Ok((name, unsafe { kernel_info::read(field, &info) }?))
}
