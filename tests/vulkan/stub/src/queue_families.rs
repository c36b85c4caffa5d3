//! Three queue families, with the setting `queue_families`: a universal queue, two compute queues, and a transfer queue. All
//! of them are the driver's only queue, which is locked for each call.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use ash::vk;
use vk::Handle;

use crate::{Allocator, extensions, faults, overrides, settings, wait_log};

const FAMILIES: [(vk::QueueFlags, u32); 3] = [
    (
        vk::QueueFlags::from_raw(
            vk::QueueFlags::GRAPHICS.as_raw()
                | vk::QueueFlags::COMPUTE.as_raw()
                | vk::QueueFlags::TRANSFER.as_raw(),
        ),
        1,
    ),
    (vk::QueueFlags::from_raw(vk::QueueFlags::COMPUTE.as_raw() | vk::QueueFlags::TRANSFER.as_raw()), 2),
    (vk::QueueFlags::TRANSFER, 1),
];
/// What the loader expects in a dispatchable object's first word, before it stores its own (`ICD_LOADER_MAGIC`).
const LOADER_MAGIC: usize = 0x01CD_C0DE;

/// A device, a family, and an index in it.
type QueueKey = (u64, u32, u32);

/// A dispatchable queue handle.
#[repr(C)]
struct Queue {
    loader_word: usize,
    real: vk::Queue,
}

static PROPERTIES: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static PROPERTIES2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static POOL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static QUEUE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static SUBMIT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static SUBMIT2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static IDLE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// Locked while the driver's queue is used.
static QUEUE_LOCK: Mutex<()> = Mutex::new(());
/// The queues returned so far.
static QUEUES: Mutex<BTreeMap<QueueKey, usize>> = Mutex::new(BTreeMap::new());

fn is_enabled() -> bool {
    settings::value("queue_families").is_some()
}

/// The override of a function, if the setting asks for one.
pub(crate) fn override_symbol(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    let (driver_fn, function) = match name {
        _ if !is_enabled() => return None,
        "vkGetPhysicalDeviceQueueFamilyProperties" => (&PROPERTIES, properties as *const c_void),
        "vkGetPhysicalDeviceQueueFamilyProperties2" => (&PROPERTIES2, properties2 as *const c_void),
        "vkCreateCommandPool" => (&POOL, pool as *const c_void),
        "vkGetDeviceQueue" => (&QUEUE, queue as *const c_void),
        "vkQueueSubmit" => (&SUBMIT, submit as *const c_void),
        "vkQueueSubmit2" => (&SUBMIT2, submit2 as *const c_void),
        "vkQueueWaitIdle" => (&IDLE, idle as *const c_void),
        _ => return None,
    };
    driver_fn.store(driver, Ordering::Release);
    Some(function)
}

/// Makes a device use the driver's only queue, whichever it requests.
pub(crate) fn use_real_queue<'a>(
    info: &mut vk::DeviceCreateInfo<'a>,
    real: &'a vk::DeviceQueueCreateInfo<'a>,
) {
    if is_enabled() {
        (info.queue_create_info_count, info.p_queue_create_infos) = (1, real);
    }
}

/// The three families, with the properties of the driver's only one.
fn families(real: vk::QueueFamilyProperties) -> [vk::QueueFamilyProperties; 3] {
    FAMILIES.map(|(queue_flags, queue_count)| vk::QueueFamilyProperties { queue_flags, queue_count, ..real })
}

unsafe extern "system" fn properties(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    let (mut one, mut real_one) = (1, vk::QueueFamilyProperties::default());
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties =
        unsafe { transmute(PROPERTIES.load(Ordering::Acquire)) };
    // SAFETY: there is room for one.
    unsafe { real(device, &raw mut one, &raw mut real_one) };
    // SAFETY: the caller's. The function cannot report `VK_INCOMPLETE`.
    let _ = unsafe { extensions::write_list(&families(real_one), count, out) };
}

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties2<'static>,
) {
    let (mut one, mut real_one) = (1, vk::QueueFamilyProperties2::default());
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties2 =
        unsafe { transmute(PROPERTIES2.load(Ordering::Acquire)) };
    // SAFETY: there is room for one.
    unsafe { real(device, &raw mut one, &raw mut real_one) };
    let all = families(real_one.queue_family_properties)
        .map(|family| vk::QueueFamilyProperties2::default().queue_family_properties(family));
    // SAFETY: as above.
    let _ = unsafe { extensions::write_list(&all, count, out) };
}

