//! Overrides of the real driver's functions.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ash::vk;

use crate::{
    Allocator, Function, command_log, discrete_device, extensions, faults, pipeline_cache, queue_families,
    settings,
};

/// Defines overrides that fail if a fault is injected, and call the driver's function of the same name otherwise.
macro_rules! failing {
    ($($function:ident($($arg:ident: $ty:ty),*);)*) => {
        $(unsafe extern "system" fn $function($($arg: $ty),*) -> vk::Result {
            if let Some(code) = faults::injected(stringify!($function)) {
                return inject_failure(code);
            }
            let real = real::$function.load(Ordering::Acquire);
            // SAFETY: the driver's function of this name has this type, and was stored before this override was returned.
            let real: unsafe extern "system" fn($($ty),*) -> vk::Result = unsafe { transmute(real) };
            // SAFETY: the caller's arguments, forwarded.
            unsafe { real($($arg),*) }
        })*

        /// The driver's functions.
        #[allow(non_upper_case_globals, reason = "named after the functions")]
        mod real {
            use super::{AtomicPtr, c_void};
            $(pub(super) static $function: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());)*
        }

        fn failing(name: &str, driver: *mut c_void) -> Option<*const c_void> {
            match name {
                $(stringify!($function) => {
                    real::$function.store(driver, Ordering::Release);
                    Some($function as *const c_void)
                })*
                _ => None,
            }
        }
    };
}

/// The open devices.
static DEVICES: Mutex<Vec<vk::Device>> = Mutex::new(Vec::new());

/// The code that a failing function returns. A lost device is reported only once the driver's work has completed.
pub(crate) fn inject_failure(code: vk::Result) -> vk::Result {
    let real = real::vkDeviceWaitIdle.load(Ordering::Acquire);
    if code != vk::Result::ERROR_DEVICE_LOST || real.is_null() {
        return code;
    }
    // SAFETY: the driver's function of this name has this type.
    let wait: vk::PFN_vkDeviceWaitIdle = unsafe { transmute(real) };
    for device in DEVICES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        // SAFETY: the device is open: it is removed before it is destroyed.
        let _ = unsafe { wait(*device) };
    }
    code
}

