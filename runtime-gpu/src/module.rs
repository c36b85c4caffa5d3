//! Modules and kernels: loads code through the driver, and queries and configures its entry points.

#![allow(unsafe_code, reason = "loads code through the driver")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use runtime_core::backend::{Kernel, Module, OptionSpec, Source, counted};
use runtime_core::code::{KernelInfo, Occupancy};
use runtime_core::{Error, ErrorKind, Geometry, Result};

use crate::compile::cuda_c::{self, Target};
use crate::compile::jit::{self, JitOptions};
use crate::compile::parameter_counts::{self, ParameterCounts};
use crate::compile::ptx::{self, PtxOptions};
use crate::compile::{self, binary_check, ptxas_log, registers};
use crate::context::PrimaryContext;
use crate::driver::abi::{self, CUdevice_attribute, CUfunction_attribute, CuResult, Function};
use crate::driver::{Driver, function_name};
use crate::formats;
use crate::interner::KernelNameId;
use crate::param_info::{ParamInfo, packed_bytes};

/// Work-group memory that every kernel may use without opting in.
const DEFAULT_SHARED_BYTES: u32 = 48 << 10;
/// What `cuFuncGetParamInfo` returns past the last parameter.
const NO_SUCH_PARAMETER: CuResult = CuResult::CUDA_ERROR_INVALID_VALUE;

/// Declares the options of CUDA C modules.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "arch",
            "",
            "Architecture to compile CUDA C for, e.g. sm_90a; the device's own if empty.",
        ),
        OptionSpec::module(
            "include",
            "",
            "Include folder for CUDA C, relative to the folder of the source file; may be repeated.",
        ),
        OptionSpec::module("options", "", "NVRTC option, e.g. --use_fast_math or -DN=4; may be repeated."),
        OptionSpec::module(
            "debug",
            false,
            "Compile CUDA C with --device-debug --generate-line-info, for debuggers.",
        ),
        registers::option(),
        ptx::option(),
    ]
}

/// A loaded `CUmodule`.
#[derive(Debug)]
struct LoadedModule {
    primary: Arc<PrimaryContext>,
    handle: abi::Module,
    /// What the compiler said of the kernels, if the code was compiled when it was loaded.
    compiled: Vec<(String, KernelInfo)>,
    /// What the code says of the kernels.
    parameter_counts: ParameterCounts,
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        let _current = self.primary.make_current();
        // SAFETY: loaded once, and no longer in use.
        let _ = unsafe { (self.primary.driver.cuModuleUnload)(self.handle.0) };
    }
}

/// Loaded code.
#[derive(Debug)]
pub struct CudaModule {
    loaded: Arc<LoadedModule>,
    symbols: Vec<String>,
}

impl CudaModule {
    pub(crate) fn load(primary: &Arc<PrimaryContext>, source: &Source<'_>) -> Result<Self> {
        primary.check_alive()?;
        formats::check(source)?;
        let loaded = Arc::new(load_code(primary, source)?);
        Ok(Self { symbols: enumerate_kernels(&loaded)?, loaded })
    }
}

impl Module for CudaModule {
    type Kernel = CudaKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<CudaKernel> {
        let missing = || {
            Error::new(
                ErrorKind::NotFound,
                format!("no kernel \"{name}\" (C++ names are mangled: declare it extern \"C\")"),
            )
        };
        let known = self.symbols.is_empty() || self.symbols.iter().any(|symbol| symbol == name);
        let terminated = CString::new(name).ok().filter(|_| known && !name.is_empty()).ok_or_else(missing)?;
        let primary = &self.loaded.primary;
        let _current = primary.make_current()?;
        let mut function = Function::NULL;
        // SAFETY: the module is loaded, the name terminated, and the out-parameter writable.
        let code = unsafe {
            (primary.driver.cuModuleGetFunction)(
                &raw mut function.0,
                self.loaded.handle.0,
                terminated.as_ptr(),
            )
        };
        if code == CuResult::CUDA_ERROR_NOT_FOUND {
            return Err(missing());
        }
        primary.check("cuModuleGetFunction", code)?;
        Ok(CudaKernel::new(&self.loaded, function, name))
    }
}

/// An entry point.
#[derive(Debug)]
pub struct CudaKernel {
    loaded: Arc<LoadedModule>,
    pub(crate) function: Function,
    pub(crate) name: KernelNameId,
    /// The parameters, where the driver reports them.
    pub(crate) parameters: Option<Box<[ParamInfo]>>,
    /// Bytes of the parameter buffer, if the arguments are passed packed.
    pub(crate) packed_bytes: Option<NonZeroUsize>,
    /// Duplicated from the context for the launch path.
    pub(crate) driver: &'static Driver,
    /// Whether non-portable cluster sizes have been enabled.
    pub(crate) nonportable_clusters: AtomicBool,
    shared_bytes: u32,
    /// Current limit on dynamic work-group memory.
    dynamic_shared_limit: AtomicU32,
}

