//! The CUDA driver library: loaded on first use, with the structures, constants and signatures of `cudarc`'s `sys`.
//!
//! The loader is handwritten: `cudarc`'s own functions panic if the driver or a symbol is missing, and return a Rust
//! enum, in which a code newer than the enum would be undefined behaviour. Here a code is an integer ([`CuResult`]).
//!
//! Functions that an older driver may lack are grouped behind an `Option` and probed, never assumed.

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the driver's own names, so that a search finds them")]

pub(crate) mod abi;
mod status;

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::bind::{bind, bind_as_in_header, open_driver_library};
use abi::{CuResult, DevicePtr, Function, Ordinal, Stream};
use cudarc::driver::sys::{self, *};
use libloading::Library;
use once_cell::sync::OnceCell;
use runtime_core::backend::c_text_at;
use runtime_core::{Error, ErrorKind, Result};

pub(crate) use status::is_sticky;

/// The oldest driver with all required functions.
const MIN_VERSION: &str = "CUDA 11.2 (driver 460)";

bind! { CuResult;
/// Texts of codes, which are numbers here and a closed enum in the header.
CodeTexts {
    cuGetErrorName: fn(CuResult, *mut *const c_char);
    cuGetErrorString: fn(CuResult, *mut *const c_char);
}

/// The number of parameters of a function, since CUDA 13.2, which is newer than the header.
ParamCount {
    cuFuncGetParamCount: fn(CUfunction, *mut usize);
}
}

