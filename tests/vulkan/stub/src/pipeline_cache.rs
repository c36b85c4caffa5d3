//! A pipeline cache that always has data, with the setting `cache`: `empty` accepts no initial data, `saved` only the data that
//! it returned before, and `any` both.

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;

use crate::settings;

/// The data of the cache.
const DATA: [u8; 100] = [0x5a; 100];

static CREATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The override of a function, if the setting asks for one.
pub(crate) fn override_symbol(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    settings::value("cache")?;
    match name {
        "vkCreatePipelineCache" => {
            CREATE.store(driver, Ordering::Release);
            Some(create as *const c_void)
        }
        "vkGetPipelineCacheData" => Some(data as *const c_void),
        _ => None,
    }
}

unsafe extern "system" fn create(
    device: vk::Device,
    info: *const vk::PipelineCacheCreateInfo<'static>,
    allocator: *const vk::AllocationCallbacks<'static>,
    out: *mut vk::PipelineCache,
) -> vk::Result {
    // SAFETY: the caller's structure.
    let mut info = unsafe { *info };
    let initial_data = match info.initial_data_size {
        0 => &[],
        // SAFETY: the array has as many bytes.
        bytes => unsafe { std::slice::from_raw_parts(info.p_initial_data.cast::<u8>(), bytes) },
    };
    let fits = match settings::value("cache") {
        Some("saved") => initial_data == DATA,
        Some("any") => initial_data.is_empty() || initial_data == DATA,
        _ => initial_data.is_empty(),
    };
    if !fits {
        return vk::Result::ERROR_UNKNOWN;
    }
    info.initial_data_size = 0;
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCreatePipelineCache = unsafe { transmute(CREATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, without initial data, which are not the driver's.
    unsafe { real(device, &raw const info, allocator, out) }
}

unsafe extern "system" fn data(
    _device: vk::Device,
    _cache: vk::PipelineCache,
    bytes: *mut usize,
    out: *mut c_void,
) -> vk::Result {
    if !out.is_null() {
        // SAFETY: the caller queried the size, and has room for it.
        unsafe { DATA.as_ptr().copy_to_nonoverlapping(out.cast(), DATA.len()) };
    }
    // SAFETY: the caller's.
    unsafe { *bytes = DATA.len() };
    vk::Result::SUCCESS
}
