//! DLPack: exchanges tensors with other libraries, without a copy.
//!
//! [`import_dlpack`](crate::CommonRuntime#method.import_dlpack) imports a tensor that another library produced;
//! [`Tensor::to_dlpack`] exports one to another library. The memory is shared, so work in flight on it matters:
//!
//! - **Import.** The caller must wait until the producer's work on the memory has ended. From then on, the producer
//!   must not access the memory until its deleter is called. Core calls the deleter exactly once, on any thread,
//!   after the tensor and its views have been dropped and the last work on them has ended. It does so on the next
//!   submission, allocation or load on the device, when the device is closed, or, if none of these happens, from
//!   its own thread a moment later. (It never calls the deleter in a forked child, during process exit, or for a
//!   device that had to be leaked.)
//! - **Export.** The export waits for all work in flight on the tensor. Later work is not ordered with the
//!   consumer's work; the caller must do that: do not write or freeze the tensor while the consumer uses it,
//!   and do not read it while the consumer writes it. The memory lives until the consumer calls the deleter.
//!
//! Read-only memory ([`FLAG_READ_ONLY`]) is imported as a frozen tensor, and a frozen tensor is exported with
//! that flag. The structures are those of DLPack 1.1.

mod export;
mod import;
mod raw;

pub use export::DlpackTensor;
pub use raw::*;

use crate::DeviceInfo;
#[cfg(doc)]
use crate::Tensor;
use crate::model::device_info::MemorySpace;

/// The DLPack device for a memory space of a device.
fn dl_device(info: &DeviceInfo, space: &MemorySpace) -> DLDevice {
    let device_type = match (info.dlpack_type, space.name.as_str()) {
        (DLDevice::CUDA, "pinned") => DLDevice::CUDA_HOST,
        (DLDevice::CUDA, "shared") => DLDevice::CUDA_MANAGED,
        (DLDevice::ROCM, "pinned") => DLDevice::ROCM_HOST,
        (own, _) => own,
    };
    let shared = is_host(device_type) || device_type == DLDevice::CUDA_MANAGED;
    let device_id = if shared { 0 } else { i32::try_from(info.id.index).unwrap_or(-1) };
    DLDevice { device_type, device_id }
}

/// Whether `data` is a host address.
const fn is_host(device_type: i32) -> bool {
    matches!(device_type, DLDevice::CPU | DLDevice::CUDA_HOST | DLDevice::ROCM_HOST)
}

/// Whether `data` is an opaque driver handle, which allows no pointer arithmetic.
const fn is_handle(device_type: i32) -> bool {
    matches!(device_type, DLDevice::OPENCL | DLDevice::VULKAN | DLDevice::METAL | DLDevice::WEBGPU)
}
