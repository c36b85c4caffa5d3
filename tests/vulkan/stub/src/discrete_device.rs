//! Presents a CPU device as a discrete one, with the setting `discrete`: of two memory types, only the second is
//! host-visible. Both are the driver's only one.

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;
use vk::MemoryPropertyFlags as Flags;

use crate::settings;

static MEMORY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MEMORY2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static REQUIREMENTS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static HOST_POINTER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the device is presented as a discrete one.
pub(crate) fn is_enabled() -> bool {
    settings::value("discrete").is_some()
}

/// The override of a function, if the setting asks for one.
pub(crate) fn override_symbol(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    let (driver_fn, function) = match name {
        _ if !is_enabled() => return None,
        "vkGetPhysicalDeviceMemoryProperties" => (&MEMORY, memory as *const c_void),
        "vkGetPhysicalDeviceMemoryProperties2" => (&MEMORY2, memory2 as *const c_void),
        "vkGetBufferMemoryRequirements" => (&REQUIREMENTS, requirements as *const c_void),
        "vkGetMemoryHostPointerPropertiesEXT" => (&HOST_POINTER, host_pointer as *const c_void),
        _ => return None,
    };
    driver_fn.store(driver, Ordering::Release);
    Some(function)
}

fn override_memory_properties(memory: &mut vk::PhysicalDeviceMemoryProperties) {
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
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceMemoryProperties =
        unsafe { transmute(MEMORY.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, out) };
    // SAFETY: the driver wrote it.
    override_memory_properties(unsafe { &mut *out });
}

unsafe extern "system" fn memory2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'static>,
) {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceMemoryProperties2 =
        unsafe { transmute(MEMORY2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, out) };
    // SAFETY: the driver wrote it.
    override_memory_properties(unsafe { &mut (*out).memory_properties });
}

unsafe extern "system" fn requirements(
    device: vk::Device,
    buffer: vk::Buffer,
    out: *mut vk::MemoryRequirements,
) {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetBufferMemoryRequirements =
        unsafe { transmute(REQUIREMENTS.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, buffer, out) };
    // SAFETY: the driver wrote it.
    unsafe { (*out).memory_type_bits = 0b11 };
}

unsafe extern "system" fn host_pointer(
    device: vk::Device,
    kind: vk::ExternalMemoryHandleTypeFlags,
    pointer: *const c_void,
    out: *mut vk::MemoryHostPointerPropertiesEXT<'static>,
) -> vk::Result {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetMemoryHostPointerPropertiesEXT =
        unsafe { transmute(HOST_POINTER.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    let code = unsafe { real(device, kind, pointer, out) };
    // SAFETY: writable, since the driver wrote it.
    unsafe { (*out).memory_type_bits = 0b10 };
    code
}
