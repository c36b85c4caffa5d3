//! A Vulkan driver that forwards every call to another driver, and injects failures into some, as `STUB_VULKAN` says: a list
//! of settings separated by commas.
//!
//! | setting | effect |
//! | --- | --- |
//! | `real=PATH` | library of the driver that calls are forwarded to; required |
//! | `api=1.0` | devices report this version of Vulkan |
//! | `devices=0` | there are no devices |
//! | `memory=BYTES` | at most so many bytes can be allocated in total |
//! | `fail=FUNCTION:CODE:N` | the `N`th call of a function, counted from 1, returns a code; every call, if `N` is 0 |
//! | `lost=FUNCTION:N` | from the `N`th call of a function on, every call returns `VK_ERROR_DEVICE_LOST` |
//! | `overflow=N` | from the `N`th query of a semaphore on, all of them have the largest value |
//! | `missing=FUNCTION` | the function does not exist |
//! | `discrete=yes` | the device is a discrete GPU, with memory that is not host-visible |
//! | `queue_families=yes` | there are three queue families: a universal one, two compute queues, and a transfer queue |
//! | `log_waits=yes` | with `queue_families`: prints every wait of a submission, with the last value submitted for its semaphore |
//! | `log_commands=yes` | prints kernels, copies, fills and barriers as they are recorded |
//! | `extensions=yes` | adds fault reports, a memory budget, compiler statistics, cooperative matrices and pipeline robustness |
//! | `exit_handler=yes` | registers an exit handler at the first submission, and aborts on work in flight or calls after it |
//! | `cache=empty`, `cache=saved`, `cache=any`, `cache=none` | the pipeline cache has data behind the driver's header; accepts no initial data, exactly its own, either, or cannot be created |
//!
//! Before a call reports that the device is lost, the driver's work completes: memory of a lost device may be freed at once.

#![allow(unsafe_code, reason = "a driver: the loader calls it, and it calls another driver")]
#![allow(non_snake_case, reason = "the functions have Vulkan's names")]
#![allow(clippy::missing_safety_doc, reason = "Vulkan's documentation has them")]

mod command_log;
mod discrete_device;
mod exit_handler;
mod extensions;
mod faults;
mod overrides;
mod pipeline_cache;
mod queue_families;
mod real_driver;
mod settings;
mod wait_log;

use std::ffi::{CStr, c_char};

use ash::vk;

type Allocator = *const vk::AllocationCallbacks<'static>;

/// A function pointer of any type.
type Function = vk::PFN_vkVoidFunction;

/// Negotiates the loader interface version.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdNegotiateLoaderICDInterfaceVersion(version: *mut u32) -> vk::Result {
    let Some(real) = real_driver::driver() else { return vk::Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: the loader's argument, forwarded.
    unsafe { (real.negotiate)(version) }
}

/// Looks up a function for an instance.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> Function {
    let real = real_driver::driver()?;
    // SAFETY: the loader's arguments, forwarded.
    let function = unsafe { (real.instance_function)(instance, name) };
    // SAFETY: the loader's names are null-terminated.
    overrides::override_symbol(unsafe { CStr::from_ptr(name) }, function)
}

/// Looks up a function for a physical device.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetPhysicalDeviceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> Function {
    let real = real_driver::driver()?;
    // SAFETY: the loader's arguments, forwarded.
    let function = unsafe { (real.physical_device_function)(instance, name) };
    // SAFETY: the loader's names are null-terminated.
    overrides::override_symbol(unsafe { CStr::from_ptr(name) }, function)
}
