//! A pipeline cache that always has data behind the driver's own header, with the setting `cache`: `empty` accepts no initial
//! data, `saved` only the data that it returned before, `any` both, and `none` fails.

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;

use crate::settings;

/// Size of the header of a pipeline cache (`VkPipelineCacheHeaderVersionOne`).
const HEADER_BYTES: usize = 32;
/// The data behind the header.
const DATA: [u8; 68] = [0x5a; 68];

static CREATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static GET_DATA: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The override of a function, if the setting asks for one.
pub(crate) fn override_symbol(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    settings::value("cache")?;
    match name {
        "vkCreatePipelineCache" => {
            CREATE.store(driver, Ordering::Release);
            Some(create as *const c_void)
        }
        "vkGetPipelineCacheData" => {
            GET_DATA.store(driver, Ordering::Release);
            Some(data as *const c_void)
        }
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
    let is_saved = initial_data.len() == HEADER_BYTES + DATA.len() && initial_data[HEADER_BYTES..] == DATA;
    let fits = match settings::value("cache") {
        Some("saved") => is_saved,
        Some("none") => false,
        Some("any") => initial_data.is_empty() || is_saved,
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
    device: vk::Device,
    cache: vk::PipelineCache,
    bytes: *mut usize,
    out: *mut c_void,
) -> vk::Result {
    if !out.is_null() {
        let mut header_bytes = HEADER_BYTES;
        // SAFETY: stored before this override was returned.
        let real: vk::PFN_vkGetPipelineCacheData = unsafe { transmute(GET_DATA.load(Ordering::Acquire)) };
        // SAFETY: the caller's cache, and room for the header.
        let _ = unsafe { real(device, cache, &raw mut header_bytes, out) };
        // SAFETY: the caller queried the size, and has room for it.
        unsafe {
            DATA.as_ptr().copy_to_nonoverlapping(out.cast::<u8>().wrapping_add(HEADER_BYTES), DATA.len());
        };
    }
    // SAFETY: the caller's.
    unsafe { *bytes = HEADER_BYTES + DATA.len() };
    vk::Result::SUCCESS
}
