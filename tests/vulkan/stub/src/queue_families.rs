//! Queues of three families, with the word `families`: one for everything, two queues for compute, and one that only
//! copies. All of them are the driver's only one, which takes the work of one at a time.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use ash::vk;
use vk::Handle;

use crate::{Allocator, extras, faults, spoiled, waits};

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
/// What the loader finds in an object before it puts its own word there.
const MAGIC: usize = 0x01CD_C0DE;

/// A device, a family, and a number in it.
type Place = (u64, u32, u32);

/// A queue as the loader and layers see it.
#[repr(C)]
struct Queue {
    /// The loader's.
    word: usize,
    real: vk::Queue,
}

static PROPERTIES: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static PROPERTIES2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static POOL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static QUEUE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static SUBMIT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static SUBMIT2: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static IDLE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// Held while the driver's queue is used.
static ONE: Mutex<()> = Mutex::new(());
/// The queues that were given out.
static GIVEN: Mutex<BTreeMap<Place, usize>> = Mutex::new(BTreeMap::new());

fn are_wanted() -> bool {
    faults::word("families").is_some()
}

/// The function that stands before the driver's, if it is wanted.
pub(crate) fn instead_of(name: &str, driver: *mut c_void) -> Option<*const c_void> {
    let (place, function) = match name {
        _ if !are_wanted() => return None,
        "vkGetPhysicalDeviceQueueFamilyProperties" => (&PROPERTIES, properties as *const c_void),
        "vkGetPhysicalDeviceQueueFamilyProperties2" => (&PROPERTIES2, properties2 as *const c_void),
        "vkCreateCommandPool" => (&POOL, pool as *const c_void),
        "vkGetDeviceQueue" => (&QUEUE, queue as *const c_void),
        "vkQueueSubmit" => (&SUBMIT, submit as *const c_void),
        "vkQueueSubmit2" => (&SUBMIT2, submit2 as *const c_void),
        "vkQueueWaitIdle" => (&IDLE, idle as *const c_void),
        _ => return None,
    };
    place.store(driver, Ordering::Release);
    Some(function)
}

/// Has a device made with the driver's only queue, whichever are asked for.
pub(crate) fn merge<'a>(info: &mut vk::DeviceCreateInfo<'a>, only: &'a vk::DeviceQueueCreateInfo<'a>) {
    if are_wanted() {
        (info.queue_create_info_count, info.p_queue_create_infos) = (1, only);
    }
}

/// The families, made of the driver's only one.
fn families(real: vk::QueueFamilyProperties) -> [vk::QueueFamilyProperties; 3] {
    FAMILIES.map(|(queue_flags, queue_count)| vk::QueueFamilyProperties { queue_flags, queue_count, ..real })
}

unsafe extern "system" fn properties(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    let (mut one, mut real_one) = (1, vk::QueueFamilyProperties::default());
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties =
        unsafe { transmute(PROPERTIES.load(Ordering::Acquire)) };
    // SAFETY: there is room for one.
    unsafe { real(device, &raw mut one, &raw mut real_one) };
    // SAFETY: the caller's. There is no way to say that there is too little room.
    let _ = unsafe { extras::list(&families(real_one), count, out) };
}

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties2<'static>,
) {
    let (mut one, mut real_one) = (1, vk::QueueFamilyProperties2::default());
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties2 =
        unsafe { transmute(PROPERTIES2.load(Ordering::Acquire)) };
    // SAFETY: there is room for one.
    unsafe { real(device, &raw mut one, &raw mut real_one) };
    let all = families(real_one.queue_family_properties)
        .map(|family| vk::QueueFamilyProperties2::default().queue_family_properties(family));
    // SAFETY: as above.
    let _ = unsafe { extras::list(&all, count, out) };
}

unsafe extern "system" fn pool(
    device: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'static>,
    allocator: Allocator,
    out: *mut vk::CommandPool,
) -> vk::Result {
    if let Some(code) = faults::of("vkCreateCommandPool") {
        return spoiled::spoiled(code);
    }
    // SAFETY: the caller's structure.
    let info = unsafe { *info }.queue_family_index(0);
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkCreateCommandPool = unsafe { transmute(POOL.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, but for the family.
    unsafe { real(device, &raw const info, allocator, out) }
}

unsafe extern "system" fn queue(device: vk::Device, family: u32, index: u32, out: *mut vk::Queue) {
    let mut only = vk::Queue::null();
    // SAFETY: noted before this function was given out.
    let real: vk::PFN_vkGetDeviceQueue = unsafe { transmute(QUEUE.load(Ordering::Acquire)) };
    // SAFETY: the device was made with this queue.
    unsafe { real(device, 0, 0, &raw mut only) };
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.entry((device.as_raw(), family, index));
    // A device that comes later may have the same address, and another queue.
    let made = || Box::leak(Box::new(Queue { word: MAGIC, real: only }));
    let queue = *given.or_insert_with(|| std::ptr::from_mut(made()).expose_provenance());
    let queue = std::ptr::with_exposed_provenance_mut::<Queue>(queue);
    // SAFETY: made above, now or earlier, and never freed; nobody else has it yet.
    unsafe { (*queue).real = only };
    // SAFETY: the caller's.
    unsafe { *out = vk::Queue::from_raw(queue.expose_provenance() as u64) };
}

/// The driver's queue behind one of ours.
fn real(queue: vk::Queue) -> vk::Queue {
    let queue = usize::try_from(queue.as_raw()).unwrap_or_default();
    // SAFETY: the caller has it from `queue`, which never frees one.
    unsafe { (*std::ptr::with_exposed_provenance::<Queue>(queue)).real }
}

unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo<'static>,
    fence: vk::Fence,
) -> vk::Result {
    if let Some(code) = faults::of("vkQueueSubmit") {
        return spoiled::spoiled(code);
    }
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if faults::word("waits").is_some() {
        // SAFETY: the caller's structures.
        unsafe { waits::tell(count, submits) };
    }
    // SAFETY: noted before this function was given out.
    let driver: vk::PFN_vkQueueSubmit = unsafe { transmute(SUBMIT.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, but for the queue.
    unsafe { driver(real(queue), count, submits, fence) }
}

unsafe extern "system" fn submit2(
    queue: vk::Queue,
    count: u32,
    submits: *const vk::SubmitInfo2<'static>,
    fence: vk::Fence,
) -> vk::Result {
    if let Some(code) = faults::of("vkQueueSubmit2") {
        return spoiled::spoiled(code);
    }
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: noted before this function was given out.
    let driver: vk::PFN_vkQueueSubmit2 = unsafe { transmute(SUBMIT2.load(Ordering::Acquire)) };
    // SAFETY: the caller's arguments, but for the queue.
    unsafe { driver(real(queue), count, submits, fence) }
}

unsafe extern "system" fn idle(queue: vk::Queue) -> vk::Result {
    if let Some(code) = faults::of("vkQueueWaitIdle") {
        return spoiled::spoiled(code);
    }
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: noted before this function was given out.
    let driver: vk::PFN_vkQueueWaitIdle = unsafe { transmute(IDLE.load(Ordering::Acquire)) };
    // SAFETY: the caller's queue, as the driver knows it.
    unsafe { driver(real(queue)) }
}
