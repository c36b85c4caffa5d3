//! CUDA's structures, constants and handles: those of `cudarc`'s `sys`, under the names that this backend uses.
//!
//! Two things are handwritten: the result codes, because a newer code in the enum `CUresult` would be undefined
//! behaviour; and the handle types, because a raw pointer is not `Send`. Enums of `sys` are only passed to the driver,
//! never read from memory that it wrote.

use std::ffi::c_uint;
use std::ptr;

use cudarc::driver::sys::{
    self, CUcomputemode, CUevent_flags, CUlaunchAttributeID, CUlaunchAttributeValue, CUmemAccess_flags,
    CUmemAccessDesc, CUmemAllocationHandleType, CUmemAllocationType, CUmemAttach_flags, CUmemLocation,
    CUmemLocationType, CUmemPoolProps, CUmemorytype, CUstream_flags,
};
pub(crate) use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS_v2 as KernelNodeParams, CUDA_MEMCPY2D as Memcpy2D, CUDA_MEMCPY3D as Memcpy3D,
    CUDA_MEMSET_NODE_PARAMS as MemsetNodeParams, CUdevice as Ordinal, CUdevice_attribute,
    CUdeviceptr as DevicePtr, CUfunction_attribute, CUlaunchAttribute, CUlaunchConfig, CUmemPool_attribute,
    CUpointer_attribute, CUuuid,
};

/// `CUresult` as a number: a driver may return codes newer than any list.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CuResult(pub(crate) c_uint);

impl CuResult {
    #[inline]
    pub(crate) fn is_success(self) -> bool {
        self == Self::CUDA_SUCCESS
    }
}

macro_rules! codes {
    ($($code:ident),* $(,)?) => {
        impl CuResult {
            $(pub(crate) const $code: Self = Self(sys::CUresult::$code as c_uint);)*
        }
    };
}

// The codes that this backend tells apart, in the order of their numbers.
codes! {
    CUDA_SUCCESS,
    CUDA_ERROR_INVALID_VALUE,
    CUDA_ERROR_OUT_OF_MEMORY,
    CUDA_ERROR_NOT_INITIALIZED,
    CUDA_ERROR_STUB_LIBRARY,
    CUDA_ERROR_DEVICE_UNAVAILABLE,
    CUDA_ERROR_NO_DEVICE,
    CUDA_ERROR_INVALID_DEVICE,
    CUDA_ERROR_DEVICE_NOT_LICENSED,
    CUDA_ERROR_INVALID_IMAGE,
    CUDA_ERROR_NO_BINARY_FOR_GPU,
    CUDA_ERROR_ECC_UNCORRECTABLE,
    CUDA_ERROR_INVALID_PTX,
    CUDA_ERROR_NVLINK_UNCORRECTABLE,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    CUDA_ERROR_JIT_COMPILATION_DISABLED,
    CUDA_ERROR_CONTAINED,
    CUDA_ERROR_INVALID_SOURCE,
    CUDA_ERROR_FILE_NOT_FOUND,
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
    CUDA_ERROR_OPERATING_SYSTEM,
    CUDA_ERROR_NOT_FOUND,
    CUDA_ERROR_NOT_READY,
    CUDA_ERROR_ILLEGAL_ADDRESS,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
    CUDA_ERROR_LAUNCH_TIMEOUT,
    CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUDA_ERROR_ASSERT,
    CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUDA_ERROR_MISALIGNED_ADDRESS,
    CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUDA_ERROR_INVALID_PC,
    CUDA_ERROR_LAUNCH_FAILED,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
    CUDA_ERROR_TENSOR_MEMORY_LEAK,
    CUDA_ERROR_NOT_SUPPORTED,
    CUDA_ERROR_SYSTEM_NOT_READY,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
    CUDA_ERROR_MPS_SERVER_NOT_READY,
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,
    CUDA_ERROR_MPS_CLIENT_TERMINATED,
    CUDA_ERROR_TIMEOUT,
    CUDA_ERROR_EXTERNAL_DEVICE,
    CUDA_ERROR_INVALID_CLUSTER_SIZE,
    CUDA_ERROR_UNKNOWN,
}

macro_rules! handles {
    ($($name:ident = $raw:ident;)*) => {$(
        #[doc = concat!("`", stringify!($raw), "`, usable from any thread.")]
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) sys::$raw);

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
    Context = CUcontext;
    Stream = CUstream;
    Event = CUevent;
    Module = CUmodule;
    Function = CUfunction;
    Pool = CUmemoryPool;
    Graph = CUgraph;
    Node = CUgraphNode;
    GraphExec = CUgraphExec;
}

const fn device_location(device: Ordinal) -> CUmemLocation {
    CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}

/// A pool of pinned device memory.
pub(crate) const fn device_pool(device: Ordinal) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: device_location(device),
        win32SecurityAttributes: ptr::null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    }
}

/// Access to a pool for reads and writes of a device.
pub(crate) const fn device_access(device: Ordinal) -> CUmemAccessDesc {
    CUmemAccessDesc {
        location: device_location(device),
        flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    }
}

fn launch_attribute(
    id: CUlaunchAttributeID,
    set: impl FnOnce(&mut CUlaunchAttributeValue),
) -> CUlaunchAttribute {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    set(&mut value);
    CUlaunchAttribute { id, pad: [0; 4], value }
}

/// A cooperative launch.
pub(crate) fn cooperative_attribute() -> CUlaunchAttribute {
    launch_attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, |value| value.cooperative = 1)
}

/// A launch in clusters.
pub(crate) fn cluster_attribute([x, y, z]: [c_uint; 3]) -> CUlaunchAttribute {
    launch_attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, |value| {
        value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
    })
}

