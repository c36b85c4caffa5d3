//! Shims for compiling without loading, and compiled code in C form.

use super::ffi::{abi_mismatch, borrow, from_handle, into_handle, out_param, write_struct};
use super::module::{raw_info, raw_params, source};
use super::panic::{catch_panic, guard};
use super::{Backend, Shims};
use crate::abi::{self, Handle, ModuleSource, Property, Status, Str};
use crate::backend::Device;
use crate::model::compiled::{CompiledCode, Fit};
use crate::model::kernel_info::KernelInfo;
use crate::plugin::convert;
use crate::{Options, end_of};

/// Compiled code, with the lists that its C form borrows.
pub(super) struct Compiled {
    code: CompiledCode,
    options: Vec<Property>,
    kernels: Vec<abi::CompiledKernel>,
    _infos: Vec<(abi::KernelInfo, Vec<abi::Param>)>,
}

impl Compiled {
    pub(super) fn new(code: CompiledCode) -> Self {
        let info = |(_, info): &(String, KernelInfo)| {
            let params = raw_params(info);
            // Moving a vector does not move its elements.
            (raw_info(info, &params), params)
        };
        let infos: Vec<_> = code.kernels.iter().map(info).collect();
        let kernel =
            |((name, _), (info, _)): (&(String, KernelInfo), &(abi::KernelInfo, Vec<abi::Param>))| {
                abi::CompiledKernel { name: Str::new(name), info: &raw const *info }
            };
        let kernels = code.kernels.iter().zip(&infos).map(kernel).collect();
        Self { options: convert::properties(&code.options), kernels, _infos: infos, code }
    }

    fn raw(&self) -> abi::CompiledCode {
        abi::CompiledCode {
            struct_size: end_of!(abi::CompiledCode, kernel_count),
            reserved: 0,
            format: Str::new(self.code.format.as_str()),
            code: self.code.code.as_ptr(),
            code_bytes: self.code.code.len(),
            log: Str::new(&self.code.log),
            options: self.options.as_ptr(),
            option_count: self.options.len(),
            kernels: self.kernels.as_ptr(),
            kernel_count: self.kernels.len(),
        }
    }
}

impl<B: Backend> Shims<B> {
    pub(super) unsafe extern "C" fn compiler_identity(
        device: Handle,
        code: *const ModuleSource,
        buffer: *mut u8,
        capacity: usize,
        bytes: *mut usize,
    ) -> Status {
        guard("compiler_identity", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let bytes = unsafe { out_param(bytes) }?;
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            let identity = device.compiler_identity(&code)?;
            let stored = capacity.min(identity.len());
            if stored > 0 {
                if buffer.is_null() {
                    return Err(abi_mismatch("the buffer is null"));
                }
                // SAFETY: core passes a buffer of `capacity` bytes, which overlaps nothing of ours.
                unsafe { std::ptr::copy_nonoverlapping(identity.as_ptr(), buffer, stored) };
            }
            bytes.write(identity.len());
            Ok(())
        })
    }

    pub(super) unsafe extern "C" fn compile(
        device: Handle,
        code: *const ModuleSource,
        handle: *mut Handle,
    ) -> Status {
        guard("compile", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let handle = unsafe { out_param(handle) }?;
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            handle.write(into_handle(Compiled::new(device.compile(&code)?)));
            Ok(())
        })
    }

    pub(super) unsafe extern "C" fn compiled_code(compiled: Handle, out: *mut abi::CompiledCode) -> Status {
        guard("compiled_code", || {
            // SAFETY: core passes code that `compile` or `compile_for` created.
            let compiled = unsafe { borrow::<Compiled>(compiled) }?;
            // SAFETY: core passes a structure that states its size.
            unsafe { write_struct(out, compiled.raw()) }
        })
    }

    pub(super) unsafe extern "C" fn release_compiled(compiled: Handle) {
        // The hook logs a panic in `drop`; there is no status to return it in.
        let _ = catch_panic("release_compiled", || {
            // SAFETY: core passes each compiled code exactly once.
            drop(unsafe { from_handle::<Compiled>(compiled) });
        });
    }

    pub(super) unsafe extern "C" fn fits(device: Handle, code: *const ModuleSource, out: *mut u32) -> Status {
        guard("fits", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let out = unsafe { out_param(out) }?;
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            out.write(match device.fits(&code)? {
                Fit::Optimal => abi::FITS_OPTIMALLY,
                Fit::Recompile => abi::FITS_RECOMPILE,
                Fit::Unsupported => abi::FITS_NOT,
            });
            Ok(())
        })
    }
}