failing! {
    vkCreateInstance(info: *const vk::InstanceCreateInfo<'static>, allocator: Allocator, out: *mut vk::Instance);
    vkEnumerateDeviceExtensionProperties(device: vk::PhysicalDevice, layer: *const c_char, count: *mut u32, out: *mut vk::ExtensionProperties);
    vkCreateBuffer(device: vk::Device, info: *const vk::BufferCreateInfo<'static>, allocator: Allocator, out: *mut vk::Buffer);
    vkBindBufferMemory(device: vk::Device, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64);
    vkMapMemory(device: vk::Device, memory: vk::DeviceMemory, offset: u64, size: u64, flags: u32, out: *mut *mut c_void);
    vkCreateSemaphore(device: vk::Device, info: *const vk::SemaphoreCreateInfo<'static>, allocator: Allocator, out: *mut vk::Semaphore);
    vkWaitSemaphores(device: vk::Device, info: *const vk::SemaphoreWaitInfo<'static>, timeout: u64);
    vkCreateCommandPool(device: vk::Device, info: *const vk::CommandPoolCreateInfo<'static>, allocator: Allocator, out: *mut vk::CommandPool);
    vkResetCommandPool(device: vk::Device, pool: vk::CommandPool, flags: u32);
    vkAllocateCommandBuffers(device: vk::Device, info: *const vk::CommandBufferAllocateInfo<'static>, out: *mut vk::CommandBuffer);
    vkBeginCommandBuffer(buffer: vk::CommandBuffer, info: *const vk::CommandBufferBeginInfo<'static>);
    vkEndCommandBuffer(buffer: vk::CommandBuffer);
    vkResetCommandBuffer(buffer: vk::CommandBuffer, flags: u32);
    vkCreateShaderModule(device: vk::Device, info: *const vk::ShaderModuleCreateInfo<'static>, allocator: Allocator, out: *mut vk::ShaderModule);
    vkCreateDescriptorSetLayout(device: vk::Device, info: *const vk::DescriptorSetLayoutCreateInfo<'static>, allocator: Allocator, out: *mut vk::DescriptorSetLayout);
    vkCreateDescriptorPool(device: vk::Device, info: *const vk::DescriptorPoolCreateInfo<'static>, allocator: Allocator, out: *mut vk::DescriptorPool);
    vkCreatePipelineLayout(device: vk::Device, info: *const vk::PipelineLayoutCreateInfo<'static>, allocator: Allocator, out: *mut vk::PipelineLayout);
    vkCreatePipelineCache(device: vk::Device, info: *const vk::PipelineCacheCreateInfo<'static>, allocator: Allocator, out: *mut vk::PipelineCache);
    vkCreateComputePipelines(device: vk::Device, cache: vk::PipelineCache, count: u32, infos: *const vk::ComputePipelineCreateInfo<'static>, allocator: Allocator, out: *mut vk::Pipeline);
    vkCreateQueryPool(device: vk::Device, info: *const vk::QueryPoolCreateInfo<'static>, allocator: Allocator, out: *mut vk::QueryPool);
    vkGetQueryPoolResults(device: vk::Device, pool: vk::QueryPool, first: u32, count: u32, bytes: usize, out: *mut c_void, stride: u64, flags: u32);
    vkQueueSubmit(queue: vk::Queue, count: u32, submits: *const vk::SubmitInfo<'static>, fence: vk::Fence);
    vkQueueSubmit2(queue: vk::Queue, count: u32, submits: *const vk::SubmitInfo2<'static>, fence: vk::Fence);
    vkQueueWaitIdle(queue: vk::Queue);
    vkDeviceWaitIdle(device: vk::Device);
}

static ENUMERATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static PROPERTIES: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static PROPERTIES2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static ALLOCATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static FREE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static CREATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static SEMAPHORE_VALUE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static DESTROY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static DEVICE_FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The function that the loader gets for a name: an override, or the driver's own.
pub(crate) fn override_symbol(name: &CStr, driver: Function) -> Function {
    let name = name.to_str().unwrap_or_default();
    if settings::is_missing(name) {
        return None;
    }
    if let Some(own) = extensions::own_function(name) {
        // SAFETY: it has the type of the function with this name.
        return Some(unsafe { transmute::<*const c_void, unsafe extern "system" fn()>(own) });
    }
    let real = driver? as *mut c_void;
    // A function of a promoted extension has two names.
    let core = name.trim_end_matches("KHR");
    let own: (&AtomicPtr<c_void>, *const c_void) = match core {
        "vkEnumeratePhysicalDevices" => (&ENUMERATE, enumerate as *const c_void),
        "vkGetPhysicalDeviceProperties" => (&PROPERTIES, properties as *const c_void),
        "vkGetPhysicalDeviceProperties2" => (&PROPERTIES2, properties2 as *const c_void),
        "vkAllocateMemory" => (&ALLOCATE, allocate as *const c_void),
        "vkFreeMemory" => (&FREE, free as *const c_void),
        "vkCreateDevice" => (&CREATE, create as *const c_void),
        "vkGetSemaphoreCounterValue" => (&SEMAPHORE_VALUE, semaphore_value as *const c_void),
        "vkDestroyDevice" => (&DESTROY, destroy as *const c_void),
        "vkGetDeviceProcAddr" => (&DEVICE_FUNCTION, device_function as *const c_void),
        _ => {
            let groups = [
                pipeline_cache::override_symbol,
                discrete_device::override_symbol,
                extensions::override_symbol,
                queue_families::override_symbol,
                command_log::override_symbol,
            ];
            let other = || groups.into_iter().find_map(|override_symbol| override_symbol(core, real));
            let function = other().or_else(|| failing(core, real)).unwrap_or(real);
            // SAFETY: it has the type of the driver's function.
            return Some(unsafe { transmute::<*const c_void, unsafe extern "system" fn()>(function) });
        }
    };
    own.0.store(real, Ordering::Release);
    // SAFETY: as above.
    Some(unsafe { transmute::<*const c_void, unsafe extern "system" fn()>(own.1) })
}

unsafe extern "system" fn device_function(device: vk::Device, name: *const c_char) -> Function {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetDeviceProcAddr = unsafe { transmute(DEVICE_FUNCTION.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    let function = unsafe { real(device, name) };
    // SAFETY: names are null-terminated.
    override_symbol(unsafe { CStr::from_ptr(name) }, function)
}

unsafe extern "system" fn enumerate(
    instance: vk::Instance,
    count: *mut u32,
    out: *mut vk::PhysicalDevice,
) -> vk::Result {
    if let Some(code) = faults::injected("vkEnumeratePhysicalDevices") {
        return code;
    }
    if settings::number("devices") == Some(0) {
        // SAFETY: the caller's count is writable.
        unsafe { *count = 0 };
        return vk::Result::SUCCESS;
    }
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkEnumeratePhysicalDevices = unsafe { transmute(ENUMERATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(instance, count, out) }
}

/// The version that devices are to report.
fn api_version() -> Option<u32> {
    let (major, minor) = settings::value("api")?.split_once('.')?;
    Some(vk::make_api_version(0, major.parse().ok()?, minor.parse().ok()?, 0))
}

unsafe extern "system" fn properties(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties) {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceProperties =
        unsafe { transmute(PROPERTIES.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, out) };
    // SAFETY: the driver wrote it.
    override_properties(unsafe { &mut *out });
}

/// Overrides a device's properties.
fn override_properties(properties: &mut vk::PhysicalDeviceProperties) {
    properties.api_version = api_version().unwrap_or(properties.api_version);
    if discrete_device::is_enabled() {
        properties.device_type = vk::PhysicalDeviceType::DISCRETE_GPU;
    }
}

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'static>,
) {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceProperties2 =
        unsafe { transmute(PROPERTIES2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, out) };
    // SAFETY: the driver wrote it.
    override_properties(unsafe { &mut (*out).properties });
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'static>,
    allocator: Allocator,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    if let Some(code) = faults::injected("vkAllocateMemory") {
        return inject_failure(code);
    }
    // SAFETY: the caller's structure.
    if !faults::take_memory(unsafe { (*info).allocation_size }) {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    // SAFETY: the caller's structure.
    let mut info = unsafe { *info };
    if discrete_device::is_enabled() {
        info.memory_type_index = 0;
    }
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkAllocateMemory = unsafe { transmute(ALLOCATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    let code = unsafe { real(device, &raw const info, allocator, out) };
    // SAFETY: the driver wrote it, or left it as it was.
    SIZES.lock().unwrap_or_else(PoisonError::into_inner).push((unsafe { *out }, info.allocation_size));
    code
}

/// The memory that is allocated, with its size.
static SIZES: Mutex<Vec<(vk::DeviceMemory, u64)>> = Mutex::new(Vec::new());

unsafe extern "system" fn free(device: vk::Device, memory: vk::DeviceMemory, allocator: Allocator) {
    let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = sizes.iter().position(|(own, _)| *own == memory) {
        faults::give_memory(sizes.swap_remove(at).1);
    }
    drop(sizes);
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkFreeMemory = unsafe { transmute(FREE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, memory, allocator) };
}

unsafe extern "system" fn create(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'static>,
    allocator: Allocator,
    out: *mut vk::Device,
) -> vk::Result {
    if let Some(code) = faults::injected("vkCreateDevice") {
        return code;
    }
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCreateDevice = unsafe { transmute(CREATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's structure.
    let mut info = unsafe { *info };
    // SAFETY: as above, with its chain.
    let extensions = unsafe { extensions::strip(&mut info) };
    let real_queue = vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0]);
    queue_families::use_real_queue(&mut info, &real_queue);
    let info = info.enabled_extension_names(&extensions);
    // SAFETY: the caller's arguments without the structures that the driver does not support.
    let code = unsafe { real(physical, &raw const info, allocator, out) };
    if code == vk::Result::SUCCESS {
        // SAFETY: the driver wrote it.
        DEVICES.lock().unwrap_or_else(PoisonError::into_inner).push(unsafe { *out });
    }
    code
}

/// Overrides a semaphore's value: on a lost device, some drivers return the largest one and no error.
unsafe extern "system" fn semaphore_value(
    device: vk::Device,
    semaphore: vk::Semaphore,
    out: *mut u64,
) -> vk::Result {
    static QUERIES: AtomicU64 = AtomicU64::new(0);
    if let Some(code) = faults::injected("vkGetSemaphoreCounterValue") {
        return inject_failure(code);
    }
    if settings::number("overflow").is_some_and(|first| QUERIES.fetch_add(1, Ordering::AcqRel) + 1 >= first) {
        // SAFETY: the caller's.
        unsafe { *out = u64::MAX };
        return vk::Result::SUCCESS;
    }
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetSemaphoreCounterValue =
        unsafe { transmute(SEMAPHORE_VALUE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, semaphore, out) }
}

unsafe extern "system" fn destroy(device: vk::Device, allocator: Allocator) {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| *open != device);
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkDestroyDevice = unsafe { transmute(DESTROY.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, allocator) };
}
