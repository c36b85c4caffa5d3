//! The CUDA driver: found and bound when it is first needed, by our own signatures.
//!
//! Bound by hand and not through a binding crate, since those answer a closed Rust enum filled straight from C: a code that
//! is newer than the enum would be undefined behaviour. Here a code is a number ([`Code`]) and stays one.
//!
//! What an older driver may lack is a group of functions behind an `Option`: it is asked for, never assumed.

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the driver's own names, so that they are found by a search")]

pub(crate) mod abi;
mod status;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;

use abi::{
    Address, Code, Context, CopyNode, Event, Executable, FillNode, Function, Graph, KernelNode, LaunchConfig,
    Module, Node, Ordinal, Pool, PoolAccess, PoolProperties, RowsNode, Stream,
};
use libloading::Library;
use parking_lot::Mutex;
use runtime_core::backend::open_library;
use runtime_core::{Error, ErrorKind, Result};

pub(crate) use status::is_sticky;

/// Where the driver's library is looked for: by the system's loader, then where containers and WSL have it.
const LIBRARIES: &[&str] = &[
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/local/nvidia/lib/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
];
/// The oldest driver that has all that is required, in words.
const OLDEST: &str = "CUDA 11.2 (driver 460)";

/// Declares groups of functions that are bound together: all of a group or none.
macro_rules! bind {
    ($($(#[$doc:meta])* $group:ident { $($symbol:ident: fn($($ty:ty),* $(,)?);)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $group {
            $(pub(crate) $symbol: unsafe extern "C" fn($($ty),*) -> Code,)*
        }

        impl $group {
            /// Binds the group.
            ///
            /// # Errors
            /// The name of a function that the library lacks.
            fn bind(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {$(
                    $symbol: {
                        // SAFETY: the driver's function of this name has this signature.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($ty),*) -> Code>(stringify!($symbol).as_bytes())
                        };
                        *symbol.map_err(|_| stringify!($symbol))?
                    },
                )*})
            }
        }
    )*};
}

