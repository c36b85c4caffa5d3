//! DLPack: tensors from and for other libraries, without a copy.
//!
//! [`import_dlpack`](crate::CommonRuntime#method.import_dlpack) takes over a tensor that another library produced; [`Tensor::to_dlpack`] lends one to
//! another library. Both share the memory, so what is in flight on it matters:
//!
//! - **Coming in**, the producer's work on the memory has ended, or the caller has waited for it; the producer does not
//!   touch it until its deleter is called. The deleter is called exactly once, when the tensor and its views are gone
//!   and the last work on them has ended: by the next submission, allocation or load on the device, or when the device
//!   is closed, or a moment later by itself; on whatever thread that is. (In a forked child, at the exit of the process, and for a device that had
//!   to be leaked it is not called.)
//! - **Going out**, the export waits for everything in flight on the tensor. What is submitted afterwards is ordered
//!   with the consumer's work by the program only: do not write the tensor, nor freeze it, while the consumer uses it,
//!   nor read it while the consumer writes. The memory lives until the consumer calls the deleter.
//!
//! Memory that must not be written ([`FLAG_READ_ONLY`]) becomes a frozen tensor, and a frozen tensor goes out with that
//! flag. The structures are those of DLPack 1.1.

mod export;
mod import;
mod raw;

pub use export::DlpackTensor;
pub use raw::*;

#[cfg(doc)]
use crate::Tensor;
use crate::{DeviceInfo, MemorySpace};

/// What DLPack calls memory of space `space` of a device.
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

/// Whether `data` is an address of the program.
const fn is_host(device_type: i32) -> bool {
    matches!(device_type, DLDevice::CPU | DLDevice::CUDA_HOST | DLDevice::ROCM_HOST)
}

/// Whether `data` is a handle of the driver, with which one cannot count.
const fn is_handle(device_type: i32) -> bool {
    matches!(device_type, DLDevice::OPENCL | DLDevice::VULKAN | DLDevice::METAL | DLDevice::WEBGPU)
}