impl CudaKernel {
    fn new(loaded: &Arc<LoadedModule>, function: Function, name: &str) -> Self {
        let primary = &loaded.primary;
        let mut kernel = Self {
            loaded: Arc::clone(loaded),
            function,
            name: primary.kernel_names.intern(name),
            parameters: None,
            packed_bytes: None,
            driver: primary.driver,
            nonportable_clusters: AtomicBool::new(false),
            shared_bytes: 0,
            dynamic_shared_limit: AtomicU32::new(0),
        };
        kernel.shared_bytes =
            kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES).unwrap_or(0);
        *kernel.dynamic_shared_limit.get_mut() = DEFAULT_SHARED_BYTES.saturating_sub(kernel.shared_bytes);
        kernel.parameters = kernel.query_parameters();
        let packed = kernel.parameters.as_deref().and_then(packed_bytes);
        kernel.packed_bytes = packed.and_then(NonZeroUsize::new);
        kernel
    }

    /// Another handle to the same entry point.
    pub(crate) fn duplicate(&self) -> Self {
        Self {
            loaded: Arc::clone(&self.loaded),
            function: self.function,
            name: self.name,
            parameters: self.parameters.clone(),
            packed_bytes: self.packed_bytes,
            driver: self.driver,
            nonportable_clusters: AtomicBool::new(self.nonportable_clusters.load(Ordering::Relaxed)),
            shared_bytes: self.shared_bytes,
            dynamic_shared_limit: AtomicU32::new(self.dynamic_shared_limit.load(Ordering::Relaxed)),
        }
    }

    #[inline]
    pub(crate) fn primary(&self) -> &Arc<PrimaryContext> {
        &self.loaded.primary
    }

    fn attribute(&self, attribute: CUfunction_attribute) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the function is of a loaded module, and the out-parameter is writable.
        let code =
            unsafe { (self.primary().driver.cuFuncGetAttribute)(&raw mut value, attribute, self.function.0) };
        if code.is_success() { u32::try_from(value).ok() } else { None }
    }

    /// Bytes spilled: as the compiler said, or none without private memory, which may hold arrays of the code too.
    fn spilled_bytes(&self, private_bytes: Option<u32>) -> Option<u32> {
        let name = self.primary().kernel_names.resolve(self.name);
        let compiled = self.loaded.compiled.iter().find(|(kernel, _)| *kernel == *name);
        let spilled_bytes = compiled.and_then(|(_, info)| info.spilled_bytes);
        spilled_bytes.or_else(|| private_bytes.filter(|bytes| *bytes == 0))
    }

    /// Reads an attribute of the device.
    fn device_attribute(&self, attribute: CUdevice_attribute) -> u32 {
        self.primary().driver.attribute(self.primary().ordinal, attribute)
    }

    /// Sets an attribute of the function.
    pub(crate) fn set_attribute(&self, attribute: CUfunction_attribute, value: u32) -> Result<()> {
        let primary = self.primary();
        let _current = primary.make_current()?;
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the function is of a loaded module of the current context.
        let code = unsafe { (primary.driver.cuFuncSetAttribute)(self.function.0, attribute, value) };
        primary.check("cuFuncSetAttribute", code)
    }

    /// The number of parameters: as the driver or the code says.
    fn parameter_count(&self) -> Option<usize> {
        let Some(api) = self.primary().driver.param_count else {
            let name = self.primary().kernel_names.resolve(self.name);
            let counts = &self.loaded.parameter_counts;
            return counts.iter().find(|(kernel, _)| *kernel == *name).map(|(_, count)| *count);
        };
        let mut count = 0;
        // SAFETY: the function is of a loaded module, and the out-parameter is writable.
        let code = unsafe { (api.cuFuncGetParamCount)(self.function.0, &raw mut count) };
        code.is_success().then_some(count)
    }

    /// Queries the parameters, in order: as many as there are, or, if their number is unknown, until the driver refuses one.
    fn query_parameters(&self) -> Option<Box<[ParamInfo]>> {
        let api = self.primary().driver.function_params?;
        let count = self.parameter_count();
        let mut parameters = Vec::new();
        loop {
            if count == Some(parameters.len()) {
                return Some(parameters.into_boxed_slice());
            }
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: the function is of a loaded module, and the out-parameters are writable.
            let code = unsafe {
                (api.cuFuncGetParamInfo)(self.function.0, parameters.len(), &raw mut offset, &raw mut bytes)
            };
            match code {
                CuResult::CUDA_SUCCESS => parameters.push(ParamInfo { offset, bytes }),
                NO_SUCH_PARAMETER => return Some(parameters.into_boxed_slice()),
                _ => return None,
            }
        }
    }

    /// Raises the limit on dynamic work-group memory to `bytes` if needed; returns `bytes`.
    ///
    /// # Errors
    /// `OutOfResources` if the device has less; any error of the driver.
    #[inline]
    pub(crate) fn allow_dynamic_shared(&self, bytes: u64) -> Result<u32> {
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= self.dynamic_shared_limit.load(Ordering::Relaxed) => Ok(bytes),
            _ => self.raise_dynamic_shared_limit(bytes),
        }
    }

    #[cold]
    fn raise_dynamic_shared_limit(&self, bytes: u64) -> Result<u32> {
        let primary = self.primary();
        let limit = primary.driver.attribute(
            primary.ordinal,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        );
        let max = limit.max(DEFAULT_SHARED_BYTES).saturating_sub(self.shared_bytes);
        let Some(bytes) = u32::try_from(bytes).ok().filter(|&bytes| bytes <= max) else {
            let message = format!(
                "{bytes} bytes of dynamic work-group memory; kernel `{}` can use at most {max}",
                primary.kernel_names.resolve(self.name)
            );
            return Err(Error::new(ErrorKind::OutOfResources, message));
        };
        self.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)?;
        self.dynamic_shared_limit.fetch_max(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Turns the code of a launch into a result.
    #[inline]
    pub(crate) fn check_launch(&self, function: &str, code: CuResult) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.launch_error(function, code)) }
    }

    #[cold]
    fn launch_error(&self, function: &str, code: CuResult) -> Error {
        let primary = self.primary();
        let error = primary.fail(function, code);
        if PrimaryContext::is_lost(&error) {
            return error;
        }
        error.with_note(format_args!("kernel `{}`", primary.kernel_names.resolve(self.name)))
    }

    #[cold]
    pub(crate) fn arg_size_error(&self, index: usize, parameter: usize, bytes: usize) -> Error {
        let parameters = self.parameters.as_deref().unwrap_or_default();
        match parameters.get(parameter) {
            Some(info) => Error::invalid(format!(
                "argument {index} has {bytes} bytes; parameter {parameter} of kernel `{}` has {}",
                self.primary().kernel_names.resolve(self.name),
                info.bytes
            )),
            None => self.arg_count_error(parameter + 1),
        }
    }

    #[cold]
    pub(crate) fn arg_count_error(&self, given: usize) -> Error {
        let expected = self.parameters.as_deref().map_or(0, <[_]>::len);
        Error::invalid(format!(
            "kernel `{}` takes {}, got {given}{}",
            self.primary().kernel_names.resolve(self.name),
            counted(expected, "parameter"),
            if given > expected { " or more" } else { "" }
        ))
    }
}

