//! Codes of the driver as errors.

use ash::vk;
use gpu_allocator::AllocationError;
use runtime_core::{Error, ErrorKind};

/// The driver's name of a code.
pub(super) fn name(code: vk::Result) -> String {
    format!("VK_{code:?}")
}

/// The error that a code stands for.
#[cold]
pub(super) fn error(function: &str, code: vk::Result) -> Error {
    let (kind, message) = match code {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => {
            (ErrorKind::OutOfMemory, "the program's memory is exhausted; free some, or end other programs")
        }
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            (ErrorKind::OutOfMemory, "the device's memory is exhausted; free tensors first")
        }
        vk::Result::ERROR_TOO_MANY_OBJECTS => {
            (ErrorKind::OutOfResources, "too many objects of one kind; free some first")
        }
        vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL => {
            (ErrorKind::OutOfResources, "a pool is exhausted; wait for earlier work")
        }
        vk::Result::ERROR_DEVICE_LOST => (
            ErrorKind::DeviceLost,
            "the device is lost: a kernel faulted or ran too long, or the driver reset it; open it again",
        ),
        vk::Result::ERROR_FEATURE_NOT_PRESENT | vk::Result::ERROR_EXTENSION_NOT_PRESENT => {
            (ErrorKind::Unsupported, "the driver lacks a feature that this needs; update it")
        }
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            (ErrorKind::OutOfResources, "the driver cannot start the device; see `vulkaninfo`")
        }
        vk::Result::ERROR_INVALID_SHADER_NV => {
            (ErrorKind::CompileFailed, "the driver does not compile this code; run `spirv-val` on it")
        }
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE => {
            (ErrorKind::InvalidArgument, "the driver cannot use this host memory; copy it instead")
        }
        _ => (ErrorKind::Driver, "the driver refuses; RUNTIME_VULKAN_VALIDATION=1 may say why"),
    };
    Error::new(kind, message).with_driver(name(code), i64::from(code.as_raw())).in_operation(function)
}

/// The error of a sub-allocation.
#[cold]
pub(super) fn allocation(bytes: u64, failure: &AllocationError) -> Error {
    match failure {
        AllocationError::OutOfMemory => Error::new(
            ErrorKind::OutOfMemory,
            format!("{bytes} bytes: the device's memory is exhausted; free tensors first"),
        ),
        AllocationError::NoCompatibleMemoryTypeFound => {
            Error::unsupported("this driver has no storage buffers in memory of this space")
        }
        other => Error::new(ErrorKind::Driver, format!("{bytes} bytes: {other}; see the driver's log")),
    }
}