bind! {
/// What every driver must have.
Required {
    cuInit: fn(c_uint);
    cuDriverGetVersion: fn(*mut c_int);
    cuGetErrorName: fn(Code, *mut *const c_char);
    cuGetErrorString: fn(Code, *mut *const c_char);
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
    cuMemAlloc_v2: fn(*mut Address, usize);
    cuMemFree_v2: fn(Address);
    cuMemHostAlloc: fn(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost: fn(*mut c_void);
    cuMemAllocManaged: fn(*mut Address, usize, c_uint);
    cuPointerGetAttribute: fn(*mut c_void, c_int, Address);
    cuMemcpyAsync: fn(Address, Address, usize, Stream);
    cuMemcpyPeerAsync: fn(Address, Context, Address, Context, usize, Stream);
    cuMemcpy2DAsync_v2: fn(*const RowsNode, Stream);
    cuMemsetD8Async: fn(Address, u8, usize, Stream);
    cuMemsetD16Async: fn(Address, u16, usize, Stream);
    cuMemsetD32Async: fn(Address, c_uint, usize, Stream);
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
Pools {
    cuMemPoolCreate: fn(*mut Pool, *const PoolProperties);
    cuMemPoolDestroy: fn(Pool);
    cuMemPoolSetAttribute: fn(Pool, c_int, *mut c_void);
    cuMemPoolGetAttribute: fn(Pool, c_int, *mut c_void);
    cuMemPoolSetAccess: fn(Pool, *const PoolAccess, usize);
    cuMemPoolTrimTo: fn(Pool, usize);
    cuMemAllocFromPoolAsync: fn(*mut Address, usize, Pool, Stream);
    cuMemFreeAsync: fn(Address, Stream);
}

/// Graphs of explicit nodes.
Graphs {
    cuGraphCreate: fn(*mut Graph, c_uint);
    cuGraphDestroy: fn(Graph);
    cuGraphAddKernelNode_v2: fn(*mut Node, Graph, *const Node, usize, *const KernelNode);
    cuGraphAddMemcpyNode: fn(*mut Node, Graph, *const Node, usize, *const CopyNode, Context);
    cuGraphAddMemsetNode: fn(*mut Node, Graph, *const Node, usize, *const FillNode, Context);
    cuGraphAddEmptyNode: fn(*mut Node, Graph, *const Node, usize);
    cuGraphKernelNodeSetAttribute: fn(Node, c_int, *const [u32; 16]);
    cuGraphInstantiateWithFlags: fn(*mut Executable, Graph, u64);
    cuGraphExecKernelNodeSetParams_v2: fn(Executable, Node, *const KernelNode);
    cuGraphExecDestroy: fn(Executable);
    cuGraphLaunch: fn(Executable, Stream);
}

/// Launches with attributes: clusters.
Extended {
    cuLaunchKernelEx: fn(*const LaunchConfig, Function, *const *const c_void, *const *const c_void);
}

/// Launches whose groups all run at once.
Cooperative {
    cuLaunchCooperativeKernel: fn(
        Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *const *const c_void,
    );
}

/// The entry points of a module.
Listing {
    cuModuleGetFunctionCount: fn(*mut c_uint, Module);
    cuModuleEnumerateFunctions: fn(*mut Function, c_uint, Module);
    cuFuncGetName: fn(*mut *const c_char, Function);
}

/// The parameters of a function.
Parameters {
    cuFuncGetParamInfo: fn(Function, usize, *mut usize, *mut usize);
}

/// Identity of a part of a device.
Parts {
    cuDeviceGetUuid_v2: fn(*mut [u8; 16], Ordinal);
}

/// Descriptors for the bulk copy engine.
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
    pub(crate) pools: Option<Pools>,
    pub(crate) graphs: Option<Graphs>,
    pub(crate) extended: Option<Extended>,
    pub(crate) cooperative: Option<Cooperative>,
    pub(crate) listing: Option<Listing>,
    pub(crate) parameters: Option<Parameters>,
    pub(crate) parts: Option<Parts>,
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
    /// The driver, loaded and initialised.
    ///
    /// # Errors
    /// `Unavailable`, with the reason and the remedy, where there is none, it is too old, or it has no device.
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
            "no NVIDIA driver: {reason}; install it, and in a container pass the GPU through (--gpus all)"
        )))
    }

    fn bind(library: Library) -> Result<Self> {
        let required = Required::bind(&library).map_err(|symbol| {
            unavailable(format!(
                "the NVIDIA driver's library lacks {symbol}: it is older than {OLDEST}; update the driver"
            ))
        })?;
        Ok(Self {
            required,
            pools: Pools::bind(&library).ok(),
            graphs: Graphs::bind(&library).ok(),
            extended: Extended::bind(&library).ok(),
            cooperative: Cooperative::bind(&library).ok(),
            listing: Listing::bind(&library).ok(),
            parameters: Parameters::bind(&library).ok(),
            parts: Parts::bind(&library).ok(),
            tensor_maps: TensorMaps::bind(&library).ok(),
            _library: library,
        })
    }

    /// May be called again and again; only the first costs anything.
    fn initialise(&self) -> Result<()> {
        // SAFETY: takes a number.
        let code = unsafe { (self.cuInit)(0) };
        let remedy = match code.0 {
            0 => return Ok(()),
            3 => "it was initialised before this process was forked; open devices in the child only",
            34 => {
                "a stub library was found in place of the driver's; put the driver's folder first in LD_LIBRARY_PATH"
            }
            100 => "it has no device; see `nvidia-smi`, and CUDA_VISIBLE_DEVICES if that is set",
            304 => "it cannot reach the device files /dev/nvidia*; check their permissions",
            802 => "the system is not ready; start nvidia-fabricmanager",
            803 => "its kernel module has another version than its library; restart the machine",
            804 => "its compatibility package does not fit this device; install a newer driver instead",
            _ => "see `nvidia-smi`; the driver may need to be reinstalled, or the machine restarted",
        };
        let error = unavailable(format!("the NVIDIA driver cannot be used: {remedy}"));
        Err(error.with_driver(self.name(code), i64::from(code.0)).in_operation("cuInit"))
    }

    /// A number that the driver knows of the memory at an address; `None` for memory that it does not know.
    pub(crate) fn pointer_attribute(&self, attribute: c_int, address: Address) -> Option<c_int> {
        let mut value = 0;
        // SAFETY: the out-parameter has the type of these attributes; an unknown address is answered with an error.
        let code = unsafe { (self.cuPointerGetAttribute)((&raw mut value).cast(), attribute, address) };
        code.is_success().then_some(value)
    }

    /// Turns a code into a result; a sticky error is `DeviceLost`.
    ///
    /// # Errors
    /// Whatever `code` says, under the name of the function that answered it.
    #[inline]
    pub(crate) fn check(&self, function: &str, code: Code) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.error(function, code)) }
    }

    /// The error that a code stands for.
    #[cold]
    pub(crate) fn error(&self, function: &str, code: Code) -> Error {
        let mut words = std::ptr::null();
        // SAFETY: the out-parameter is writable; codes that the driver does not know are answered with an error.
        let described = unsafe { (self.cuGetErrorString)(code, &raw mut words) };
        let message = if described.is_success() { text(words) } else { String::new() };
        let message = match (status::remedy(code), message.as_str()) {
            (Some(remedy), "") => remedy.to_owned(),
            (Some(remedy), message) => format!("{message}; {remedy}"),
            (None, "") => {
                "the driver does not describe this code; see the release notes of its version".to_owned()
            }
            (None, message) => message.to_owned(),
        };
        Error::new(status::kind(code), message)
            .with_driver(self.name(code), i64::from(code.0))
            .in_operation(function)
    }

    /// The driver's own name of a code; empty for one that it does not know.
    fn name(&self, code: Code) -> String {
        let mut name = std::ptr::null();
        // SAFETY: the out-parameter is writable; codes that the driver does not know are answered with an error.
        let named = unsafe { (self.cuGetErrorName)(code, &raw mut name) };
        if named.is_success() { text(name) } else { String::new() }
    }

    /// An attribute of a device; 0 if the driver does not know it.
    pub(crate) fn attribute(&self, device: Ordinal, attribute: c_int) -> u32 {
        let mut value = 0;
        // SAFETY: the out-parameter is writable; an unknown attribute or device is answered with an error.
        let code = unsafe { (self.cuDeviceGetAttribute)(&raw mut value, attribute, device) };
        if code.is_success() { u32::try_from(value).unwrap_or(0) } else { 0 }
    }

    /// Version of CUDA that the driver speaks, as `major * 1000 + minor * 10`.
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

/// Static text of the driver; empty for null.
fn text(words: *const c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the driver's texts are terminated and last as long as the library.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

/// Text that the driver wrote into a buffer.
pub(crate) fn written(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim().to_owned()
}

/// Name of a function, if the driver tells.
pub(crate) fn function_name(listing: &Listing, function: Function) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: the function is of a loaded module, and the out-parameter is writable.
    let code = unsafe { (listing.cuFuncGetName)(&raw mut name, function) };
    code.is_success().then(|| text(name)).filter(|name| !name.is_empty())
}
