//! A processor that looks like a device with memory of its own, with the word `discrete`: of two types of memory the
//! program reaches the second alone. Both are the driver's only one.

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;
use vk::MemoryPropertyFlags as Flags;

use crate::faults;

static MEMORY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MEMORY2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NEEDS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static HOST: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the device is to look so.
pub(crate) fn is_wanted() -> bool {
    faults::word("discrete").is_some()
}

/// The function that stands before the driver's, if it is wanted.
pub(crate) fn instead_of(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    let (place, function) = match name {
        _ if !is_wanted() => return None,
        "vkGetPhysicalDeviceMemoryProperties" => (&MEMORY, memory as *const c_void),
        "vkGetPhysicalDeviceMemoryProperties2" => (&MEMORY2, memory2 as *const c_void),
        "vkGetBufferMemoryRequirements" => (&NEEDS, needs as *const c_void),
        "vkGetMemoryHostPointerPropertiesEXT" => (&HOST, host as *const c_void),
        _ => return None,
    };
    place.store(driver, Ordering::Release);
    Some(function)
}

fn spoil(memory: &mut vk::PhysicalDeviceMemoryProperties) {
    memory.memory_type_count = 2;
    memory.memory_types[0] = vk::MemoryType { property_flags: Flags::DEVICE_LOCAL, heap_index: 0 };
    memory.memory_types[1] = vk::MemoryType {
        property_flags: Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED,
        heap_index: 1,
    };
    memory.memory_heap_count = 2;
    memory.memory_heaps[1] = vk::MemoryHeap { flags: vk::MemoryHeapFlags::empty(), ..memory.memory_heaps[0] };
}

unsafe extern "system" fn memory(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceMemoryProperties) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceMemoryProperties =
        unsafe { transmute(MEMORY.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, out) };
    // SAFETY: the driver has written it.
    spoil(unsafe { &mut *out });
}

unsafe extern "system" fn memory2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'static>,
) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceMemoryProperties2 =
        unsafe { transmute(MEMORY2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, out) };
    // SAFETY: the driver has written it.
    spoil(unsafe { &mut (*out).memory_properties });
}

unsafe extern "system" fn needs(device: vk::Device, buffer: vk::Buffer, out: *mut vk::MemoryRequirements) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetBufferMemoryRequirements = unsafe { transmute(NEEDS.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, buffer, out) };
    // SAFETY: the driver has written it.
    unsafe { (*out).memory_type_bits = 0b11 };
}

unsafe extern "system" fn host(
    device: vk::Device,
    kind: vk::ExternalMemoryHandleTypeFlags,
    pointer: *const c_void,
    out: *mut vk::MemoryHostPointerPropertiesEXT<'static>,
) -> vk::Result {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetMemoryHostPointerPropertiesEXT =
        unsafe { transmute(HOST.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    let code = unsafe { real(device, kind, pointer, out) };
    // SAFETY: writable, as the driver found.
    unsafe { (*out).memory_type_bits = 0b10 };
    code
}
