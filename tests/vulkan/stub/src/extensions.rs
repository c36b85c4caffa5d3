//! Extensions that no driver of these tests has, with the word `extras`: what a device says of a fault and of its memory,
//! what a compiler says of a kernel, the shapes of cooperative matrices, and pipelines that say what the device checks. The
//! driver behind hears nothing of them.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::{ext, khr, vk};

use crate::{faults, spoiled};

const NAMES: [&CStr; 5] = [
    ext::device_fault::NAME,
    ext::memory_budget::NAME,
    khr::pipeline_executable_properties::NAME,
    khr::cooperative_matrix::NAME,
    ext::pipeline_robustness::NAME,
];
/// What their features are turned on by.
const FEATURES: [vk::StructureType; 4] = [
    vk::StructureType::PHYSICAL_DEVICE_FAULT_FEATURES_EXT,
    vk::StructureType::PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
    vk::StructureType::PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
    vk::StructureType::PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT,
];

static EXTENSIONS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static FEATURES2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static MEMORY2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static PIPELINES: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

fn are_wanted() -> bool {
    faults::word("extras").is_some()
}

/// The function that stands before the driver's, if it is wanted.
pub(crate) fn instead_of(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    let (place, function) = match name {
        _ if !are_wanted() => return None,
        "vkEnumerateDeviceExtensionProperties" => (&EXTENSIONS, extensions as *const c_void),
        "vkGetPhysicalDeviceFeatures2" => (&FEATURES2, features as *const c_void),
        "vkGetPhysicalDeviceMemoryProperties2" => (&MEMORY2, memory as *const c_void),
        "vkCreateComputePipelines" => (&PIPELINES, pipelines as *const c_void),
        _ => return None,
    };
    place.store(driver, Ordering::Release);
    Some(function)
}

/// A function that the driver does not have.
pub(crate) fn beside(name: &str) -> Option<*const c_void> {
    match name {
        _ if !are_wanted() => None,
        "vkGetDeviceFaultInfoEXT" => Some(fault as *const c_void),
        "vkGetPipelineExecutableStatisticsKHR" => Some(statistics as *const c_void),
        "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR" => Some(matrices as *const c_void),
        _ => None,
    }
}

/// Takes what the driver does not know out of a device's description; gives the extensions that are left.
///
/// # Safety
/// The description is whole, and its chain is the caller's.
pub(crate) unsafe fn strip(info: &mut vk::DeviceCreateInfo<'_>) -> Vec<*const c_char> {
    let mut last: *mut vk::BaseOutStructure<'_> = std::ptr::from_mut(info).cast();
    loop {
        // SAFETY: every structure of a chain begins like this one.
        let next = unsafe { (*last).p_next };
        // SAFETY: as above.
        let Some(next) = (unsafe { next.as_mut() }) else { break };
        if are_wanted() && FEATURES.contains(&next.s_type) {
            // SAFETY: as above.
            unsafe { (*last).p_next = next.p_next };
        } else {
            last = next;
        }
    }
    let asked = match info.enabled_extension_count {
        0 => &[],
        // SAFETY: as many names lie there.
        count => unsafe { std::slice::from_raw_parts(info.pp_enabled_extension_names, count as usize) },
    };
    // SAFETY: names are terminated.
    let is_own = |name: &*const c_char| are_wanted() && NAMES.contains(&unsafe { CStr::from_ptr(*name) });
    asked.iter().copied().filter(|name| !is_own(name)).collect()
}

/// Answers as Vulkan's lists are asked for: how many there are, or as many as the caller has room for.
///
/// # Safety
/// The count is writable; where there is a list, so are as many elements of it.
pub(crate) unsafe fn list<T: Copy>(all: &[T], count: *mut u32, out: *mut T) -> vk::Result {
    let whole = u32::try_from(all.len()).unwrap_or(u32::MAX);
    // SAFETY: the caller's promise.
    let room = if out.is_null() { whole } else { whole.min(unsafe { *count }) };
    if !out.is_null() {
        // SAFETY: as above.
        unsafe { all.as_ptr().copy_to_nonoverlapping(out, room as usize) };
    }
    // SAFETY: as above.
    unsafe { *count = room };
    if room < whole { vk::Result::INCOMPLETE } else { vk::Result::SUCCESS }
}

fn put(out: &mut [c_char], text: &CStr) {
    let bytes = text.to_bytes_with_nul().iter().map(|byte| c_char::from_ne_bytes([*byte]));
    out.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
}

unsafe extern "system" fn extensions(
    device: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    if let Some(code) = faults::of("vkEnumerateDeviceExtensionProperties") {
        return code;
    }
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkEnumerateDeviceExtensionProperties =
        unsafe { transmute(EXTENSIONS.load(Ordering::Acquire)) };
    let mut known = 0;
    // SAFETY: the caller's arguments, to ask how many there are.
    let code = unsafe { real(device, layer, &raw mut known, std::ptr::null_mut()) };
    let mut all = vec![vk::ExtensionProperties::default(); known as usize];
    let code = match code {
        // SAFETY: as above, with room for all.
        vk::Result::SUCCESS => unsafe { real(device, layer, &raw mut known, all.as_mut_ptr()) },
        other => other,
    };
    if code != vk::Result::SUCCESS {
        return code;
    }
    all.extend(NAMES.map(|name| {
        let mut extension = vk::ExtensionProperties { spec_version: 1, ..Default::default() };
        put(&mut extension.extension_name, name);
        extension
    }));
    // SAFETY: the caller's.
    unsafe { list(&all, count, out) }
}

