//! Handles, constants and structures of the driver API, laid out as in C.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// `CUresult`. Not an enum: a driver may return codes newer than any list.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuResult(pub(crate) c_int);

impl CuResult {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);

    #[inline]
    pub(crate) fn is_success(self) -> bool {
        self == Self::SUCCESS
    }
}

/// `CUdevice`.
pub(crate) type Ordinal = c_int;
/// `CUdeviceptr`: an address in device memory, or with unified addressing in any memory.
pub(crate) type DevicePtr = u64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) *mut c_void);

        impl $name {
            pub(crate) const NULL: Self = Self(ptr::null_mut());
        }

        // SAFETY: the driver's objects may be used from any thread.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// `CUcontext`.
    Context,
    /// `CUstream`.
    Stream,
    /// `CUevent`.
    Event,
    /// `CUmodule`.
    Module,
    /// `CUfunction`.
    Function,
    /// `CUmemoryPool`.
    Pool,
    /// `CUgraph`.
    Graph,
    /// `CUgraphNode`.
    Node,
    /// `CUgraphExec`.
    GraphExec,
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) kind: c_int,
    pub(crate) id: c_int,
}

impl Location {
    /// `CU_MEM_LOCATION_TYPE_DEVICE`.
    pub(crate) const fn device(id: Ordinal) -> Self {
        Self { kind: 1, id }
    }
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PoolProperties {
    pub(crate) allocation: c_int,
    pub(crate) handles: c_int,
    pub(crate) location: Location,
    pub(crate) security: *mut c_void,
    pub(crate) max_bytes: usize,
    pub(crate) usage: u16,
    pub(crate) reserved: [u8; 54],
}

impl PoolProperties {
    /// A pool of pinned device memory.
    pub(crate) const fn of(device: Ordinal) -> Self {
        Self {
            allocation: 1,
            handles: 0,
            location: Location::device(device),
            security: ptr::null_mut(),
            max_bytes: 0,
            usage: 0,
            reserved: [0; 54],
        }
    }
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PoolAccess {
    pub(crate) location: Location,
    pub(crate) flags: c_int,
}

/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
pub(crate) const READ_WRITE: c_int = 3;

/// Attributes of a pool, `CU_MEMPOOL_ATTR_*`.
pub(crate) mod pool_attribute {
    use std::ffi::c_int;

    pub(crate) const REUSE_ALLOW_INTERNAL_DEPENDENCIES: c_int = 3;
    pub(crate) const RELEASE_THRESHOLD: c_int = 4;
    pub(crate) const RESERVED_CURRENT: c_int = 5;
    pub(crate) const USED_CURRENT: c_int = 7;
}

/// `CUlaunchAttribute`.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_int,
    pub(crate) pad: c_int,
    pub(crate) value: [u32; 16],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
    pub(crate) const fn cooperative() -> Self {
        let mut value = [0; 16];
        value[0] = 1;
        Self { id: 2, pad: 0, value }
    }

