//! The structures of DLPack 1.1, field by field as in `include/dlpack/dlpack.h` of
//! <https://github.com/dmlc/dlpack>.

use std::ffi::c_void;

/// [`DLPackVersion::major`] of the structures here. Other major versions have a different layout.
pub const MAJOR_VERSION: u32 = 1;
/// [`DLPackVersion::minor`] of the structures here. New minor versions add codes and flags.
pub const MINOR_VERSION: u32 = 1;
/// [`DLManagedTensorVersioned::flags`]: the memory must not be written.
pub const FLAG_READ_ONLY: u64 = 1;
/// [`DLManagedTensorVersioned::flags`]: the producer made a copy, which only the consumer uses.
pub const FLAG_IS_COPIED: u64 = 1 << 1;

/// Version of a managed tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes with the layout.
    pub major: u32,
    /// Changes with new codes and flags.
    pub minor: u32,
}

/// The device that owns the memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// `DLDeviceType`: one of the constants here, or any other value.
    pub device_type: i32,
    /// Index of the device; 0 for host, pinned and managed memory.
    pub device_id: i32,
}

impl DLDevice {
    /// `kDLCPU`.
    pub const CPU: i32 = 1;
    /// `kDLCUDA`.
    pub const CUDA: i32 = 2;
    /// `kDLCUDAHost`: pinned host memory.
    pub const CUDA_HOST: i32 = 3;
    /// `kDLOpenCL`: `data` is a `cl_mem`.
    pub const OPENCL: i32 = 4;
    /// `kDLVulkan`: `data` is opaque.
    pub const VULKAN: i32 = 7;
    /// `kDLMetal`: `data` is opaque.
    pub const METAL: i32 = 8;
    /// `kDLROCM`.
    pub const ROCM: i32 = 10;
    /// `kDLROCMHost`: pinned host memory.
    pub const ROCM_HOST: i32 = 11;
    /// `kDLExtDev`: a device without a type of its own in DLPack.
    pub const EXT_DEV: i32 = 12;
    /// `kDLCUDAManaged`: managed memory, which migrates by itself.
    pub const CUDA_MANAGED: i32 = 13;
    /// `kDLWebGPU`: `data` is opaque.
    pub const WEBGPU: i32 = 15;
}

/// An element type: [`DType::dlpack`](crate::DType::dlpack).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes; 1 for a scalar.
    pub lanes: u16,
}

/// A tensor, without ownership.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The memory: an address, or on some devices a handle. Null if the tensor has no elements.
    pub data: *mut c_void,
    /// The device that owns the memory.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// `ndim` extents.
    pub shape: *mut i64,
    /// `ndim` strides in elements; null means row-major.
    pub strides: *mut i64,
    /// Offset of the first element from `data`.
    pub byte_offset: u64,
}

/// A tensor with an owner, in the format before DLPack 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Private to the producer.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and this structure; may be null.
    #[expect(clippy::use_self, reason = "as in the C header")]
    pub deleter: Option<unsafe extern "C" fn(managed: *mut DLManagedTensor)>,
}

/// A tensor with an owner.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// The version of this structure's layout.
    pub version: DLPackVersion,
    /// Private to the producer.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and this structure; may be null. The layout up to this field is the same in all
    /// versions.
    #[expect(clippy::use_self, reason = "as in the C header")]
    pub deleter: Option<unsafe extern "C" fn(managed: *mut DLManagedTensorVersioned)>,
    /// [`FLAG_READ_ONLY`], [`FLAG_IS_COPIED`].
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_layout_matches_the_header() {
        assert_eq!((size_of::<DLTensor>(), size_of::<DLManagedTensor>()), (48, 64));
        assert_eq!(size_of::<DLManagedTensorVersioned>(), 80);
        let tensor = [
            offset_of!(DLTensor, device),
            offset_of!(DLTensor, ndim),
            offset_of!(DLTensor, dtype),
            offset_of!(DLTensor, shape),
            offset_of!(DLTensor, strides),
            offset_of!(DLTensor, byte_offset),
        ];
        assert_eq!(tensor, [8, 16, 20, 24, 32, 40]);
        let managed = [
            offset_of!(DLManagedTensorVersioned, manager_ctx),
            offset_of!(DLManagedTensorVersioned, deleter),
            offset_of!(DLManagedTensorVersioned, flags),
            offset_of!(DLManagedTensorVersioned, dl_tensor),
        ];
        assert_eq!(managed, [8, 16, 24, 32]);
    }
}
