//! A cache of compiled code that holds something, whatever the driver's own does: the word `cache` is `empty` where
//! nothing may be offered to it, `given` where it must be what it gave, and `any` where it may be either.

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

use ash::vk;

use crate::faults;

/// What the cache holds.
const DATA: [u8; 100] = [0x5a; 100];

static CREATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The function that stands before the driver's, if the cache is asked for.
pub(crate) fn instead_of(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    faults::word("cache")?;
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
    let offered = match info.initial_data_size {
        0 => &[],
        // SAFETY: as many bytes lie there.
        bytes => unsafe { std::slice::from_raw_parts(info.p_initial_data.cast::<u8>(), bytes) },
    };
    let fits = match faults::word("cache") {
        Some("given") => offered == DATA,
        Some("any") => offered.is_empty() || offered == DATA,
        _ => offered.is_empty(),
    };
    if !fits {
        return vk::Result::ERROR_UNKNOWN;
    }
    info.initial_data_size = 0;
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkCreatePipelineCache = unsafe { transmute(CREATE.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, but for data that are not the driver's.
    unsafe { real(device, &raw const info, allocator, out) }
}

unsafe extern "system" fn data(
    _device: vk::Device,
    _cache: vk::PipelineCache,
    bytes: *mut usize,
    out: *mut c_void,
) -> vk::Result {
    if !out.is_null() {
        // SAFETY: the caller has asked how many bytes there are, and has room for them.
        unsafe { DATA.as_ptr().copy_to_nonoverlapping(out.cast(), DATA.len()) };
    }
    // SAFETY: the caller's.
    unsafe { *bytes = DATA.len() };
    vk::Result::SUCCESS
}