impl Kernel for CudaKernel {
    fn info(&self) -> KernelInfo {
        let Ok(_current) = self.primary().make_current() else { return KernelInfo::default() };
        let private_bytes = self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
        KernelInfo {
            registers: self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS),
            spilled_bytes: self.spilled_bytes(private_bytes),
            shared_bytes: Some(self.shared_bytes),
            max_group_items: self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            binary_version: self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION),
            virtual_version: self.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION),
            preferred_multiple: Some(
                self.device_attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
            ),
            private_bytes,
            ..KernelInfo::default()
        }
    }

    fn occupancy(&self, geometry: &Geometry, local_bytes: u64) -> Result<Occupancy> {
        let shared_bytes = self.allow_dynamic_shared(local_bytes)?;
        let items = geometry.group_size.iter().product::<u32>();
        let groups =
            self.primary().query("cuOccupancyMaxActiveBlocksPerMultiprocessor", 0, |driver, groups| {
                let (function, items) = (self.function.0, c_int::try_from(items).unwrap_or(c_int::MAX));
                // SAFETY: the function is of a loaded module of the current context, and the out-parameter is writable.
                unsafe {
                    (driver.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                        groups,
                        function,
                        items,
                        shared_bytes as usize,
                    )
                }
            })?;
        let groups = u32::try_from(groups).unwrap_or(0);
        let warp_items = self.device_attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE).max(1);
        Ok(Occupancy {
            groups,
            sub_groups: groups.saturating_mul(items.div_ceil(warp_items)),
            max_sub_groups: self
                .device_attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
                / warp_items,
        })
    }
}

