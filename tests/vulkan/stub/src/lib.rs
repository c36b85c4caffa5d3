//! A Vulkan driver that passes every call on to another one, and spoils some: what `STUB_VULKAN` says, words with commas
//! between them.
//!
//! | word | what it does |
//! | --- | --- |
//! | `real=PATH` | the driver's library that calls are passed on to; must be there |
//! | `api=1.0` | devices have this version of Vulkan |
//! | `devices=0` | there are no devices |
//! | `memory=BYTES` | so many bytes can be allocated, all in all |
//! | `fail=FUNCTION:CODE:N` | the `N`th call of a function, counted from 1, gives a code; all of them, if `N` is 0 |
//! | `lost=FUNCTION:N` | from the `N`th call of a function on, every call says that the device is lost |
//! | `stands=N` | from the `N`th look at a semaphore on, all of them stand as high as numbers go |
//! | `lacks=FUNCTION` | the function is not there |
//! | `discrete=yes` | the device is no processor, and has memory that the program does not reach |
//! | `families=yes` | there are queues of three families, two of compute alone among them, and one that only copies |
//! | `waits=yes` | with `families`: every wait of a submission is printed, with the last value that the semaphore was to have before |
//! | `orders=yes` | kernels, copies, fills and barriers are printed in the order in which they are recorded |
//! | `extras=yes` | there are words of faults, memory in use, figures of the compiler, and cooperative matrices |
//! | `exits=yes` | there is an exit handler once there was work, and from then on no work in flight and no call |
//! | `cache=empty`, `cache=given`, `cache=any` | there is compiled code in a cache; nothing may be offered to it, just that must be, or either may |
//!
//! Before a device is said to be lost, the driver ends what it does: memory of a lost device may be freed at once.

#![allow(unsafe_code, reason = "a driver: it is called by the loader, and calls another driver")]
#![allow(non_snake_case, reason = "the functions have Vulkan's names")]
#![allow(clippy::missing_safety_doc, reason = "Vulkan's documentation has them")]

mod cache;
mod discrete;
mod exits;
mod extras;
mod families;
mod faults;
mod orders;
mod real;
mod spoiled;
mod waits;

use std::ffi::{CStr, c_char};

use ash::vk;

type Allocator = *const vk::AllocationCallbacks<'static>;

/// A function of any type.
type Function = vk::PFN_vkVoidFunction;

/// The loader asks which version of its interface the driver speaks.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdNegotiateLoaderICDInterfaceVersion(version: *mut u32) -> vk::Result {
    let Some(real) = real::driver() else { return vk::Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: the loader's argument, passed on.
    unsafe { (real.negotiate)(version) }
}

/// The loader looks for a function of an instance.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> Function {
    let real = real::driver()?;
    // SAFETY: the loader's arguments, passed on.
    let function = unsafe { (real.instance_function)(instance, name) };
    // SAFETY: the loader's names are terminated.
    spoiled::instead_of(unsafe { CStr::from_ptr(name) }, function)
}

/// The loader looks for a function of a physical device.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetPhysicalDeviceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> Function {
    let real = real::driver()?;
    // SAFETY: the loader's arguments, passed on.
    let function = unsafe { (real.physical_device_function)(instance, name) };
    // SAFETY: the loader's names are terminated.
    spoiled::instead_of(unsafe { CStr::from_ptr(name) }, function)
}
