//! The CUDA driver library: loaded on first use, with hand-written signatures.
//!
//! Bound by hand rather than through a binding crate: those return a closed Rust enum straight from C, so a code newer than
//! the enum would be undefined behaviour. Here a code is a number ([`CuResult`]) and stays one.
//!
//! Functions that an older driver may lack are grouped behind an `Option` and probed, never assumed.

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the driver's own names, so that a search finds them")]

pub(crate) mod abi;
mod status;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;

use abi::{
    Context, CuResult, DevicePtr, Event, Function, Graph, GraphExec, KernelNodeParams, LaunchConfig,
    Memcpy2D, Memcpy3D, MemsetNodeParams, Module, Node, Ordinal, Pool, PoolAccess, PoolProperties, Stream,
};
use libloading::Library;
use parking_lot::Mutex;
use runtime_core::backend::open_library;
use runtime_core::{Error, ErrorKind, Result};

pub(crate) use status::is_sticky;

/// Where to look for the driver library: the system's search path, then the folders used by containers and WSL.
const LIBRARIES: &[&str] = &[
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/local/nvidia/lib/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
];
/// The oldest driver with all required functions.
const MIN_VERSION: &str = "CUDA 11.2 (driver 460)";

/// Declares groups of functions; a group is bound whole or not at all.
macro_rules! bind {
    ($($(#[$doc:meta])* $group:ident { $($symbol:ident: fn($($ty:ty),* $(,)?);)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $group {
            $(pub(crate) $symbol: unsafe extern "C" fn($($ty),*) -> CuResult,)*
        }

        impl $group {
            /// Binds the group.
            ///
            /// # Errors
            /// The name of the first function that the library lacks.
            fn bind(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {$(
                    $symbol: {
                        // SAFETY: the driver's function of this name has this signature.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($ty),*) -> CuResult>(stringify!($symbol).as_bytes())
                        };
                        *symbol.map_err(|_| stringify!($symbol))?
                    },
                )*})
            }
        }
    )*};
}