    /// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
    pub(crate) const fn cluster(extents: [u32; 3]) -> Self {
        let mut value = [0; 16];
        value[0] = extents[0];
        value[1] = extents[1];
        value[2] = extents[2];
        Self { id: 4, pad: 0, value }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LaunchConfig {
    pub(crate) groups: [c_uint; 3],
    pub(crate) group_size: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: Stream,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KernelNodeParams {
    pub(crate) function: Function,
    pub(crate) groups: [c_uint; 3],
    pub(crate) group_size: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) parameters: *const *const c_void,
    pub(crate) extra: *const *const c_void,
    pub(crate) kernel: *mut c_void,
    pub(crate) context: Context,
}

/// `CU_MEMORYTYPE_UNIFIED`: the driver infers the kind of memory from the address.
const UNIFIED_MEMORY: c_int = 4;

/// Source or destination of a [`Memcpy2D`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Memcpy2DEndpoint {
    pub(crate) x_bytes: usize,
    pub(crate) y: usize,
    pub(crate) kind: c_int,
    pub(crate) host: *mut c_void,
    pub(crate) address: DevicePtr,
    pub(crate) array: *mut c_void,
    pub(crate) pitch: usize,
}

impl Memcpy2DEndpoint {
    /// Memory at an address of the unified address space.
    pub(crate) const fn at(address: DevicePtr, pitch: usize) -> Self {
        Self {
            x_bytes: 0,
            y: 0,
            kind: UNIFIED_MEMORY,
            host: ptr::null_mut(),
            address,
            array: ptr::null_mut(),
            pitch,
        }
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Memcpy2D {
    pub(crate) source: Memcpy2DEndpoint,
    pub(crate) destination: Memcpy2DEndpoint,
    pub(crate) row_bytes: usize,
    pub(crate) rows: usize,
}

/// Source or destination of a [`Memcpy3D`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Memcpy3DEndpoint {
    pub(crate) x_bytes: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) level: usize,
    pub(crate) kind: c_int,
    pub(crate) host: *mut c_void,
    pub(crate) address: DevicePtr,
    pub(crate) array: *mut c_void,
    pub(crate) reserved: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

impl Memcpy3DEndpoint {
    /// Memory at an address of the unified address space.
    pub(crate) const fn at(address: DevicePtr, bytes: usize) -> Self {
        Self {
            x_bytes: 0,
            y: 0,
            z: 0,
            level: 0,
            kind: UNIFIED_MEMORY,
            host: ptr::null_mut(),
            address,
            array: ptr::null_mut(),
            reserved: ptr::null_mut(),
            pitch: bytes,
            height: 1,
        }
    }
}

/// `CUDA_MEMCPY3D_v2`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Memcpy3D {
    pub(crate) source: Memcpy3DEndpoint,
    pub(crate) destination: Memcpy3DEndpoint,
    pub(crate) width_bytes: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS_v1`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct MemsetNodeParams {
    pub(crate) destination: DevicePtr,
    pub(crate) pitch: usize,
    pub(crate) value: c_uint,
    pub(crate) element_bytes: c_uint,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Attributes of a device, `CU_DEVICE_ATTRIBUTE_*`.
pub(crate) mod device_attribute {
    use std::ffi::c_int;

    pub(crate) const MAX_GROUP_ITEMS: c_int = 1;
    pub(crate) const MAX_GROUP_SIZE: [c_int; 3] = [2, 3, 4];
    pub(crate) const MAX_GROUPS: [c_int; 3] = [5, 6, 7];
    pub(crate) const MAX_SHARED_BYTES: c_int = 8;
    pub(crate) const CONSTANT_BYTES: c_int = 9;
    pub(crate) const WARP_SIZE: c_int = 10;
    pub(crate) const MAX_GROUP_REGISTERS: c_int = 12;
    pub(crate) const CLOCK_KHZ: c_int = 13;
    pub(crate) const MULTIPROCESSORS: c_int = 16;
    pub(crate) const INTEGRATED: c_int = 18;
    pub(crate) const COMPUTE_MODE: c_int = 20;
    pub(crate) const ECC: c_int = 32;
    pub(crate) const MEMORY_CLOCK_KHZ: c_int = 36;
    pub(crate) const MEMORY_BUS_BITS: c_int = 37;
    pub(crate) const L2_BYTES: c_int = 38;
    pub(crate) const MULTIPROCESSOR_ITEMS: c_int = 39;
    pub(crate) const COPY_ENGINES: c_int = 40;
    pub(crate) const UNIFIED_ADDRESSING: c_int = 41;
    pub(crate) const MAJOR: c_int = 75;
    pub(crate) const MINOR: c_int = 76;
    pub(crate) const MULTIPROCESSOR_SHARED_BYTES: c_int = 81;
    pub(crate) const MULTIPROCESSOR_REGISTERS: c_int = 82;
    pub(crate) const CONCURRENT_MANAGED_ACCESS: c_int = 89;
    pub(crate) const COOPERATIVE_LAUNCH: c_int = 95;
    pub(crate) const MAX_SHARED_BYTES_OPT_IN: c_int = 97;
    pub(crate) const MULTIPROCESSOR_GROUPS: c_int = 106;
    pub(crate) const MEMORY_POOLS: c_int = 115;
    pub(crate) const CLUSTER_LAUNCH: c_int = 120;
}

/// Attributes of a function, `CU_FUNC_ATTRIBUTE_*`.
pub(crate) mod function_attribute {
    use std::ffi::c_int;

    pub(crate) const MAX_GROUP_ITEMS: c_int = 0;
    pub(crate) const SHARED_BYTES: c_int = 1;
    pub(crate) const LOCAL_BYTES: c_int = 3;
    pub(crate) const REGISTERS: c_int = 4;
    pub(crate) const PTX_VERSION: c_int = 5;
    pub(crate) const BINARY_VERSION: c_int = 6;
    pub(crate) const MAX_DYNAMIC_SHARED_BYTES: c_int = 8;
    pub(crate) const NON_PORTABLE_CLUSTERS: c_int = 14;
}

/// Attributes of an address, `CU_POINTER_ATTRIBUTE_*`, and values of `MEMORY_TYPE`.
pub(crate) mod pointer_attribute {
    use std::ffi::{c_int, c_uint};

    pub(crate) const MEMORY_TYPE: c_int = 2;
    pub(crate) const DEVICE_ORDINAL: c_int = 9;
    pub(crate) const HOST_MEMORY: c_uint = 1;
}

/// Options of the JIT compiler, `CU_JIT_*`.
pub(crate) mod jit {
    use std::ffi::c_int;

    pub(crate) const ERROR_LOG: c_int = 5;
    pub(crate) const ERROR_LOG_BYTES: c_int = 6;
}

/// `CU_STREAM_NON_BLOCKING`: not synchronised with the default stream.
pub(crate) const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub(crate) const NO_TIMING: c_uint = 2;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: for all devices, cached by the processor.
pub(crate) const PORTABLE_MAPPED: c_uint = 3;
/// `CU_MEM_ATTACH_GLOBAL`.
pub(crate) const ATTACH_GLOBAL: c_uint = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_c() {
        assert_eq!(size_of::<PoolProperties>(), 88);
        assert_eq!(size_of::<PoolAccess>(), 12);
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(size_of::<KernelNodeParams>(), 72);
        assert_eq!(size_of::<Memcpy3D>(), 200);
        assert_eq!(size_of::<MemsetNodeParams>(), 40);
    }
}
