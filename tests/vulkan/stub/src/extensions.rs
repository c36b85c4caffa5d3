//! Extensions that the installed drivers lack, with the setting `extensions`: fault reports, a memory budget, compiler
//! statistics, cooperative matrices and pipeline robustness. The driver behind does not see them.

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::{ext, khr, vk};

use crate::{faults, overrides, settings};

const NAMES: [&CStr; 5] = [
    ext::device_fault::NAME,
    ext::memory_budget::NAME,
    khr::pipeline_executable_properties::NAME,
    khr::cooperative_matrix::NAME,
    ext::pipeline_robustness::NAME,
];
/// The structures that enable their features.
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

fn is_enabled() -> bool {
    settings::value("extensions").is_some()
}

/// The override of a function, if the setting asks for one.
pub(crate) fn override_symbol(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    let (driver_fn, function) = match name {
        _ if !is_enabled() => return None,
        "vkEnumerateDeviceExtensionProperties" => (&EXTENSIONS, extensions as *const c_void),
        "vkGetPhysicalDeviceFeatures2" => (&FEATURES2, features as *const c_void),
        "vkGetPhysicalDeviceMemoryProperties2" => (&MEMORY2, memory as *const c_void),
        "vkCreateComputePipelines" => (&PIPELINES, pipelines as *const c_void),
        _ => return None,
    };
    driver_fn.store(driver, Ordering::Release);
    Some(function)
}

/// A function of these extensions.
pub(crate) fn own_function(name: &str) -> Option<*const c_void> {
    match name {
        _ if !is_enabled() => None,
        "vkGetDeviceFaultInfoEXT" => Some(fault as *const c_void),
        "vkGetPipelineExecutableStatisticsKHR" => Some(statistics as *const c_void),
        "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR" => Some(matrices as *const c_void),
        _ => None,
    }
}

/// Removes these extensions from a device's create info: their features in place; returns the other extensions.
///
/// # Safety
/// The create info and its chain are valid and writable.
pub(crate) unsafe fn strip(info: &mut vk::DeviceCreateInfo<'_>) -> Vec<*const c_char> {
    let mut last: *mut vk::BaseOutStructure<'_> = std::ptr::from_mut(info).cast();
    loop {
        // SAFETY: every structure of a chain begins with these fields.
        let next = unsafe { (*last).p_next };
        // SAFETY: as above.
        let Some(next) = (unsafe { next.as_mut() }) else { break };
        if is_enabled() && FEATURES.contains(&next.s_type) {
            // SAFETY: as above.
            unsafe { (*last).p_next = next.p_next };
        } else {
            last = next;
        }
    }
    let enabled = match info.enabled_extension_count {
        0 => &[],
        // SAFETY: the array has as many names.
        count => unsafe { std::slice::from_raw_parts(info.pp_enabled_extension_names, count as usize) },
    };
    // SAFETY: names are null-terminated.
    let is_own = |name: &*const c_char| is_enabled() && NAMES.contains(&unsafe { CStr::from_ptr(*name) });
    enabled.iter().copied().filter(|name| !is_own(name)).collect()
}

/// Writes a list by Vulkan's convention: its length, or as many elements as the caller has room for.
///
/// # Safety
/// `count` is writable and, unless `out` is null, so are as many elements of `out`.
pub(crate) unsafe fn write_list<T: Copy>(all: &[T], count: *mut u32, out: *mut T) -> vk::Result {
    let length = u32::try_from(all.len()).unwrap_or(u32::MAX);
    // SAFETY: guaranteed by the caller.
    let room = if out.is_null() { length } else { length.min(unsafe { *count }) };
    if !out.is_null() {
        // SAFETY: as above.
        unsafe { all.as_ptr().copy_to_nonoverlapping(out, room as usize) };
    }
    // SAFETY: as above.
    unsafe { *count = room };
    if room < length { vk::Result::INCOMPLETE } else { vk::Result::SUCCESS }
}

fn write_text(out: &mut [c_char], text: &CStr) {
    let bytes = text.to_bytes_with_nul().iter().map(|byte| c_char::from_ne_bytes([*byte]));
    out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
}

unsafe extern "system" fn extensions(
    device: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    if let Some(code) = faults::injected("vkEnumerateDeviceExtensionProperties") {
        return code;
    }
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkEnumerateDeviceExtensionProperties =
        unsafe { transmute(EXTENSIONS.load(Ordering::Acquire)) };
    let mut known = 0;
    // SAFETY: the caller's arguments; queries the count.
    let code = unsafe { real(device, layer, &raw mut known, std::ptr::null_mut()) };
    let mut all = vec![vk::ExtensionProperties::default(); known as usize];
    let code = match code {
        // SAFETY: as above, with room for the count.
        vk::Result::SUCCESS => unsafe { real(device, layer, &raw mut known, all.as_mut_ptr()) },
        other => other,
    };
    if code != vk::Result::SUCCESS {
        return code;
    }
    all.extend(NAMES.map(|name| {
        let mut extension = vk::ExtensionProperties { spec_version: 1, ..Default::default() };
        write_text(&mut extension.extension_name, name);
        extension
    }));
    // SAFETY: the caller's.
    unsafe { write_list(&all, count, out) }
}