unsafe extern "system" fn features(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures2<'static>,
) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceFeatures2 = unsafe { transmute(FEATURES2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, out) };
    let mut next: *mut vk::BaseOutStructure<'_> = out.cast();
    // SAFETY: every structure of a chain begins like this one.
    while let Some(one) = unsafe { next.as_mut() } {
        if FEATURES.contains(&one.s_type) {
            // Each of them has one flag before others, behind the part that all structures have.
            let flag: *mut vk::Bool32 = std::ptr::from_mut(one).wrapping_add(1).cast();
            // SAFETY: as above.
            unsafe { *flag = vk::TRUE };
        }
        next = one.p_next;
    }
}

unsafe extern "system" fn memory(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'static>,
) {
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceMemoryProperties2 =
        unsafe { transmute(MEMORY2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on.
    unsafe { real(device, out) };
    let mut next: *mut vk::BaseOutStructure<'_> = out.cast();
    // SAFETY: every structure of a chain begins like this one.
    while let Some(one) = unsafe { next.as_mut() } {
        next = one.p_next;
        if one.s_type == vk::StructureType::PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT {
            let budget: *mut vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_> = std::ptr::from_mut(one).cast();
            // SAFETY: its type says so.
            let budget = unsafe { &mut *budget };
            (budget.heap_budget[0], budget.heap_usage[0]) = (1 << 30, 1 << 20);
        }
    }
}

/// Refuses a pipeline that does not say that the device checks nothing.
unsafe extern "system" fn pipelines(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'static>,
    allocator: *const vk::AllocationCallbacks<'static>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    if let Some(code) = faults::of("vkCreateComputePipelines") {
        return spoiled::spoiled(code);
    }
    // SAFETY: the caller has as many.
    let infos = unsafe { std::slice::from_raw_parts(infos, count as usize) };
    let mut plain = Vec::new();
    for info in infos {
        let told: *const vk::PipelineRobustnessCreateInfoEXT<'_> = info.p_next.cast();
        // SAFETY: null, or a structure that begins as all of a chain do.
        let told = unsafe { told.as_ref() };
        let told = told.filter(|told| told.s_type == vk::StructureType::PIPELINE_ROBUSTNESS_CREATE_INFO_EXT);
        let unchecked = vk::PipelineRobustnessBufferBehaviorEXT::DISABLED;
        if told.is_none_or(|told| told.storage_buffers != unchecked) {
            return vk::Result::ERROR_UNKNOWN;
        }
        plain.push(vk::ComputePipelineCreateInfo { p_next: std::ptr::null(), ..*info });
    }
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkCreateComputePipelines = unsafe { transmute(PIPELINES.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, passed on, but for what the driver does not know.
    unsafe { real(device, cache, count, plain.as_ptr(), allocator, out) }
}

unsafe extern "system" fn fault(
    _device: vk::Device,
    counts: *mut vk::DeviceFaultCountsEXT<'static>,
    info: *mut vk::DeviceFaultInfoEXT<'static>,
) -> vk::Result {
    // SAFETY: the caller's, writable.
    let counts = unsafe { &mut *counts };
    (counts.address_info_count, counts.vendor_info_count, counts.vendor_binary_size) = (1, 1, 0);
    // SAFETY: null, or the caller's.
    let Some(info) = (unsafe { info.as_mut() }) else { return vk::Result::SUCCESS };
    put(&mut info.description, c"a fault of the stub's own");
    let address = vk::DeviceFaultAddressInfoEXT {
        address_type: vk::DeviceFaultAddressTypeEXT::READ_INVALID,
        reported_address: 0x1234_5000,
        address_precision: 4096,
    };
    // SAFETY: the caller has room for as many as it was told.
    unsafe { *info.p_address_infos = address };
    let mut vendor = vk::DeviceFaultVendorInfoEXT::default();
    put(&mut vendor.description, c"in a kernel of nobody's");
    // SAFETY: as above.
    unsafe { *info.p_vendor_infos = vendor };
    vk::Result::SUCCESS
}

unsafe extern "system" fn statistics(
    _device: vk::Device,
    _info: *const vk::PipelineExecutableInfoKHR<'static>,
    count: *mut u32,
    out: *mut vk::PipelineExecutableStatisticKHR<'static>,
) -> vk::Result {
    let figures = [(c"Code Size", 4096), (c"Register Count", 40), (c"Spilled Bytes", 16)];
    let all = figures.map(|(name, value)| {
        let mut statistic = vk::PipelineExecutableStatisticKHR {
            format: vk::PipelineExecutableStatisticFormatKHR::UINT64,
            value: vk::PipelineExecutableStatisticValueKHR { u64: value },
            ..Default::default()
        };
        put(&mut statistic.name, name);
        statistic
    });
    // SAFETY: the caller's.
    unsafe { list(&all, count, out) }
}

unsafe extern "system" fn matrices(
    _device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::CooperativeMatrixPropertiesKHR<'static>,
) -> vk::Result {
    let shape = vk::CooperativeMatrixPropertiesKHR::default().m_size(16).n_size(8).k_size(32);
    let (half, single) = (vk::ComponentTypeKHR::FLOAT16, vk::ComponentTypeKHR::FLOAT32);
    let shape = shape.a_type(half).b_type(half).c_type(single).result_type(single);
    // SAFETY: the caller's.
    unsafe { list(&[shape], count, out) }
}
