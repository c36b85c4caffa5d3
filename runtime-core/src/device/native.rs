//! Methods of every opened device: objects of its driver.

#![allow(
    unsafe_code,
    reason = "calls the functions of a backend's table; the caller vouches for a queue of its own"
)]

use crate::device::common_runtime::CommonRuntime;
use crate::model::native::NativeHandles;
use crate::plugin::native;
use crate::{ErrorKind, Queue, Result};

/// Objects of the driver.
impl<'d> dyn CommonRuntime + 'd {
    /// The driver's objects that stand for the device, for work that the runtime does not submit: `CUdevice` and `CUcontext` (the
    /// primary context, which the CUDA runtime API shares); `cl_platform_id`, `cl_device_id` and `cl_context`; `VkInstance`,
    /// `VkPhysicalDevice`, `VkDevice` and `vkGetInstanceProcAddr`. None where there is no driver.
    ///
    /// They are valid as long as the device is open, and are not destroyed by the program.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn native(&self) -> Result<NativeHandles> {
        let device = self.opened().0;
        let asked = native::ask(|handles, capacity, count| {
            // SAFETY: the device is open, with room for so many handles.
            device.call("native", |calls, device| unsafe {
                (calls.native.device)(device, handles, capacity, count)
            })
        });
        match asked {
            // A backend without a driver need not provide the function.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(NativeHandles::default()),
            asked => asked,
        }
    }

    /// Wraps a queue that the program has opened with the driver, so that work of both is in order: a `CUstream` (0 is the default
    /// stream of the primary context), or a `cl_command_queue` of the `cl_context` that `native` returns, in order.
    /// It is borrowed, and never destroyed.
    ///
    /// # Safety
    /// `handle` is a queue of this device, which stays open until the [`Queue`] has been waited for ([`Queue::wait_idle`]) and dropped. No
    /// other thread submits to it during a call of the runtime, if the driver does not allow that.
    ///
    /// # Errors
    /// `Unsupported` for a device without such queues; `InvalidArgument` for a queue of another device, or one that is not in order.
    pub unsafe fn queue_from_native(&self, handle: u64) -> Result<Queue> {
        Queue::from_native(self.opened().0, handle)
    }
}
