//! Shims for compiling without loading, and compiled code in C form.

use super::ffi::{abi_mismatch, answer, answer_struct, into_handle, release};
use super::module::{raw_info, raw_params, source};
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
        let ask = |device: &B::Device| {
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
            Ok(identity.len())
        };
        // SAFETY: core passes a live device of this backend, and a writable output pointer.
        unsafe { answer("compiler_identity", device, bytes, ask) }
    }

    pub(super) unsafe extern "C" fn compile(
        device: Handle,
        code: *const ModuleSource,
        handle: *mut Handle,
    ) -> Status {
        let compile = |device: &B::Device| {
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            Ok(into_handle(Compiled::new(device.compile(&code)?)))
        };
        // SAFETY: core passes a live device of this backend, and a writable output pointer.
        unsafe { answer("compile", device, handle, compile) }
    }

    pub(super) unsafe extern "C" fn compiled_code(compiled: Handle, out: *mut abi::CompiledCode) -> Status {
        let ask = |compiled: &Compiled| Ok(compiled.raw());
        // SAFETY: core passes code that `compile` or `compile_for` created, and a structure that states its size.
        unsafe { answer_struct("compiled_code", compiled, out, ask) }
    }

    pub(super) unsafe extern "C" fn release_compiled(compiled: Handle) {
        // SAFETY: core passes each compiled code exactly once.
        unsafe { release::<Compiled>("release_compiled", compiled) }
    }

    pub(super) unsafe extern "C" fn fits(device: Handle, code: *const ModuleSource, fit: *mut u32) -> Status {
        let ask = |device: &B::Device| {
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            Ok(match device.fits(&code)? {
                Fit::Optimal => abi::FITS_OPTIMALLY,
                Fit::Recompile => abi::FITS_RECOMPILE,
                Fit::Unsupported => abi::FITS_NOT,
            })
        };
        // SAFETY: core passes a live device of this backend, and a writable output pointer.
        unsafe { answer("fits", device, fit, ask) }
    }
}