bind! {
/// Functions that every supported driver has.
Required {
    cuInit: fn(c_uint);
    cuDriverGetVersion: fn(*mut c_int);
    cuGetErrorName: fn(CuResult, *mut *const c_char);
    cuGetErrorString: fn(CuResult, *mut *const c_char);
    cuDeviceGetCount: fn(*mut c_int);
    cuDeviceGet: fn(*mut Ordinal, c_int);
    cuDeviceGetName: fn(*mut c_char, c_int, Ordinal);
    cuDeviceGetUuid: fn(*mut [u8; 16], Ordinal);
    cuDeviceGetPCIBusId: fn(*mut c_char, c_int, Ordinal);
    cuDeviceTotalMem_v2: fn(*mut usize, Ordinal);
    cuDeviceGetAttribute: fn(*mut c_int, c_int, Ordinal);
    cuDeviceCanAccessPeer: fn(*mut c_int, Ordinal, Ordinal);
    cuDevicePrimaryCtxRetain: fn(*mut Context, Ordinal);
    cuDevicePrimaryCtxRelease_v2: fn(Ordinal);
    cuCtxPushCurrent_v2: fn(Context);
    cuCtxPopCurrent_v2: fn(*mut Context);
    cuCtxSetCurrent: fn(Context);
    cuCtxGetStreamPriorityRange: fn(*mut c_int, *mut c_int);
    cuMemGetInfo_v2: fn(*mut usize, *mut usize);
    cuMemAlloc_v2: fn(*mut DevicePtr, usize);
    cuMemFree_v2: fn(DevicePtr);
    cuMemHostAlloc: fn(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost: fn(*mut c_void);
    cuMemAllocManaged: fn(*mut DevicePtr, usize, c_uint);
    cuPointerGetAttribute: fn(*mut c_void, c_int, DevicePtr);
    cuMemcpyAsync: fn(DevicePtr, DevicePtr, usize, Stream);
    cuMemcpyPeerAsync: fn(DevicePtr, Context, DevicePtr, Context, usize, Stream);
    cuMemcpy2DAsync_v2: fn(*const Memcpy2D, Stream);
    cuMemsetD8Async: fn(DevicePtr, u8, usize, Stream);
    cuMemsetD16Async: fn(DevicePtr, u16, usize, Stream);
    cuMemsetD32Async: fn(DevicePtr, c_uint, usize, Stream);
    cuStreamCreateWithPriority: fn(*mut Stream, c_uint, c_int);
    cuStreamDestroy_v2: fn(Stream);
    cuStreamQuery: fn(Stream);
    cuStreamWaitEvent: fn(Stream, Event, c_uint);
    cuEventCreate: fn(*mut Event, c_uint);
    cuEventDestroy_v2: fn(Event);
    cuEventRecord: fn(Event, Stream);
    cuEventQuery: fn(Event);
    cuEventElapsedTime: fn(*mut f32, Event, Event);
    cuModuleLoadDataEx: fn(*mut Module, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    cuModuleUnload: fn(Module);
    cuModuleGetFunction: fn(*mut Function, Module, *const c_char);
    cuFuncGetAttribute: fn(*mut c_int, c_int, Function);
    cuFuncSetAttribute: fn(Function, c_int, c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor: fn(*mut c_int, Function, c_int, usize);
    cuLaunchKernel: fn(
        Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *const *const c_void,
        *const *const c_void,
    );
}

/// Stream-ordered memory.
MemoryPools {
    cuMemPoolCreate: fn(*mut Pool, *const PoolProperties);
    cuMemPoolDestroy: fn(Pool);
    cuMemPoolSetAttribute: fn(Pool, c_int, *mut c_void);
    cuMemPoolGetAttribute: fn(Pool, c_int, *mut c_void);
    cuMemPoolSetAccess: fn(Pool, *const PoolAccess, usize);
    cuMemPoolTrimTo: fn(Pool, usize);
    cuMemAllocFromPoolAsync: fn(*mut DevicePtr, usize, Pool, Stream);
    cuMemFreeAsync: fn(DevicePtr, Stream);
}

/// Graphs built from explicit nodes.
Graphs {
    cuGraphCreate: fn(*mut Graph, c_uint);
    cuGraphDestroy: fn(Graph);
    cuGraphAddKernelNode_v2: fn(*mut Node, Graph, *const Node, usize, *const KernelNodeParams);
    cuGraphAddMemcpyNode: fn(*mut Node, Graph, *const Node, usize, *const Memcpy3D, Context);
    cuGraphAddMemsetNode: fn(*mut Node, Graph, *const Node, usize, *const MemsetNodeParams, Context);
    cuGraphAddEmptyNode: fn(*mut Node, Graph, *const Node, usize);
    cuGraphKernelNodeSetAttribute: fn(Node, c_int, *const [u32; 16]);
    cuGraphInstantiateWithFlags: fn(*mut GraphExec, Graph, u64);
    cuGraphExecKernelNodeSetParams_v2: fn(GraphExec, Node, *const KernelNodeParams);
    cuGraphExecDestroy: fn(GraphExec);
    cuGraphLaunch: fn(GraphExec, Stream);
}

/// Launches with attributes, such as clusters.
LaunchEx {
    cuLaunchKernelEx: fn(*const LaunchConfig, Function, *const *const c_void, *const *const c_void);
}

/// Cooperative launches, whose groups all run at the same time.
CooperativeLaunch {
    cuLaunchCooperativeKernel: fn(
        Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *const *const c_void,
    );
}

/// Listing the entry points of a module.
FunctionEnumeration {
    cuModuleGetFunctionCount: fn(*mut c_uint, Module);
    cuModuleEnumerateFunctions: fn(*mut Function, c_uint, Module);
    cuFuncGetName: fn(*mut *const c_char, Function);
}

/// Offsets and sizes of the parameters of a function.
FunctionParams {
    cuFuncGetParamInfo: fn(Function, usize, *mut usize, *mut usize);
}

/// The UUID of a MIG instance.
MigIdentity {
    cuDeviceGetUuid_v2: fn(*mut [u8; 16], Ordinal);
}

/// Tensor maps.
TensorMaps {
    cuTensorMapEncodeTiled: fn(
        *mut c_void, c_int, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, c_int, c_int,
        c_int, c_int,
    );
}
}

/// The driver's functions. Loaded once per process and never unloaded.
#[derive(Debug)]
pub(crate) struct Driver {
    required: Required,
    pub(crate) memory_pools: Option<MemoryPools>,
    pub(crate) graphs: Option<Graphs>,
    pub(crate) launch_ex: Option<LaunchEx>,
    pub(crate) cooperative_launch: Option<CooperativeLaunch>,
    pub(crate) function_enumeration: Option<FunctionEnumeration>,
    pub(crate) function_params: Option<FunctionParams>,
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
        static LOADED: Mutex<Option<&'static Driver>> = Mutex::new(None);
        let mut loaded = LOADED.lock();
        let driver = match *loaded {
            Some(driver) => driver,
            None => *loaded.insert(Box::leak(Box::new(Self::open()?))),
        };
        drop(loaded);
        driver.initialise()?;
        Ok(driver)
    }

    fn open() -> Result<Self> {
        let mut reasons = Vec::new();
        for path in LIBRARIES {
            // SAFETY: NVIDIA's driver library may be loaded at any time, on any thread.
            match open_library(Path::new(path), |path| unsafe { Library::new(path) }) {
                Ok(library) => return Self::bind(library),
                Err(error) => reasons.push(error.message().to_owned()),
            }
        }
        let reason = reasons.first().map_or("", String::as_str);
        Err(unavailable(format!(
            "no NVIDIA driver: {reason}; install it; in a container, pass the GPU through (--gpus all)"
        )))
    }

    fn bind(library: Library) -> Result<Self> {
        let required = Required::bind(&library).map_err(|symbol| {
            unavailable(format!(
                "the NVIDIA driver lacks {symbol}: it is older than {MIN_VERSION}; update it"
            ))
        })?;
        Ok(Self {
            required,
            memory_pools: MemoryPools::bind(&library).ok(),
            graphs: Graphs::bind(&library).ok(),
            launch_ex: LaunchEx::bind(&library).ok(),
            cooperative_launch: CooperativeLaunch::bind(&library).ok(),
            function_enumeration: FunctionEnumeration::bind(&library).ok(),
            function_params: FunctionParams::bind(&library).ok(),
            mig_identity: MigIdentity::bind(&library).ok(),
            tensor_maps: TensorMaps::bind(&library).ok(),
            _library: library,
        })
    }

    /// Calls `cuInit`; repeated calls are cheap.
    fn initialise(&self) -> Result<()> {
        // SAFETY: takes a number.
        let code = unsafe { (self.cuInit)(0) };
        let remedy = match code.0 {
            0 => return Ok(()),
            3 => "it was initialised before this process was forked; open devices only in the child",
            34 => {
                "the toolkit's stub library was loaded instead of the driver; put the driver's folder first in LD_LIBRARY_PATH"
            }
            100 => "it reports no device; check `nvidia-smi`, and CUDA_VISIBLE_DEVICES if it is set",
            304 => "it cannot access the device files /dev/nvidia*; check their permissions",
            802 => "the system is not ready; start nvidia-fabricmanager",
            803 => "kernel module and library have different versions; restart the machine",
            804 => {
                "its forward-compatibility package does not support this device; install a newer driver instead"
            }
            _ => "check `nvidia-smi`; reinstall the driver or restart the machine if that fails",
        };
        let error = unavailable(format!("the NVIDIA driver cannot be used: {remedy}"));
        Err(error.with_driver(self.name(code), i64::from(code.0)).in_operation("cuInit"))
    }

    /// An attribute of the memory at an address; `None` for memory that the driver does not manage.
    pub(crate) fn pointer_attribute(&self, attribute: c_int, address: DevicePtr) -> Option<c_int> {
        let mut value = 0;
        // SAFETY: the out-parameter has the type of these attributes; an unknown address returns an error.
        let code = unsafe { (self.cuPointerGetAttribute)((&raw mut value).cast(), attribute, address) };
        code.is_success().then_some(value)
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
        let described = unsafe { (self.cuGetErrorString)(code, &raw mut text) };
        let message = if described.is_success() { static_c_string(text) } else { String::new() };
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
        let named = unsafe { (self.cuGetErrorName)(code, &raw mut name) };
        if named.is_success() { static_c_string(name) } else { String::new() }
    }

    /// An attribute of a device; 0 if the driver does not support it.
    pub(crate) fn attribute(&self, device: Ordinal, attribute: c_int) -> u32 {
        let mut value = 0;
        // SAFETY: the out-parameter is writable; an unknown attribute or device returns an error.
        let code = unsafe { (self.cuDeviceGetAttribute)(&raw mut value, attribute, device) };
        if code.is_success() { u32::try_from(value).unwrap_or(0) } else { 0 }
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
fn static_c_string(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the driver's strings are terminated and live as long as the library.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A C string that the driver wrote into a buffer.
pub(crate) fn c_string(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim().to_owned()
}

/// Name of a function, if the driver reports it.
pub(crate) fn function_name(api: &FunctionEnumeration, function: Function) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: the function is of a loaded module, and the out-parameter is writable.
    let code = unsafe { (api.cuFuncGetName)(&raw mut name, function) };
    code.is_success().then(|| static_c_string(name)).filter(|name| !name.is_empty())
}