bind_as_in_header! { CuResult as CUresult;
/// Functions that every supported driver has.
Required {
    cuInit: fn(c_uint);
    cuDriverGetVersion: fn(*mut c_int);
    cuDeviceGetCount: fn(*mut c_int);
    cuDeviceGet: fn(*mut CUdevice, c_int);
    cuDeviceGetName: fn(*mut c_char, c_int, CUdevice);
    cuDeviceGetUuid: fn(*mut CUuuid, CUdevice);
    cuDeviceGetPCIBusId: fn(*mut c_char, c_int, CUdevice);
    cuDeviceTotalMem_v2: fn(*mut usize, CUdevice);
    cuDeviceGetAttribute: fn(*mut c_int, CUdevice_attribute, CUdevice);
    cuDeviceCanAccessPeer: fn(*mut c_int, CUdevice, CUdevice);
    cuDevicePrimaryCtxRetain: fn(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2: fn(CUdevice);
    cuCtxPushCurrent_v2: fn(CUcontext);
    cuCtxPopCurrent_v2: fn(*mut CUcontext);
    cuCtxSetCurrent: fn(CUcontext);
    cuCtxGetStreamPriorityRange: fn(*mut c_int, *mut c_int);
    cuMemGetInfo_v2: fn(*mut usize, *mut usize);
    cuMemAlloc_v2: fn(*mut CUdeviceptr, usize);
    cuMemFree_v2: fn(CUdeviceptr);
    cuMemHostAlloc: fn(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost: fn(*mut c_void);
    cuMemAllocManaged: fn(*mut CUdeviceptr, usize, c_uint);
    cuPointerGetAttributes: fn(c_uint, *mut CUpointer_attribute, *mut *mut c_void, CUdeviceptr);
    cuMemcpyAsync: fn(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemcpyPeerAsync: fn(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
    cuMemcpy2DAsync_v2: fn(*const CUDA_MEMCPY2D, CUstream);
    cuMemsetD8Async: fn(CUdeviceptr, u8, usize, CUstream);
    cuMemsetD16Async: fn(CUdeviceptr, u16, usize, CUstream);
    cuMemsetD32Async: fn(CUdeviceptr, c_uint, usize, CUstream);
    cuStreamCreateWithPriority: fn(*mut CUstream, c_uint, c_int);
    cuStreamDestroy_v2: fn(CUstream);
    cuStreamQuery: fn(CUstream);
    cuStreamWaitEvent: fn(CUstream, CUevent, c_uint);
    cuEventCreate: fn(*mut CUevent, c_uint);
    cuEventDestroy_v2: fn(CUevent);
    cuEventRecord: fn(CUevent, CUstream);
    cuEventQuery: fn(CUevent);
    cuEventElapsedTime: fn(*mut f32, CUevent, CUevent);
    cuModuleLoadDataEx: fn(*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void);
    cuModuleUnload: fn(CUmodule);
    cuModuleGetFunction: fn(*mut CUfunction, CUmodule, *const c_char);
    cuFuncGetAttribute: fn(*mut c_int, CUfunction_attribute, CUfunction);
    cuFuncSetAttribute: fn(CUfunction, CUfunction_attribute, c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor: fn(*mut c_int, CUfunction, c_int, usize);
    cuLaunchKernel: fn(
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void,
        *mut *mut c_void,
    );
}

/// Stream-ordered memory.
MemoryPools {
    cuMemPoolCreate: fn(*mut CUmemoryPool, *const CUmemPoolProps);
    cuMemPoolDestroy: fn(CUmemoryPool);
    cuMemPoolSetAttribute: fn(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolGetAttribute: fn(CUmemoryPool, CUmemPool_attribute, *mut c_void);
    cuMemPoolSetAccess: fn(CUmemoryPool, *const CUmemAccessDesc, usize);
    cuMemPoolTrimTo: fn(CUmemoryPool, usize);
    cuMemAllocFromPoolAsync: fn(*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
    cuMemFreeAsync: fn(CUdeviceptr, CUstream);
}

/// Graphs built from explicit nodes.
Graphs {
    cuGraphCreate: fn(*mut CUgraph, c_uint);
    cuGraphDestroy: fn(CUgraph);
    cuGraphAddKernelNode_v2: fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CUDA_KERNEL_NODE_PARAMS);
    cuGraphAddMemcpyNode: fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CUDA_MEMCPY3D, CUcontext);
    cuGraphAddMemsetNode: fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const CUDA_MEMSET_NODE_PARAMS, CUcontext);
    cuGraphAddEmptyNode: fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize);
    cuGraphKernelNodeSetAttribute: fn(CUgraphNode, CUkernelNodeAttrID, *const CUkernelNodeAttrValue);
    cuGraphInstantiateWithFlags: fn(*mut CUgraphExec, CUgraph, u64);
    cuGraphExecKernelNodeSetParams_v2: fn(CUgraphExec, CUgraphNode, *const CUDA_KERNEL_NODE_PARAMS);
    cuGraphExecDestroy: fn(CUgraphExec);
    cuGraphLaunch: fn(CUgraphExec, CUstream);
}

/// Launches with attributes, such as clusters.
LaunchEx {
    cuLaunchKernelEx: fn(*const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void);
}

/// Cooperative launches, whose groups all run at the same time.
CooperativeLaunch {
    cuLaunchCooperativeKernel: fn(
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void,
    );
}

/// Listing the entry points of a module.
FunctionEnumeration {
    cuModuleGetFunctionCount: fn(*mut c_uint, CUmodule);
    cuModuleEnumerateFunctions: fn(*mut CUfunction, c_uint, CUmodule);
    cuFuncGetName: fn(*mut *const c_char, CUfunction);
}

/// Compiling PTX without loading it.
Linker {
    cuLinkCreate_v2: fn(c_uint, *mut CUjit_option, *mut *mut c_void, *mut CUlinkState);
    cuLinkAddData_v2: fn(
        CUlinkState, CUjitInputType, *mut c_void, usize, *const c_char, c_uint, *mut CUjit_option,
        *mut *mut c_void,
    );
    cuLinkComplete: fn(CUlinkState, *mut *mut c_void, *mut usize);
    cuLinkDestroy: fn(CUlinkState);
}

/// Offsets and sizes of the parameters of a function.
FunctionParams {
    cuFuncGetParamInfo: fn(CUfunction, usize, *mut usize, *mut usize);
}

/// The context of a stream.
StreamContext {
    cuStreamGetCtx: fn(CUstream, *mut CUcontext);
}

/// The UUID of a MIG instance.
MigIdentity {
    cuDeviceGetUuid_v2: fn(*mut CUuuid, CUdevice);
}

/// Tensor maps.
TensorMaps {
    cuTensorMapEncodeTiled: fn(
        *mut CUtensorMap, CUtensorMapDataType, c_uint, *mut c_void, *const u64, *const u64, *const c_uint,
        *const c_uint, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
        CUtensorMapFloatOOBfill,
    );
}
}

/// The driver's functions. Loaded once per process and never unloaded.
#[derive(Debug)]
pub(crate) struct Driver {
    code_texts: CodeTexts,
    required: Required,
    pub(crate) memory_pools: Option<MemoryPools>,
    pub(crate) graphs: Option<Graphs>,
    pub(crate) launch_ex: Option<LaunchEx>,
    pub(crate) cooperative_launch: Option<CooperativeLaunch>,
    pub(crate) function_enumeration: Option<FunctionEnumeration>,
    pub(crate) linker: Option<Linker>,
    pub(crate) function_params: Option<FunctionParams>,
    pub(crate) stream_context: Option<StreamContext>,
    pub(crate) param_count: Option<ParamCount>,
    pub(crate) mig_identity: Option<MigIdentity>,
    pub(crate) tensor_maps: Option<TensorMaps>,
    _library: Library,
}

impl std::ops::Deref for Driver {
    type Target = Required;

    #[inline]
    fn deref(&self) -> &Required {
        &self.required
    }
}

impl Driver {
    /// Loads the driver, once per process, and initialises it.
    ///
    /// # Errors
    /// `Unavailable`, with reason and remedy, if there is no driver, it is too old, or it has no device.
    pub(crate) fn load() -> Result<&'static Self> {
        static LOADED: OnceCell<Driver> = OnceCell::new();
        let driver = LOADED.get_or_try_init(Self::open)?;
        driver.initialise()?;
        Ok(driver)
    }

    fn open() -> Result<Self> {
        // SAFETY: NVIDIA's driver library may be loaded at any time, on any thread.
        let library = unsafe { open_driver_library("libcuda.so.1") }.map_err(|reason| {
            unavailable(format!(
                "no NVIDIA driver: {reason}; install it; in a container, pass the GPU through (--gpus all)"
            ))
        })?;
        Self::bind(library)
    }

    fn bind(library: Library) -> Result<Self> {
        let too_old = |symbol| {
            unavailable(format!(
                "the NVIDIA driver lacks {symbol}: it is older than {MIN_VERSION}; update it"
            ))
        };
        Ok(Self {
            code_texts: CodeTexts::bind(&library).map_err(too_old)?,
            required: Required::bind(&library).map_err(too_old)?,
            memory_pools: MemoryPools::bind(&library).ok(),
            graphs: Graphs::bind(&library).ok(),
            launch_ex: LaunchEx::bind(&library).ok(),
            cooperative_launch: CooperativeLaunch::bind(&library).ok(),
            function_enumeration: FunctionEnumeration::bind(&library).ok(),
            linker: Linker::bind(&library).ok(),
            function_params: FunctionParams::bind(&library).ok(),
            stream_context: StreamContext::bind(&library).ok(),
            param_count: ParamCount::bind(&library).ok(),
            mig_identity: MigIdentity::bind(&library).ok(),
            tensor_maps: TensorMaps::bind(&library).ok(),
            _library: library,
        })
    }

    /// Calls `cuInit`; repeated calls are cheap.
    fn initialise(&self) -> Result<()> {
        // SAFETY: takes a number.
        let code = unsafe { (self.cuInit)(0) };
        let remedy = match code {
            CuResult::CUDA_SUCCESS => return Ok(()),
            CuResult::CUDA_ERROR_NOT_INITIALIZED => {
                "it was initialised before this process was forked; open devices only in the child"
            }
            CuResult::CUDA_ERROR_STUB_LIBRARY => {
                "the toolkit's stub library was loaded instead of the driver; put the driver's folder first in LD_LIBRARY_PATH"
            }
            CuResult::CUDA_ERROR_NO_DEVICE => {
                "it reports no device; check `nvidia-smi`, and CUDA_VISIBLE_DEVICES if it is set"
            }
            CuResult::CUDA_ERROR_OPERATING_SYSTEM => {
                "it cannot access the device files /dev/nvidia*; check their permissions"
            }
            CuResult::CUDA_ERROR_SYSTEM_NOT_READY => "the system is not ready; start nvidia-fabricmanager",
            CuResult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
                "kernel module and library have different versions; restart the machine"
            }
            CuResult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
                "its forward-compatibility package does not support this device; install a newer driver instead"
            }
            _ => "check `nvidia-smi`; reinstall the driver or restart the machine if that fails",
        };
        let error = unavailable(format!("the NVIDIA driver cannot be used: {remedy}"));
        Err(error.with_driver(self.name(code), i64::from(code.0)).in_operation("cuInit"))
    }

    /// Submits a kernel: groups and work-items of each, bytes of dynamic work-group memory, and its parameters, either by pointers or
    /// packed (`extra`).
    ///
    /// # Safety
    /// Function and stream are alive and of one context, and the parameters are those of the function.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        function: Function,
        [[x, y, z], [i, j, k]]: [[u32; 3]; 2],
        shared_bytes: u32,
        stream: Stream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CuResult {
        let (function, stream) = (function.0, stream.0);
        // SAFETY: the caller's promise.
        unsafe { (self.cuLaunchKernel)(function, x, y, z, i, j, k, shared_bytes, stream, parameters, extra) }
    }

    /// An attribute of the memory at an address; `None` for memory that the driver does not manage.
    pub(crate) fn pointer_attribute(
        &self,
        attribute: CUpointer_attribute,
        address: DevicePtr,
    ) -> Option<c_int> {
        let (mut attribute, mut value) = (attribute, -1);
        let mut place = (&raw mut value).cast();
        // Asked for one, the driver refuses an address that it does not manage; asked for a list, it answers that it knows nothing.
        // SAFETY: one attribute, whose value has the type of the out-parameter.
        let code = unsafe { (self.cuPointerGetAttributes)(1, &raw mut attribute, &raw mut place, address) };
        (code.is_success() && value >= 0).then_some(value)
    }

    /// Turns a code into a result; a sticky error is `DeviceLost`.
    ///
    /// # Errors
    /// The error for `code`, with the name of the function that returned it.
    #[inline]
    pub(crate) fn check(&self, function: &str, code: CuResult) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.error(function, code)) }
    }

    /// The error for a code.
    #[cold]
    pub(crate) fn error(&self, function: &str, code: CuResult) -> Error {
        let mut text = std::ptr::null();
        // SAFETY: the out-parameter is writable; a code that the driver does not know returns an error.
        let described = unsafe { (self.code_texts.cuGetErrorString)(code, &raw mut text) };
        let message = if described.is_success() { static_text(text) } else { String::new() };
        let message = match (status::remedy(code), message.as_str()) {
            (Some(remedy), "") => remedy.to_owned(),
            (Some(remedy), message) => format!("{message}; {remedy}"),
            (None, "") => {
                "the driver has no description of this code; see the release notes of its version".to_owned()
            }
            (None, message) => message.to_owned(),
        };
        Error::new(status::kind(code), message)
            .with_driver(self.name(code), i64::from(code.0))
            .in_operation(function)
    }

    /// The driver's name of a code; empty if it has none.
    fn name(&self, code: CuResult) -> String {
        let mut name = std::ptr::null();
        // SAFETY: the out-parameter is writable; a code that the driver does not know returns an error.
        let named = unsafe { (self.code_texts.cuGetErrorName)(code, &raw mut name) };
        if named.is_success() { static_text(name) } else { String::new() }
    }

    /// An attribute of a device; 0 if the driver does not support it.
    pub(crate) fn attribute(&self, device: Ordinal, attribute: CUdevice_attribute) -> u32 {
        let mut value = 0;
        // SAFETY: the out-parameter is writable; an unknown attribute or device returns an error.
        let code = unsafe { (self.cuDeviceGetAttribute)(&raw mut value, attribute, device) };
        if code.is_success() { u32::try_from(value).unwrap_or(0) } else { 0 }
    }

    /// Major and minor.
    pub(crate) fn compute_capability(&self, device: Ordinal) -> (u32, u32) {
        let attribute = |key| self.attribute(device, key);
        (
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
    }

    /// CUDA version that the driver supports, as `major * 1000 + minor * 10`.
    pub(crate) fn cuda_version(&self) -> u32 {
        let mut version = 0;
        // SAFETY: the out-parameter is writable.
        let code = unsafe { (self.cuDriverGetVersion)(&raw mut version) };
        if code.is_success() { u32::try_from(version).unwrap_or(0) } else { 0 }
    }
}

fn unavailable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

/// A static string of the driver; empty for null.
fn static_text(text: *const c_char) -> String {
    // SAFETY: the driver's strings are terminated and live as long as the library.
    unsafe { c_text_at(text) }
}

/// Name of a function, if the driver reports it.
pub(crate) fn function_name(api: &FunctionEnumeration, function: Function) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: the function is of a loaded module, and the out-parameter is writable.
    let code = unsafe { (api.cuFuncGetName)(&raw mut name, function.0) };
    code.is_success().then(|| static_text(name)).filter(|name| !name.is_empty())
}
