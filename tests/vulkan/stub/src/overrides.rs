//! The functions that stand before those of the real driver.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ash::vk;

use crate::{Allocator, Function, cache, discrete, extras, families, faults, orders};

/// Makes functions that fail when they are told to, and else call the driver's function of their name.
macro_rules! failing {
    ($($function:ident($($arg:ident: $ty:ty),*);)*) => {
        $(unsafe extern "system" fn $function($($arg: $ty),*) -> vk::Result {
            if let Some(code) = faults::of(stringify!($function)) {
                return spoiled(code);
            }
            let real = real::$function.load(Ordering::Acquire);
            // SAFETY: the driver's function of this name has this type, and was noted before this one was given out.
            let real: unsafe extern "system" fn($($ty),*) -> vk::Result = unsafe { transmute(real) };
            // SAFETY: the caller's arguments, passed on.
            unsafe { real($($arg),*) }
        })*

        /// The driver's own.
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

/// The devices that are open.
static DEVICES: Mutex<Vec<vk::Device>> = Mutex::new(Vec::new());

/// What a function says instead of the driver: that a device is lost only when the driver has nothing left to do.
pub(crate) fn spoiled(code: vk::Result) -> vk::Result {
    let real = real::vkDeviceWaitIdle.load(Ordering::Acquire);
    if code != vk::Result::ERROR_DEVICE_LOST || real.is_null() {
        return code;
    }
    // SAFETY: the driver's function of this name has this type.
    let wait: vk::PFN_vkDeviceWaitIdle = unsafe { transmute(real) };
    for device in DEVICES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        // SAFETY: the device is open: it is struck off before it is destroyed.
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
static CREATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static STANDS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static DESTROY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static DEVICE_FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// What the loader gets for a function of the driver.
pub(crate) fn instead_of(name: &CStr, driver: Function) -> Function {
    let name = name.to_str().unwrap_or_default();
    if faults::lacks(name) {
        return None;
    }
    if let Some(own) = extras::beside(name) {
        // SAFETY: it has the type that Vulkan gives to the name.
        return Some(unsafe { transmute::<*const c_void, unsafe extern "system" fn()>(own) });
    }
    let real = driver? as *mut c_void;
    // The same function has two names where an extension became a part of Vulkan.
    let core = name.trim_end_matches("KHR");
    let whole: (&AtomicPtr<c_void>, *const c_void) = match core {
        "vkEnumeratePhysicalDevices" => (&ENUMERATE, enumerate as *const c_void),
        "vkGetPhysicalDeviceProperties" => (&PROPERTIES, properties as *const c_void),
        "vkGetPhysicalDeviceProperties2" => (&PROPERTIES2, properties2 as *const c_void),
        "vkAllocateMemory" => (&ALLOCATE, allocate as *const c_void),
        "vkCreateDevice" => (&CREATE, create as *const c_void),
        "vkGetSemaphoreCounterValue" => (&STANDS, stands as *const c_void),
        "vkDestroyDevice" => (&DESTROY, destroy as *const c_void),
        "vkGetDeviceProcAddr" => (&DEVICE_FUNCTION, device_function as *const c_void),
        _ => {
            let ways = [
                cache::instead_of,
                discrete::instead_of,
                extras::instead_of,
                families::instead_of,
                orders::instead_of,
            ];
            let other = || ways.into_iter().find_map(|instead_of| instead_of(core, real));
            let spoiled = other().or_else(|| failing(core, real)).unwrap_or(real);
            // SAFETY: it has the type of the driver's function.
            return Some(unsafe { transmute::<*const c_void, unsafe extern "system" fn()>(spoiled) });
        }
    };
    whole.0.store(real, Ordering::Release);
    // SAFETY: as above.
    Some(unsafe { transmute::<*const c_void, unsafe extern "system" fn()>(whole.1) })
}

unsafe extern "system" fn device_function(device: vk::Device, name: *const c_char) -> Function {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetDeviceProcAddr = unsafe { transmute(DEVICE_FUNCTION.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    let function = unsafe { real(device, name) };
    // SAFETY: names are terminated.
    instead_of(unsafe { CStr::from_ptr(name) }, function)
}

unsafe extern "system" fn enumerate(
    instance: vk::Instance,
    count: *mut u32,
    out: *mut vk::PhysicalDevice,
) -> vk::Result {
    if let Some(code) = faults::of("vkEnumeratePhysicalDevices") {
        return code;
    }
    if faults::number("devices") == Some(0) {
        // SAFETY: the caller's count is writable.
        unsafe { *count = 0 };
        return vk::Result::SUCCESS;
    }
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkEnumeratePhysicalDevices = unsafe { transmute(ENUMERATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(instance, count, out) }
}

/// The version that devices are said to have.
fn version() -> Option<u32> {
    let (major, minor) = faults::word("api")?.split_once('.')?;
    Some(vk::make_api_version(0, major.parse().ok()?, minor.parse().ok()?, 0))
}

unsafe extern "system" fn properties(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceProperties =
        unsafe { transmute(PROPERTIES.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, out) };
    // SAFETY: the driver has written it.
    told(unsafe { &mut *out });
}

/// What is said of a device.
fn told(properties: &mut vk::PhysicalDeviceProperties) {
    properties.api_version = version().unwrap_or(properties.api_version);
    if discrete::is_wanted() {
        properties.device_type = vk::PhysicalDeviceType::DISCRETE_GPU;
    }
}

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'static>,
) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceProperties2 =
        unsafe { transmute(PROPERTIES2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, out) };
    // SAFETY: the driver has written it.
    told(unsafe { &mut (*out).properties });
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'static>,
    allocator: Allocator,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    if let Some(code) = faults::of("vkAllocateMemory") {
        return spoiled(code);
    }
    // SAFETY: the caller's structure.
    if !faults::take(unsafe { (*info).allocation_size }) {
        return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    }
    // SAFETY: the caller's structure.
    let mut info = unsafe { *info };
    if discrete::is_wanted() {
        info.memory_type_index = 0;
    }
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkAllocateMemory = unsafe { transmute(ALLOCATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, &raw const info, allocator, out) }
}

unsafe extern "system" fn create(
    physical: vk::PhysicalDevice,
    info: *const vk::DeviceCreateInfo<'static>,
    allocator: Allocator,
    out: *mut vk::Device,
) -> vk::Result {
    if let Some(code) = faults::of("vkCreateDevice") {
        return code;
    }
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkCreateDevice = unsafe { transmute(CREATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's structure.
    let mut info = unsafe { *info };
    // SAFETY: as above, and the chain behind it.
    let extensions = unsafe { extras::strip(&mut info) };
    let only = vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0]);
    families::merge(&mut info, &only);
    let info = info.enabled_extension_names(&extensions);
    // SAFETY: the caller's arguments, but for what the driver does not know.
    let code = unsafe { real(physical, &raw const info, allocator, out) };
    if code == vk::Result::SUCCESS {
        // SAFETY: the driver has written it.
        DEVICES.lock().unwrap_or_else(PoisonError::into_inner).push(unsafe { *out });
    }
    code
}

/// Where a semaphore stands: on a lost device some drivers say that it stands at its end.
unsafe extern "system" fn stands(device: vk::Device, semaphore: vk::Semaphore, out: *mut u64) -> vk::Result {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    if let Some(code) = faults::of("vkGetSemaphoreCounterValue") {
        return spoiled(code);
    }
    if faults::number("stands").is_some_and(|first| LOOKS.fetch_add(1, Ordering::AcqRel) + 1 >= first) {
        // SAFETY: the caller's.
        unsafe { *out = u64::MAX };
        return vk::Result::SUCCESS;
    }
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetSemaphoreCounterValue = unsafe { transmute(STANDS.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, semaphore, out) }
}

unsafe extern "system" fn destroy(device: vk::Device, allocator: Allocator) {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| *open != device);
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkDestroyDevice = unsafe { transmute(DESTROY.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, allocator) };
}
