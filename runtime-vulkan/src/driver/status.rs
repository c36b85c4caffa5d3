//! Converts `VkResult` codes to errors.

use ash::vk;
use gpu_allocator::AllocationError;
use runtime_core::{Error, ErrorKind};

/// The name of a code, such as `VK_ERROR_DEVICE_LOST`.
pub(super) fn name(code: vk::Result) -> String {
    format!("VK_{code:?}")
}

/// The error for a code.
#[cold]
pub(super) fn error(function: &str, code: vk::Result) -> Error {
    let (kind, message) = match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            (ErrorKind::OutOfMemory, "host memory is exhausted; free some, or close other programs")
        }
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            (ErrorKind::OutOfMemory, "device memory is exhausted; free tensors first")
        }
        vk::Result::ERROR_TOO_MANY_OBJECTS => {
            (ErrorKind::OutOfResources, "too many objects of one type; free some first")
        }
        vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL => {
            (ErrorKind::OutOfResources, "a pool is exhausted; wait for earlier work to complete")
        }
        vk::Result::ERROR_DEVICE_LOST => (
            ErrorKind::DeviceLost,
            "the device is lost: a kernel faulted or ran too long, or the driver reset it; open it again",
        ),
        vk::Result::ERROR_FEATURE_NOT_PRESENT | vk::Result::ERROR_EXTENSION_NOT_PRESENT => {
            (ErrorKind::Unsupported, "the driver lacks a required feature; update it")
        }
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            (ErrorKind::OutOfResources, "the driver cannot initialise the device; check `vulkaninfo`")
        }
        vk::Result::ERROR_INVALID_SHADER_NV => {
            (ErrorKind::CompileFailed, "the driver cannot compile this code; run `spirv-val` on it")
        }
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE => {
            (ErrorKind::InvalidArgument, "the driver cannot use this host memory; copy it instead")
        }
        _ => (ErrorKind::Driver, "the driver failed; RUNTIME_VULKAN_VALIDATION=1 may show why"),
    };
    Error::new(kind, message).with_driver(name(code), i64::from(code.as_raw())).in_operation(function)
}

/// The error for a failed sub-allocation.
#[cold]
pub(super) fn allocation_error(bytes: u64, failure: &AllocationError) -> Error {
    match failure {
        AllocationError::OutOfMemory => Error::new(
            ErrorKind::OutOfMemory,
            format!("{bytes} bytes: device memory is exhausted; free tensors first"),
        ),
        AllocationError::NoCompatibleMemoryTypeFound => {
            Error::unsupported("storage buffers in this memory space are not supported by this driver")
        }
        other => Error::new(ErrorKind::Driver, format!("{bytes} bytes: {other}; see the driver's log")),
    }
}
