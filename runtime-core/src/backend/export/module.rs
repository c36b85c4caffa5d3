//! Shims for modules and kernels.

use std::sync::OnceLock;

use super::ffi::{
    abi_mismatch, answer, answer_list, answer_struct, borrow, into_handle, read_struct, release,
};
use super::{Backend, BufferOf, KernelOf, ModuleOf, Shims};
use crate::abi::{self, Handle, ModuleSource, ModuleTable, Status, Str};
use crate::backend::{Device, Kernel, Launch, Module, Source};
use crate::model::access::{Access, ArgKind};
use crate::model::geometry::Occupancy;
use crate::model::kernel_info::{KernelInfo, Param};
use crate::plugin::convert;
use crate::{Options, Result, end_of};

/// A module, with its symbol list in C form, created on first use.
struct LoadedModule<M> {
    module: M,
    symbols: OnceLock<Vec<Str>>,
}

/// A kernel, with its properties and its parameters in C form, created on first use.
pub(super) struct LoadedKernel<K> {
    kernel: K,
    info: OnceLock<(KernelInfo, Vec<abi::Param>)>,
}

/// Borrows the kernel behind a handle.
///
/// # Safety
/// `handle` is null or a live kernel of this backend for `'a`.
#[inline]
pub(super) unsafe fn kernel<'a, B: Backend>(handle: Handle) -> Result<&'a KernelOf<B>> {
    // SAFETY: guaranteed by the caller.
    Ok(&unsafe { borrow::<LoadedKernel<KernelOf<B>>>(handle) }?.kernel)
}

/// Converts a module source received from core; its load options are stored in `options`.
///
/// # Safety
/// `source` is null, or states its size and points to data that is readable for `'a`.
pub(super) unsafe fn source<'a>(source: *const ModuleSource, options: &'a mut Options) -> Result<Source<'a>> {
    // SAFETY: guaranteed by the caller.
    let raw = unsafe { read_struct(source) }?;
    // SAFETY: as above.
    *options = unsafe { convert::read_properties("ModuleSource.options", raw.options, raw.option_count) }?;
    // SAFETY: as above.
    let format = unsafe { convert::borrow_str("ModuleSource.format", raw.format) }?;
    // SAFETY: as above.
    let path = unsafe { convert::borrow_str("ModuleSource.path", raw.path) }?;
    // SAFETY: as above.
    let code = unsafe { convert::borrow_slice("ModuleSource.code", raw.code, raw.code_bytes, usize::MAX) };
    let code = if raw.code.is_null() { None } else { Some(code?) };
    Ok(Source { format, path, code, options })
}

/// Wraps a launch received from core.
///
/// # Safety
/// `launch` is null, or states its size and is valid for `'a`, with everything it points to.
#[inline]
pub(super) unsafe fn launch<'a, B: Backend>(launch: *const abi::Launch) -> Result<Launch<'a, BufferOf<B>>> {
    // SAFETY: guaranteed by the caller.
    match unsafe { launch.as_ref() } {
        Some(raw) if raw.struct_size >= end_of!(abi::Launch, arg_count) => {
            // SAFETY: guaranteed by the caller; the tensors' buffers belong to this backend.
            Ok(unsafe { Launch::new(raw) })
        }
        _ => Err(abi_mismatch("the launch is null or lacks fields of ABI minor 0")),
    }
}