/// An address of the unified address space, from which the driver infers the kind of memory, and the pitch of the rows there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pitched {
    pub(crate) address: DevicePtr,
    pub(crate) pitch_bytes: usize,
}

/// A copy of `rows` pitched rows of `row_bytes`.
pub(crate) const fn copy_2d(to: Pitched, from: Pitched, row_bytes: usize, rows: usize) -> Memcpy2D {
    Memcpy2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcHost: ptr::null(),
        srcDevice: from.address,
        srcArray: ptr::null_mut(),
        srcPitch: from.pitch_bytes,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstHost: ptr::null_mut(),
        dstDevice: to.address,
        dstArray: ptr::null_mut(),
        dstPitch: to.pitch_bytes,
        WidthInBytes: row_bytes,
        Height: rows,
    }
}

/// A copy of `bytes` contiguous bytes.
pub(crate) const fn copy_bytes(to: DevicePtr, from: DevicePtr, bytes: usize) -> Memcpy3D {
    Memcpy3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        srcHost: ptr::null(),
        srcDevice: from,
        srcArray: ptr::null_mut(),
        reserved0: ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
        dstHost: ptr::null_mut(),
        dstDevice: to,
        dstArray: ptr::null_mut(),
        reserved1: ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

/// Attributes of a device.
pub(crate) mod device_attribute {
    pub(crate) use super::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT as COPY_ENGINES, CU_DEVICE_ATTRIBUTE_CLOCK_RATE as CLOCK_KHZ,
        CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH as CLUSTER_LAUNCH,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_MODE as COMPUTE_MODE,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS as CONCURRENT_MANAGED_ACCESS,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH as COOPERATIVE_LAUNCH, CU_DEVICE_ATTRIBUTE_ECC_ENABLED as ECC,
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH as MEMORY_BUS_BITS,
        CU_DEVICE_ATTRIBUTE_INTEGRATED as INTEGRATED, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE as L2_BYTES,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR as MULTIPROCESSOR_GROUPS,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK as MAX_GROUP_REGISTERS,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR as MULTIPROCESSOR_REGISTERS,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK as MAX_SHARED_BYTES,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as MAX_SHARED_BYTES_OPT_IN,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR as MULTIPROCESSOR_SHARED_BYTES,
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK as MAX_GROUP_ITEMS,
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR as MULTIPROCESSOR_ITEMS,
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE as MEMORY_CLOCK_KHZ,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as MEMORY_POOLS,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS,
        CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY as CONSTANT_BYTES,
        CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING as UNIFIED_ADDRESSING,
        CU_DEVICE_ATTRIBUTE_WARP_SIZE as WARP_SIZE,
    };

    use super::CUdevice_attribute::{
        self, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    };

    pub(crate) const MAX_GROUP_SIZE: [CUdevice_attribute; 3] = [
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    ];
    pub(crate) const MAX_GROUPS: [CUdevice_attribute; 3] = [
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    ];
}

/// Attributes of a function.
pub(crate) mod function_attribute {
    pub(crate) use super::CUfunction_attribute::{
        CU_FUNC_ATTRIBUTE_BINARY_VERSION as BINARY_VERSION,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES as LOCAL_BYTES,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as MAX_DYNAMIC_SHARED_BYTES,
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK as MAX_GROUP_ITEMS,
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as NON_PORTABLE_CLUSTERS,
        CU_FUNC_ATTRIBUTE_NUM_REGS as REGISTERS, CU_FUNC_ATTRIBUTE_PTX_VERSION as PTX_VERSION,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as SHARED_BYTES,
    };
}

/// Attributes of an address.
pub(crate) mod pointer_attribute {
    pub(crate) use super::CUpointer_attribute::{
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE as MEMORY_TYPE,
    };
}

/// Attributes of a pool.
pub(crate) mod pool_attribute {
    pub(crate) use super::CUmemPool_attribute::{
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as RELEASE_THRESHOLD,
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT as RESERVED_CURRENT,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES as REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT as USED_CURRENT,
    };
}

/// Options of the JIT compiler.
pub(crate) mod jit {
    pub(crate) use cudarc::driver::sys::CUjit_option::{
        CU_JIT_ERROR_LOG_BUFFER as ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as ERROR_LOG_BYTES,
        CU_JIT_INFO_LOG_BUFFER as INFO_LOG, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES as INFO_LOG_BYTES,
        CU_JIT_LOG_VERBOSE as LOG_VERBOSE, CU_JIT_MAX_REGISTERS as MAX_REGISTERS,
        CU_JIT_OPTIMIZATION_LEVEL as OPTIMIZATION_LEVEL,
    };
}

/// Value of [`pointer_attribute::MEMORY_TYPE`] for host memory.
pub(crate) const HOST_MEMORY: c_uint = CUmemorytype::CU_MEMORYTYPE_HOST as c_uint;
/// Value of [`device_attribute::COMPUTE_MODE`] for a device that nothing may open.
pub(crate) const COMPUTE_MODE_PROHIBITED: c_uint = CUcomputemode::CU_COMPUTEMODE_PROHIBITED as c_uint;
/// Flag of a stream that is not synchronised with the default stream.
pub(crate) const NON_BLOCKING: c_uint = CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
/// Flag of an event without timing.
pub(crate) const NO_TIMING: c_uint = CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
/// Flags of host memory for all devices, cached by the processor.
pub(crate) const PORTABLE_MAPPED: c_uint = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
/// Flag of managed memory that every stream may use.
pub(crate) const ATTACH_GLOBAL: c_uint = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as c_uint;
/// Keys of the `extra` array of a launch.
pub(crate) const LAUNCH_PARAM_BUFFER: usize = sys::CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize;
pub(crate) const LAUNCH_PARAM_BUFFER_SIZE: usize = sys::CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize;

#[cfg(test)]
mod tests;
