//! An opened device: its functions, its queues, its allocator, and what becomes of a loss.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ash::vk;
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};
use parking_lot::{Mutex, MutexGuard, RwLock};
use runtime_core::{Error, ErrorKind, Result};

use super::barriers::Barriers;
use super::cache::Cache;
use super::facts::{CPU, Facts, Family};
use super::lane::Lane;
use super::wanted::{self, Wanted};
use super::{Instance, Physical, farewell, status};
use crate::cache::CacheFile;
use crate::lending::Lending;

/// What is called without asking whether it is there: a driver that lacks one of them is broken.
const REQUIRED: [&CStr; 5] = [
    c"vkGetSemaphoreCounterValue",
    c"vkWaitSemaphores",
    c"vkSignalSemaphore",
    c"vkCreateDescriptorUpdateTemplate",
    c"vkUpdateDescriptorSetWithTemplate",
];
/// Most queues of the driver that are opened.
const MOST_LANES: u32 = 8;
/// Most queues of the driver that only copy.
const MOST_TRANSFER_LANES: u32 = 2;
/// First and largest size of a block that memory is handed out of.
const DEVICE_BLOCK_BYTES: [u64; 2] = [32 << 20, 256 << 20];
const HOST_BLOCK_BYTES: [u64; 2] = [16 << 20, 64 << 20];

/// How long a semaphore that nobody uses any more is kept, and how many are.
const RETIREMENT: Duration = Duration::from_secs(1);
const MOST_RETIRED: usize = 4096;

/// What the first opening of a device decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    /// The device checks every access of a kernel to memory.
    pub(crate) robust: bool,
    /// Arguments go into the command buffer, not into descriptor sets, where the driver can.
    pub(crate) push: bool,
    /// What the driver has compiled is kept on disk.
    pub(crate) keep: bool,
}

/// An opened device.
pub(crate) struct Logical {
    pub(crate) facts: Facts,
    pub(crate) instance: Arc<Instance>,
    pub(crate) physical: Physical,
    pub(super) handle: ash::Device,
    pub(super) push: Option<ash::khr::push_descriptor::Device>,
    pub(super) import: Option<ash::ext::external_memory_host::Device>,
    pub(super) figures: Option<ash::khr::pipeline_executable_properties::Device>,
    pub(super) barriers: Barriers,
    /// Pipelines say that the device checks nothing: some drivers check unless they are told.
    pub(super) tells_unchecked: bool,
    calibrated: Option<ash::ext::calibrated_timestamps::Device>,
    fault: Option<ash::ext::device_fault::Device>,
    /// `None` only while it is closed.
    pub(super) allocator: Mutex<Option<Allocator>>,
    pub(super) cache: Cache,
    /// The device is a processor of this machine, which sees what the program sees: that takes no commands, each of which
    /// would stop its threads.
    pub(super) shares_memory: bool,
    /// Families that share buffers; one needs no sharing.
    pub(super) sharing: Vec<u32>,
    lanes: Vec<Arc<Lane>>,
    transfer_lanes: Vec<Arc<Lane>>,
    /// Memory of the program that transfers touch: no more, before anybody is told that the device is lost.
    pub(crate) lending: Lending,
    lost: OnceLock<Error>,
    /// Shared by whoever has code compiled: the end of the process waits for that.
    pub(super) compiling: RwLock<()>,
    /// Semaphores that nobody uses any more, and since when.
    retired: Mutex<VecDeque<(Instant, vk::Semaphore)>>,
    /// The validation layer stops for seconds, and complains of itself, when two threads look at semaphores at once.
    looks: Mutex<()>,
}

impl std::fmt::Debug for Logical {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logical").field("name", &self.facts.name).finish_non_exhaustive()
    }
}

