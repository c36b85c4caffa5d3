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
        // SAFETY: the same holds for several threads at once.
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

/// Value of `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` for host memory.
pub(crate) const HOST_MEMORY: c_uint = CUmemorytype::CU_MEMORYTYPE_HOST as c_uint;
/// Value of `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE` for a device that nothing may open.
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