impl<B: Backend> Shims<B> {
    pub(super) const MODULE: &'static ModuleTable = &ModuleTable {
        struct_size: end_of!(ModuleTable, fits),
        reserved: 0,
        load: Some(Self::load),
        unload: Some(Self::unload),
        symbols: Some(Self::symbols),
        kernel: Some(Self::kernel),
        release_kernel: Some(Self::release_kernel),
        kernel_info: Some(Self::kernel_info),
        occupancy: Some(Self::occupancy),
        compiler_identity: Some(Self::compiler_identity),
        compile: Some(Self::compile),
        compiled_code: Some(Self::compiled_code),
        release_compiled: Some(Self::release_compiled),
        fits: Some(Self::fits),
    };

    unsafe extern "C" fn load(device: Handle, code: *const ModuleSource, handle: *mut Handle) -> Status {
        let load = |device: &B::Device| {
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            Ok(into_handle(LoadedModule { module: device.load(&code)?, symbols: OnceLock::new() }))
        };
        // SAFETY: core passes a live device of this backend, and a writable output pointer.
        unsafe { answer("load", device, handle, load) }
    }

    unsafe extern "C" fn unload(module: Handle) {
        // SAFETY: core passes each module that `load` created exactly once.
        unsafe { release::<LoadedModule<ModuleOf<B>>>("unload", module) }
    }

    unsafe extern "C" fn symbols(module: Handle, list: *mut *const Str, count: *mut usize) -> Status {
        let ask = |loaded: &LoadedModule<ModuleOf<B>>| {
            let text = || loaded.module.symbols().iter().map(|symbol| Str::new(symbol)).collect();
            let symbols = loaded.symbols.get_or_init(text);
            Ok((symbols.as_ptr(), symbols.len()))
        };
        // SAFETY: core passes a live module of this backend, and writable output pointers.
        unsafe { answer_list("symbols", module, (list, count), ask) }
    }

    unsafe extern "C" fn kernel(module: Handle, name: Str, handle: *mut Handle) -> Status {
        let find = |loaded: &LoadedModule<ModuleOf<B>>| {
            // SAFETY: the name is readable during the call.
            let kernel = loaded.module.kernel(unsafe { convert::borrow_str("name", name) }?)?;
            Ok(into_handle(LoadedKernel { kernel, info: OnceLock::new() }))
        };
        // SAFETY: core passes a live module of this backend, and a writable output pointer.
        unsafe { answer("kernel", module, handle, find) }
    }

    unsafe extern "C" fn release_kernel(kernel: Handle) {
        // SAFETY: core passes each kernel that `kernel` created exactly once.
        unsafe { release::<LoadedKernel<KernelOf<B>>>("release_kernel", kernel) }
    }

    unsafe extern "C" fn kernel_info(kernel: Handle, info: *mut abi::KernelInfo) -> Status {
        let ask = |LoadedKernel { kernel, info }: &LoadedKernel<KernelOf<B>>| {
            let (known, params) = info.get_or_init(|| {
                let info = kernel.info();
                let params = raw_params(&info);
                (info, params)
            });
            Ok(raw_info(known, params))
        };
        // SAFETY: core passes a live kernel of this backend, and a structure that states its size.
        unsafe { answer_struct("kernel_info", kernel, info, ask) }
    }

    unsafe extern "C" fn occupancy(
        code: Handle,
        config: *const abi::Launch,
        occupancy: *mut abi::Occupancy,
    ) -> Status {
        let ask = |LoadedKernel { kernel, .. }: &LoadedKernel<KernelOf<B>>| {
            // SAFETY: core passes a launch that is valid during the call.
            let config = unsafe { launch::<B>(config) }?;
            let local_bytes = config.args().filter_map(|arg| arg.local_bytes()).sum();
            let Occupancy { groups, sub_groups, max_sub_groups } =
                kernel.occupancy(&config.geometry(), local_bytes)?;
            let struct_size = end_of!(abi::Occupancy, max_sub_groups);
            Ok(abi::Occupancy { struct_size, groups, sub_groups, max_sub_groups })
        };
        // SAFETY: core passes a live kernel of this backend, and a structure that states its size.
        unsafe { answer_struct("occupancy", code, occupancy, ask) }
    }
}

/// The parameters in C form, as far as they are known.
pub(super) fn raw_params(info: &KernelInfo) -> Vec<abi::Param> {
    info.params.iter().flatten().map(raw_param).collect()
}

/// The C form, which borrows `params`.
pub(super) fn raw_info(known: &KernelInfo, params: &[abi::Param]) -> abi::KernelInfo {
    abi::KernelInfo {
        struct_size: end_of!(abi::KernelInfo, private_bytes),
        registers: known.registers.unwrap_or(abi::UNKNOWN),
        spilled_bytes: known.spilled_bytes.unwrap_or(abi::UNKNOWN),
        shared_bytes: known.shared_bytes.unwrap_or(abi::UNKNOWN),
        max_group_items: known.max_group_items.unwrap_or(abi::UNKNOWN),
        group_size: known.group_size.unwrap_or_default(),
        // An empty list is not null: null means unknown.
        params: if known.params.is_some() { params.as_ptr() } else { std::ptr::null() },
        param_count: params.len(),
        binary_version: known.binary_version.unwrap_or(abi::UNKNOWN),
        virtual_version: known.virtual_version.unwrap_or(abi::UNKNOWN),
        preferred_multiple: known.preferred_multiple.unwrap_or(abi::UNKNOWN),
        private_bytes: known.private_bytes.unwrap_or(abi::UNKNOWN),
    }
}

fn raw_param(param: &Param) -> abi::Param {
    let kind = match param.kind {
        ArgKind::Tensor => abi::ARG_TENSOR,
        ArgKind::Scalar => abi::ARG_SCALAR,
        ArgKind::Bytes => abi::ARG_BYTES,
        ArgKind::Local => abi::ARG_LOCAL,
    };
    let dtype = param.dtype.map_or(abi::DType { code: 0, bits: 0, lanes: 0 }, |dtype| dtype.0);
    let strided = if param.strided { abi::ACCESS_STRIDED } else { 0 };
    let access = param.access.map_or(abi::ACCESS_WRITE | abi::ACCESS_UNKNOWN, Access::bits);
    abi::Param { kind, access: access | strided, reserved: 0, dtype }
}