unsafe extern "system" fn pool(
    device: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'static>,
    allocator: Allocator,
    out: *mut vk::CommandPool,
) -> vk::Result {
    if let Some(code) = faults::injected("vkCreateCommandPool") {
        return overrides::inject_failure(code);
    }
    // SAFETY: the caller's structure.
    let info = unsafe { *info }.queue_family_index(0);
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkCreateCommandPool = unsafe { transmute(POOL.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, with the driver's family.
    unsafe { real(device, &raw const info, allocator, out) }
}

unsafe extern "system" fn queue(device: vk::Device, family: u32, index: u32, out: *mut vk::Queue) {
    let mut only = vk::Queue::null();
    // SAFETY: stored before this override was returned.
    let real: vk::PFN_vkGetDeviceQueue = unsafe { transmute(QUEUE.load(Ordering::Acquire)) };
    // SAFETY: the device was created with this queue.
    unsafe { real(device, 0, 0, &raw mut only) };
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = queues.entry((device.as_raw(), family, index));
    // A later device may have the same address, and another queue.
    let made = || Box::leak(Box::new(Queue { loader_word: LOADER_MAGIC, real: only }));
    let queue = *entry.or_insert_with(|| std::ptr::from_mut(made()).expose_provenance());
    let queue = std::ptr::with_exposed_provenance_mut::<Queue>(queue);
    // SAFETY: allocated above, now or earlier, and never freed; not returned to the caller yet.
    unsafe { (*queue).real = only };
    // SAFETY: the caller's.
    unsafe { *out = vk::Queue::from_raw(queue.expose_provenance() as u64) };
}

/// The driver's queue behind a handle.
fn real(queue: vk::Queue) -> vk::Queue {
    let queue = usize::try_from(queue.as_raw()).unwrap_or_default();
    // SAFETY: `queue` returned it, and never frees one.
    unsafe { (*std::ptr::with_exposed_provenance::<Queue>(queue)).real }
}

unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'static>,
    fence: vk::Fence,
) -> vk::Result {
    if let Some(code) = faults::injected("vkQueueSubmit") {
        return overrides::inject_failure(code);
    }
    let _locked = QUEUE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if settings::value("log_waits").is_some() {
        // SAFETY: the caller's structures.
        unsafe { wait_log::log_waits(count, submits) };
    }
    // SAFETY: stored before this override was returned.
    let driver: vk::PFN_vkQueueSubmit = unsafe { transmute(SUBMIT.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, with the driver's queue.
    unsafe { driver(real(queue), count, submits, fence) }
}

unsafe extern "system" fn submit2(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo2<'static>,
    fence: vk::Fence,
) -> vk::Result {
    if let Some(code) = faults::injected("vkQueueSubmit2") {
        return overrides::inject_failure(code);
    }
    let _locked = QUEUE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: stored before this override was returned.
    let driver: vk::PFN_vkQueueSubmit2 = unsafe { transmute(SUBMIT2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, with the driver's queue.
    unsafe { driver(real(queue), count, submits, fence) }
}

unsafe extern "system" fn idle(queue: vk::Queue) -> vk::Result {
    if let Some(code) = faults::injected("vkQueueWaitIdle") {
        return overrides::inject_failure(code);
    }
    let _locked = QUEUE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: stored before this override was returned.
    let driver: vk::PFN_vkQueueWaitIdle = unsafe { transmute(IDLE.load(Ordering::Acquire)) };
    // SAFETY: the driver's queue behind the caller's.
    unsafe { driver(real(queue)) }
}