impl Logical {
    /// Opens a device.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn open(
        instance: &Arc<Instance>,
        physical: Physical,
        facts: Facts,
        choices: Choices,
    ) -> Result<Arc<Self>> {
        let compute =
            facts.compute_family().ok_or_else(|| Error::unsupported("the device has no compute queues"))?;
        let transfer = facts.transfer_family();
        let handle = create(instance, physical, &facts, choices, compute, transfer)?;
        let calls = &instance.handle;
        let features = facts.features;
        let lanes = |family: Family, most: u32| -> Vec<Arc<Lane>> {
            (0..family.count.min(most)).map(|index| Arc::new(Lane::new(&handle, family, index))).collect()
        };
        let opened = Self {
            push: (choices.push && features.push_descriptors)
                .then(|| ash::khr::push_descriptor::Device::new(calls, &handle)),
            import: features.host_import.then(|| ash::ext::external_memory_host::Device::new(calls, &handle)),
            figures: features
                .executable_properties
                .then(|| ash::khr::pipeline_executable_properties::Device::new(calls, &handle)),
            barriers: Barriers::of(instance, &handle, &facts),
            tells_unchecked: features.pipeline_robustness && !choices.robust,
            calibrated: features
                .calibrated
                .then(|| ash::ext::calibrated_timestamps::Device::new(calls, &handle)),
            fault: features.device_fault.then(|| ash::ext::device_fault::Device::new(calls, &handle)),
            allocator: Mutex::new(None),
            cache: Cache::default(),
            shares_memory: facts.kind == CPU,
            sharing: std::iter::once(compute).chain(transfer).map(|family| family.index).collect(),
            lanes: lanes(compute, MOST_LANES),
            transfer_lanes: transfer.map(|family| lanes(family, MOST_TRANSFER_LANES)).unwrap_or_default(),
            lending: Lending::default(),
            lost: OnceLock::new(),
            compiling: RwLock::new(()),
            retired: Mutex::default(),
            looks: Mutex::new(()),
            facts,
            instance: Arc::clone(instance),
            physical,
            handle,
        };
        // On an error the drop closes what was made so far.
        let file = choices.keep.then(|| CacheFile::of(&opened.facts)).flatten();
        let opened = opened.prepare(file).map(Arc::new)?;
        farewell::before_exit(&opened);
        Ok(opened)
    }

    /// Makes the allocator and the cache of compiled code.
    fn prepare(mut self, file: Option<CacheFile>) -> Result<Self> {
        let sizes = AllocationSizes::new(DEVICE_BLOCK_BYTES[0], HOST_BLOCK_BYTES[0])
            .with_max_device_memblock_size(DEVICE_BLOCK_BYTES[1])
            .with_max_host_memblock_size(HOST_BLOCK_BYTES[1]);
        let mut debug_settings = AllocatorDebugSettings::default();
        debug_settings.log_leaks_on_shutdown = false;
        let made = Allocator::new(&AllocatorCreateDesc {
            instance: self.instance.handle.clone(),
            device: self.handle.clone(),
            physical_device: self.physical.0,
            debug_settings,
            buffer_device_address: false,
            allocation_sizes: sizes,
        });
        *self.allocator.get_mut() = Some(made.map_err(|failure| status::allocation(0, &failure))?);
        self.cache =
            Cache::open(&self.handle, file).map_err(|code| status::error("vkCreatePipelineCache", code))?;
        Ok(self)
    }

    /// The queue of the driver that has the fewest of ours.
    pub(crate) fn pick_lane(&self) -> Arc<Lane> {
        let least = self.lanes.iter().min_by_key(|lane| lane.users());
        // `open` refuses a device without a queue for compute.
        Arc::clone(least.unwrap_or(&self.lanes[0]))
    }

    /// A queue of the driver for pieces of large transfers, which run beside kernels where they can.
    pub(crate) fn transfer_lane(&self) -> Arc<Lane> {
        let least = self.transfer_lanes.iter().min_by_key(|lane| lane.users());
        least.map_or_else(|| self.pick_lane(), Arc::clone)
    }

    /// Waits until the driver has no work, and keeps others from giving it more meanwhile.
    pub(crate) fn wait_idle(&self) {
        self.wait_idle_and(|| ());
    }

    fn wait_idle_and(&self, then: impl FnOnce()) {
        let all = self.lanes.iter().chain(&self.transfer_lanes);
        let _locked: Vec<_> = all.map(|lane| lane.lock()).collect();
        // SAFETY: the device is open, and its queues are locked. An error means that nothing runs any more.
        let _ = unsafe { self.handle.device_wait_idle() };
        then();
    }

    /// Waits for whatever is compiled and for all work, and lets nobody in any more: the process is ending.
    pub(super) fn end(&self) {
        let _compiled = self.compiling.write();
        self.wait_idle_and(|| self.refuse());
        // Whoever still looks at a semaphore is through now.
        drop(self.looks.lock());
    }

    /// Lets nobody in any more.
    pub(super) fn refuse(&self) {
        self.lost.get_or_init(|| Error::new(ErrorKind::Unavailable, "the process is ending"));
    }

    /// Whether arguments go into the command buffer.
    pub(crate) fn pushes(&self, bindings: u32) -> bool {
        self.push.is_some() && bindings <= self.facts.pushed_bindings
    }

    /// Taken to look at a semaphore, under the validation layer only.
    #[inline]
    pub(super) fn look(&self) -> Option<MutexGuard<'_, ()>> {
        self.instance.messenger.is_some().then(|| self.looks.lock())
    }

    /// Turns the driver's answer into ours; a loss of the device is remembered.
    #[inline]
    pub(super) fn check<T>(&self, function: &str, answer: ash::prelude::VkResult<T>) -> Result<T> {
        answer.map_err(|code| self.fail(function, code))
    }

    /// The error behind a code. After a loss every error is the first one.
    #[cold]
    pub(super) fn fail(&self, function: &str, code: vk::Result) -> Error {
        if let Some(lost) = self.lost.get() {
            return lost.clone();
        }
        let error = status::error(function, code);
        if code != vk::Result::ERROR_DEVICE_LOST {
            return error;
        }
        let error = match self.fault_words() {
            Some(words) => error.with_note(words),
            None => error,
        };
        // Whoever is told may free what work still uses, if the driver has not let go of it.
        self.wait_idle();
        // And may take back what was lent.
        self.lending.end();
        self.lost.get_or_init(|| error).clone()
    }

    /// Says at once that the device is lost, if it is.
    ///
    /// # Errors
    /// `DeviceLost`.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The same moment by the device's clock, in ticks, and by the host's monotonic clock, in nanoseconds.
    pub(crate) fn calibrate(&self) -> Option<(u64, u64)> {
        let domains = [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC];
        let infos = domains.map(|domain| vk::CalibratedTimestampInfoKHR::default().time_domain(domain));
        // SAFETY: the device has the extension, and both clocks, as `physical` has asked.
        let told = unsafe { self.calibrated.as_ref()?.get_calibrated_timestamps(&infos) };
        told.ok().and_then(|(times, _)| Some((*times.first()?, *times.get(1)?)))
    }

    /// What the driver tells of a fault.
    fn fault_words(&self) -> Option<String> {
        let calls = self.fault.as_ref()?;
        let mut counts = vk::DeviceFaultCountsEXT::default();
        let none = std::ptr::null_mut();
        // SAFETY: the device has the extension; without room for details only counts are told.
        let told =
            unsafe { (calls.fp().get_device_fault_info_ext)(self.handle.handle(), &raw mut counts, none) };
        if told != vk::Result::SUCCESS && told != vk::Result::INCOMPLETE {
            return None;
        }
        let mut addresses =
            vec![vk::DeviceFaultAddressInfoEXT::default(); counts.address_info_count as usize];
        let mut vendors = vec![vk::DeviceFaultVendorInfoEXT::default(); counts.vendor_info_count as usize];
        counts.vendor_binary_size = 0;
        let mut info = vk::DeviceFaultInfoEXT { ..Default::default() };
        info.p_address_infos = addresses.as_mut_ptr();
        info.p_vendor_infos = vendors.as_mut_ptr();
        // SAFETY: there is room for as many details as were counted.
        let told = unsafe {
            (calls.fp().get_device_fault_info_ext)(self.handle.handle(), &raw mut counts, &raw mut info)
        };
        if told != vk::Result::SUCCESS && told != vk::Result::INCOMPLETE {
            return None;
        }
        let what = info.description_as_c_str().map(CStr::to_string_lossy).unwrap_or_default();
        let at = addresses.iter().map(|at| format!("{:?} at {:#x}", at.address_type, at.reported_address));
        let words = vendors.iter().filter_map(|vendor| vendor.description_as_c_str().ok());
        let words = words.map(|words| words.to_string_lossy().into_owned());
        let all: Vec<String> = std::iter::once(what.into_owned()).chain(at).chain(words).collect();
        Some(format!("fault: {}", all.join(", ")))
    }
}