unsafe extern "system" fn features(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceFeatures2<'static>,
) {
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceFeatures2 = unsafe { transmute(FEATURES2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, out) };
    let mut next: *mut vk::BaseOutStructure<'_> = out.cast();
    // SAFETY: every structure of a chain begins with these fields.
    while let Some(one) = unsafe { next.as_mut() } {
        if FEATURES.contains(&one.s_type) {
            // The flag is the first field behind the header that all structures share.
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
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceMemoryProperties2 =
        unsafe { transmute(MEMORY2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, forwarded.
    unsafe { real(device, out) };
    let mut next: *mut vk::BaseOutStructure<'_> = out.cast();
    // SAFETY: every structure of a chain begins with these fields.
    while let Some(one) = unsafe { next.as_mut() } {
        next = one.p_next;
        if one.s_type == vk::StructureType::PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT {
            let budget: *mut vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_> = std::ptr::from_mut(one).cast();
            // SAFETY: its `s_type` says so.
            let budget = unsafe { &mut *budget };
            (budget.heap_budget[0], budget.heap_usage[0]) = (1 << 30, 1 << 20);
        }
    }
}

/// Rejects a pipeline that does not disable robustness.
unsafe extern "system" fn pipelines(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    infos: *const vk::ComputePipelineCreateInfo<'static>,
    allocator: *const vk::AllocationCallbacks<'static>,
    out: *mut vk::Pipeline,
) -> vk::Result {
    if let Some(code) = faults::injected("vkCreateComputePipelines") {
        return overrides::inject_failure(code);
    }
    // SAFETY: the caller's array has as many.
    let infos = unsafe { std::slice::from_raw_parts(infos, count as usize) };
    let mut plain = Vec::new();
    for info in infos {
        let robustness: *const vk::PipelineRobustnessCreateInfoEXT<'_> = info.p_next.cast();
        // SAFETY: null, or a structure of a chain.
        let robustness = unsafe { robustness.as_ref() };
        let robustness = robustness
            .filter(|robustness| robustness.s_type == vk::StructureType::PIPELINE_ROBUSTNESS_CREATE_INFO_EXT);
        let disabled = vk::PipelineRobustnessBufferBehaviorEXT::DISABLED;
        if robustness.is_none_or(|robustness| robustness.storage_buffers != disabled) {
            return vk::Result::ERROR_UNKNOWN;
        }
        plain.push(vk::ComputePipelineCreateInfo { p_next: std::ptr::null(), ..*info });
    }
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCreateComputePipelines = unsafe { transmute(PIPELINES.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments without the structure that the driver does not support.
    unsafe { real(device, cache, count, plain.as_ptr(), allocator, out) }
}

unsafe extern "system" fn fault(
    _device: vk::Device,
    counts: *mut vk::DeviceFaultCountsEXT<'static>,
    info: *mut vk::DeviceFaultInfoEXT<'static>,
) -> vk::Result {
    // SAFETY: writable by the caller's contract.
    let counts = unsafe { &mut *counts };
    (counts.address_info_count, counts.vendor_info_count, counts.vendor_binary_size) = (1, 1, 0);
    // SAFETY: null, or the caller's.
    let Some(info) = (unsafe { info.as_mut() }) else { return vk::Result::SUCCESS };
    write_text(&mut info.description, c"a fault injected by the stub");
    let address = vk::DeviceFaultAddressInfoEXT {
        address_type: vk::DeviceFaultAddressTypeEXT::READ_INVALID,
        reported_address: 0x1234_5000,
        address_precision: 4096,
    };
    // SAFETY: the caller has room for the reported count.
    unsafe { *info.p_address_infos = address };
    let mut vendor = vk::DeviceFaultVendorInfoEXT::default();
    write_text(&mut vendor.description, c"in no kernel");
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
    let statistics = [(c"Code Size", 4096), (c"Register Count", 40), (c"Spilled Bytes", 16)];
    let all = statistics.map(|(name, value)| {
        let mut statistic = vk::PipelineExecutableStatisticKHR {
            format: vk::PipelineExecutableStatisticFormatKHR::UINT64,
            value: vk::PipelineExecutableStatisticValueKHR { u64: value },
            ..Default::default()
        };
        write_text(&mut statistic.name, name);
        statistic
    });
    // SAFETY: the caller's.
    unsafe { write_list(&all, count, out) }
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
    unsafe { write_list(&[shape], count, out) }
}