/// Loads code of any format.
fn load_code(primary: &Arc<PrimaryContext>, source: &Source<'_>) -> Result<LoadedModule> {
    let loaded = |handle, compiled, parameter_counts| LoadedModule {
        primary: Arc::clone(primary),
        handle,
        compiled,
        parameter_counts,
    };
    let cubin = |code: &[u8], compiled| {
        let counts = parameter_counts::of_cubin(code);
        Ok(loaded(load_binary(primary, code)?, compiled, counts))
    };
    let ptx = |code, options| {
        let text = jit::ptx_text(code)?;
        let (handle, compiled) = load_ptx(primary, &text, options)?;
        Ok(loaded(handle, compiled, parameter_counts::of_ptx(&text.to_string_lossy())))
    };
    let options = PtxOptions::parse(source.options)?;
    let code = source.bytes()?;
    match source.format {
        "cubin" => {
            binary_check::check_cubin(&code)?;
            cubin(&code, Vec::new())
        }
        "fatbin" => {
            binary_check::check_fatbin(&code)?;
            Ok(loaded(load_binary(primary, &code)?, Vec::new(), ParameterCounts::new()))
        }
        "ptx" => ptx(code.into_owned(), options),
        _ => {
            let target = Target::Device(compile::compute_capability(primary));
            let compiled = cuda_c::compile(source, &code, target)?;
            match compiled.format.as_str() {
                "ptx" => ptx(compiled.code, options),
                _ => cubin(&compiled.code, compiled.kernels),
            }
        }
    }
}

/// Loads a cubin or fat binary that was checked to be complete or comes from a compiler.
fn load_binary(primary: &PrimaryContext, code: &[u8]) -> Result<abi::Module> {
    // A copy that is aligned, and followed by zeros.
    let mut words = vec![0_u64; code.len() / 8 + 2];
    for (word, bytes) in words.iter_mut().zip(code.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    load_data(primary, words.as_ptr().cast(), &mut JitOptions::none())
}

/// Loads PTX, which the driver compiles; returns what its log says of the kernels, too.
fn load_ptx(
    primary: &PrimaryContext,
    text: &CStr,
    options: PtxOptions,
) -> Result<(abi::Module, Vec<(String, KernelInfo)>)> {
    jit::with_figures(|figures| {
        let mut jit = JitOptions::with_logs(options, figures);
        let handle = load_data(primary, text.as_ptr().cast(), &mut jit)?;
        Ok((handle, ptxas_log::kernels(&jit.information())))
    })
}

/// Loads code. The driver may wait for running kernels meanwhile, which blocks every other call on the context (seen in stacks
/// on an H200, driver 580.159: `cuLaunchKernel` waits for a lock that this call holds).
fn load_data(primary: &PrimaryContext, code: *const c_void, options: &mut JitOptions) -> Result<abi::Module> {
    let _current = primary.make_current()?;
    let mut module = abi::Module::NULL;
    let status = options.with_raw(|count, keys, values| {
        // SAFETY: the code is complete or terminated, both arrays have `count` options, whose logs live during the call, and
        // the context is current.
        unsafe { (primary.driver.cuModuleLoadDataEx)(&raw mut module.0, code, count, keys, values) }
    });
    match status.is_success() {
        true => Ok(module),
        false => Err(options.error(primary, "cuModuleLoadDataEx", status)),
    }
}

/// Names of the entry points; empty where the driver cannot list them.
fn enumerate_kernels(loaded: &LoadedModule) -> Result<Vec<String>> {
    let primary = &loaded.primary;
    let Some(api) = primary.driver.function_enumeration else { return Ok(Vec::new()) };
    let count = primary.query("cuModuleGetFunctionCount", 0, |_, count| {
        // SAFETY: the module is loaded, and the out-parameter is writable.
        unsafe { (api.cuModuleGetFunctionCount)(count, loaded.handle.0) }
    })?;
    let _current = primary.make_current()?;
    let mut functions = vec![Function::NULL; count as usize];
    // SAFETY: the module is loaded, and the array has `count` elements.
    let code =
        unsafe { (api.cuModuleEnumerateFunctions)(functions.as_mut_ptr().cast(), count, loaded.handle.0) };
    primary.check("cuModuleEnumerateFunctions", code)?;
    let mut names: Vec<_> =
        functions.into_iter().filter_map(|function| function_name(&api, function)).collect();
    names.sort_unstable();
    Ok(names)
}