impl Logical {
    /// Destroys a semaphore when no driver can be busy with it. Mesa's threads still look at one for a moment after the
    /// work that waits for it, or moves it, is seen to have ended.
    pub(super) fn retire(&self, semaphore: vk::Semaphore) {
        let (mut retired, now) = (self.retired.lock(), Instant::now());
        while retired.len() > MOST_RETIRED
            || retired.front().is_some_and(|(since, _)| now.duration_since(*since) > RETIREMENT)
        {
            let Some((_, old)) = retired.pop_front() else { break };
            // SAFETY: ours; the work that names it ended some time ago.
            unsafe { self.handle.destroy_semaphore(old, None) };
        }
        retired.push_back((now, semaphore));
    }
}

impl Drop for Logical {
    fn drop(&mut self) {
        // Whatever was made of the device holds it, so nothing is left but what runs on.
        self.wait_idle();
        for (_, semaphore) in self.retired.get_mut().drain(..) {
            // SAFETY: ours, and the device is idle.
            unsafe { self.handle.destroy_semaphore(semaphore, None) };
        }
        drop(self.allocator.get_mut().take());
        self.cache.close(&self.handle);
        // SAFETY: as above.
        unsafe { self.handle.destroy_device(None) };
    }
}

fn create(
    instance: &Instance,
    physical: Physical,
    facts: &Facts,
    choices: Choices,
    compute: Family,
    transfer: Option<Family>,
) -> Result<ash::Device> {
    let priorities = [1.0_f32; MOST_LANES as usize];
    let queue = |family: Family, most: u32| {
        vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family.index)
            .queue_priorities(&priorities[..family.count.min(most) as usize])
    };
    let compute = queue(compute, MOST_LANES);
    let queues: Vec<_> =
        std::iter::once(compute).chain(transfer.map(|family| queue(family, MOST_TRANSFER_LANES))).collect();
    let extensions: Vec<_> = wanted::extensions(facts).into_iter().map(CStr::as_ptr).collect();
    let wanted = Wanted::of(instance, physical, facts);
    let mut v11 = wanted.v11();
    let mut v12 = wanted.v12();
    let mut v13 = wanted.v13();
    let mut atomics = wanted.atomics();
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut figures =
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
    let mut faults = vk::PhysicalDeviceFaultFeaturesEXT::default().device_fault(true);
    let mut barriers = vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
    let mut robustness = vk::PhysicalDevicePipelineRobustnessFeaturesEXT::default().pipeline_robustness(true);
    let mut all = vk::PhysicalDeviceFeatures2::default().features(wanted.core(choices.robust));
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .push_next(&mut all)
        .push_next(&mut v11)
        .push_next(&mut v12);
    let features = facts.features;
    info = match facts.version.minor >= 3 {
        true => info.push_next(&mut v13),
        // Else it is a part of that structure.
        false if features.synchronization2 => info.push_next(&mut barriers),
        false => info,
    };
    info = if features.atomics_f32 { info.push_next(&mut atomics) } else { info };
    info = if features.cooperative_matrix { info.push_next(&mut matrices) } else { info };
    info = if features.executable_properties { info.push_next(&mut figures) } else { info };
    info = if features.device_fault { info.push_next(&mut faults) } else { info };
    info = if features.pipeline_robustness { info.push_next(&mut robustness) } else { info };
    // SAFETY: the device is of this instance and has what is asked for; the chain lives during the call.
    let made = unsafe { instance.handle.create_device(physical.0, &info, None) };
    let made = made.map_err(|code| status::error("vkCreateDevice", code))?;
    let lacking = REQUIRED.into_iter().find(|name| {
        // SAFETY: the device was just made, and the name is terminated.
        unsafe { instance.handle.get_device_proc_addr(made.handle(), name.as_ptr()) }.is_none()
    });
    let Some(lacking) = lacking else { return Ok(made) };
    // SAFETY: just made, and nothing was made of it.
    unsafe { made.destroy_device(None) };
    let lacking = lacking.to_string_lossy();
    Err(Error::new(ErrorKind::Unavailable, format!("the driver lacks {lacking}: it is broken; reinstall it")))
}

/// Says that a device has run out of something that it has few of.
pub(super) fn exhausted(message: &str) -> Error {
    Error::new(ErrorKind::OutOfResources, message)
}
