//! The `VkDevice`: its extension functions, queues and allocator, and the loss of the device.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ash::vk;
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use runtime_core::backend::HostBorrowGuard;
use runtime_core::{Error, ErrorKind, Result};

use super::barrier::BarrierFn;
use super::device_caps::{CPU, DISCRETE, DeviceCaps, QueueFamily};
use super::memory_pool::MemoryPool;
use super::physical_device::has_extension;
use super::shared_queue::SharedQueue;
use super::{Instance, PhysicalDevice, status};

/// Functions of Vulkan 1.2 called without a check: a driver that lacks one is broken.
const REQUIRED: [&CStr; 5] = [
    c"vkGetSemaphoreCounterValue",
    c"vkWaitSemaphores",
    c"vkSignalSemaphore",
    c"vkCreateDescriptorUpdateTemplate",
    c"vkUpdateDescriptorSetWithTemplate",
];
/// Most `VkQueue`s opened for compute.
const MAX_COMPUTE_QUEUES: u32 = 8;
/// Most `VkQueue`s opened for transfers only.
const MAX_TRANSFER_QUEUES: u32 = 2;
/// Smallest and largest size of a memory block to sub-allocate from.
const DEVICE_BLOCK_BYTES: [u64; 2] = [32 << 20, 256 << 20];
const HOST_BLOCK_BYTES: [u64; 2] = [16 << 20, 64 << 20];

/// How long unused semaphores are kept before they are destroyed, and how many at most.
const RETIRED_LIFETIME: Duration = Duration::from_secs(1);
const MAX_RETIRED_SEMAPHORES: usize = 4096;

/// Options fixed when a device is first opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceOptions {
    /// The device bounds-checks memory accesses of kernels.
    pub(crate) robust: bool,
    /// Arguments are push descriptors instead of descriptor sets, where the driver supports it.
    pub(crate) push_descriptors: bool,
}

/// An opened device.
pub(crate) struct LogicalDevice {
    pub(crate) caps: DeviceCaps,
    pub(crate) options: DeviceOptions,
    pub(crate) instance: Arc<Instance>,
    pub(crate) physical: PhysicalDevice,
    pub(super) handle: ash::Device,
    pub(super) push_descriptor: Option<ash::khr::push_descriptor::Device>,
    pub(super) host_import: Option<ash::ext::external_memory_host::Device>,
    pub(super) executable_properties: Option<ash::khr::pipeline_executable_properties::Device>,
    pub(super) barriers: BarrierFn,
    /// Whether pipelines disable bounds checks explicitly; some drivers check by default.
    pub(super) disables_robustness: bool,
    calibrated_timestamps: Option<ash::ext::calibrated_timestamps::Device>,
    device_fault: Option<ash::ext::device_fault::Device>,
    /// `None` only while the device is being closed.
    pub(super) memory_pool: Mutex<Option<MemoryPool>>,
    /// The device is this machine's CPU. Its memory is the host's, so that no barriers to or from the host are needed,
    /// each of which would stop its threads.
    pub(super) is_host_cpu: bool,
    /// Queue families that share buffers (`VK_SHARING_MODE_CONCURRENT`); with only one, buffers are exclusive to it.
    pub(super) sharing_families: Vec<u32>,
    compute_queues: Vec<Arc<SharedQueue>>,
    transfer_queues: Vec<Arc<SharedQueue>>,
    /// Guards host memory that transfers borrow: revoked before a loss of the device is reported.
    pub(crate) host_borrows: HostBorrowGuard,
    lost: OnceLock<Error>,
    /// Read-locked during compilation, for which process exit waits.
    pub(super) compiling: RwLock<()>,
    /// Held while commands are recorded, where process exit waits for them.
    recording: RwLock<()>,
    /// Unused semaphores, and since when.
    retired_semaphores: Mutex<VecDeque<(Instant, vk::Semaphore)>>,
    /// Held while a semaphore is polled under the validation layer, which stalls for seconds, and reports an error of its own, when
    /// two threads poll at once. Costs nothing without the layer, so it can stay until a layer without the fault is common.
    poll_lock: Mutex<()>,
    /// Held while a `VkQueue` submits, where two at once break the driver.
    submit_lock: Option<Mutex<()>>,
}

impl std::fmt::Debug for LogicalDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogicalDevice").field("name", &self.caps.name).finish_non_exhaustive()
    }
}

impl LogicalDevice {
    /// Opens a device.
    ///
    /// # Errors
    /// The driver's error; `Unavailable` if it lacks a required function.
    pub(crate) fn open(
        instance: &Arc<Instance>,
        physical: PhysicalDevice,
        caps: DeviceCaps,
        options: DeviceOptions,
    ) -> Result<Arc<Self>> {
        let compute =
            caps.compute_family().ok_or_else(|| Error::unsupported("the device has no compute queues"))?;
        let transfer = caps.transfer_family();
        let handle = create(instance, physical, &caps, options, compute, transfer)?;
        let calls = &instance.handle;
        let features = caps.features;
        let open_queues = |family: QueueFamily, most: u32| -> Vec<Arc<SharedQueue>> {
            (0..family.count.min(most))
                .map(|index| Arc::new(SharedQueue::new(&handle, family, index)))
                .collect()
        };
        let opened = Self {
            push_descriptor: (options.push_descriptors && features.push_descriptors)
                .then(|| ash::khr::push_descriptor::Device::new(calls, &handle)),
            host_import: features
                .host_import
                .then(|| ash::ext::external_memory_host::Device::new(calls, &handle)),
            executable_properties: features
                .executable_properties
                .then(|| ash::khr::pipeline_executable_properties::Device::new(calls, &handle)),
            barriers: BarrierFn::load(instance, &handle, &caps),
            disables_robustness: features.pipeline_robustness && !options.robust,
            calibrated_timestamps: features
                .calibrated_timestamps
                .then(|| ash::ext::calibrated_timestamps::Device::new(calls, &handle)),
            device_fault: features.device_fault.then(|| ash::ext::device_fault::Device::new(calls, &handle)),
            memory_pool: Mutex::new(None),
            is_host_cpu: caps.kind == CPU,
            sharing_families: std::iter::once(compute).chain(transfer).map(|family| family.index).collect(),
            compute_queues: open_queues(compute, MAX_COMPUTE_QUEUES),
            transfer_queues: transfer
                .map(|family| open_queues(family, MAX_TRANSFER_QUEUES))
                .unwrap_or_default(),
            host_borrows: HostBorrowGuard::default(),
            lost: OnceLock::new(),
            compiling: RwLock::new(()),
            recording: RwLock::new(()),
            retired_semaphores: Mutex::default(),
            poll_lock: Mutex::new(()),
            submit_lock: caps.confuses_concurrent_submissions().then(Mutex::default),
            caps,
            options,
            instance: Arc::clone(instance),
            physical,
            handle,
        };
        // On an error, dropping `opened` destroys what exists so far.
        opened.prepare().map(Arc::new)
    }

    /// Creates the allocator.
    fn prepare(mut self) -> Result<Self> {
        let sizes = AllocationSizes::new(DEVICE_BLOCK_BYTES[0], HOST_BLOCK_BYTES[0])
            .with_max_device_memblock_size(DEVICE_BLOCK_BYTES[1])
            .with_max_host_memblock_size(HOST_BLOCK_BYTES[1]);
        let mut debug_settings = AllocatorDebugSettings::default();
        debug_settings.log_leaks_on_shutdown = false;
        let created = Allocator::new(&AllocatorCreateDesc {
            instance: self.instance.handle.clone(),
            device: self.handle.clone(),
            physical_device: self.physical.0,
            debug_settings,
            buffer_device_address: false,
            allocation_sizes: sizes,
        });
        let allocator = created.map_err(|failure| status::allocation_error(0, &failure))?;
        *self.memory_pool.get_mut() = Some(MemoryPool::new(allocator, self.caps.kind == DISCRETE));
        Ok(self)
    }

    /// Bytes of freed device memory that are kept for later tensors.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.memory_pool.lock().as_ref().map_or(0, MemoryPool::kept_bytes)
    }

    /// The compute `VkQueue` with the fewest users.
    pub(crate) fn least_used_compute_queue(&self) -> Arc<SharedQueue> {
        let least = self.compute_queues.iter().min_by_key(|shared_queue| shared_queue.users());
        // `open` refuses a device without compute queues.
        Arc::clone(least.unwrap_or(&self.compute_queues[0]))
    }

    /// The `VkQueue` for pieces of large transfers: one that runs beside kernels, if there is one.
    pub(crate) fn least_used_transfer_queue(&self) -> Arc<SharedQueue> {
        let least = self.transfer_queues.iter().min_by_key(|shared_queue| shared_queue.users());
        least.map_or_else(|| self.least_used_compute_queue(), Arc::clone)
    }

    /// Waits until the device is idle; submissions are blocked meanwhile.
    pub(crate) fn wait_idle(&self) {
        self.wait_idle_and(|| ());
    }

    fn wait_idle_and(&self, then: impl FnOnce()) {
        let all = self.compute_queues.iter().chain(&self.transfer_queues);
        let _locked: Vec<_> = all.map(|shared_queue| shared_queue.lock()).collect();
        // SAFETY: the device is open, and its queues are locked. After an error nothing runs.
        let _ = unsafe { self.handle.device_wait_idle() };
        then();
    }

    /// At process exit: waits for compilation and all work, then refuses new work.
    pub(super) fn shut_down(&self) {
        let _compiled = self.compiling.write();
        self.wait_idle_and(|| self.refuse_work());
        // Wait for threads that are still polling or recording.
        drop(self.poll_lock.lock());
        drop(self.recording.write());
    }

    /// Keeps process exit from ending the driver while commands are recorded. Recursive: one queue records a wait for
    /// another.
    #[inline]
    pub(crate) fn begin_recording(&self) -> Option<RwLockReadGuard<'_, ()>> {
        (self.instance.messenger.is_some() || self.caps.is_cpu()).then(|| self.recording.read_recursive())
    }

    /// Fails every later call.
    pub(super) fn refuse_work(&self) {
        self.lost.get_or_init(|| Error::new(ErrorKind::Unavailable, "the process is exiting"));
    }

    /// Whether a kernel with so many bindings takes them as push descriptors.
    pub(crate) fn uses_push_descriptors(&self, bindings: u32) -> bool {
        self.push_descriptor.is_some() && bindings <= self.caps.max_push_descriptors
    }

    /// Serialises polling of semaphores, under the validation layer only.
    #[inline]
    pub(super) fn lock_polling(&self) -> Option<MutexGuard<'_, ()>> {
        self.instance.messenger.is_some().then(|| self.poll_lock.lock())
    }

    /// Serialises the submissions of all `VkQueue`s, where the driver needs it.
    #[inline]
    pub(super) fn lock_submitting(&self) -> Option<MutexGuard<'_, ()>> {
        self.submit_lock.as_ref().map(Mutex::lock)
    }

    /// Converts a result of the driver, and records a loss of the device.
    #[inline]
    pub(super) fn check<T>(&self, function: &str, answer: ash::prelude::VkResult<T>) -> Result<T> {
        answer.map_err(|code| self.fail(function, code))
    }

    /// Converts an error code. After a loss, every error is the first one.
    #[cold]
    pub(super) fn fail(&self, function: &str, code: vk::Result) -> Error {
        if let Some(lost) = self.lost.get() {
            return lost.clone();
        }
        let error = status::error(function, code);
        if code != vk::Result::ERROR_DEVICE_LOST {
            return error;
        }
        let error = match self.fault_report() {
            Some(report) => error.with_note(report),
            None => error,
        };
        // The caller may free memory of pending work, which the driver may still use.
        self.wait_idle();
        // It may also reclaim borrowed host memory.
        self.host_borrows.revoke();
        self.lost.get_or_init(|| error).clone()
    }

    /// Fails if the device is lost.
    ///
    /// # Errors
    /// `DeviceLost`, or `Unavailable` at process exit.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The error of a copy that may no longer touch borrowed host memory: why the device was lost.
    ///
    /// The caller may reclaim its memory once it has this error, so this waits for other copies to finish.
    pub(crate) fn device_lost(&self) -> Error {
        self.host_borrows.revoke();
        let error = || Error::new(ErrorKind::DeviceLost, "the device is lost; open it again");
        self.check_alive().err().unwrap_or_else(error)
    }

    /// One moment by the device's clock, in ticks, and by the host's monotonic clock, in nanoseconds.
    pub(crate) fn calibrate(&self) -> Option<(u64, u64)> {
        let domains = [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC];
        let infos = domains.map(|domain| vk::CalibratedTimestampInfoKHR::default().time_domain(domain));
        // SAFETY: the device has the extension and both time domains (`PhysicalDevice::has_host_clock`).
        let result = unsafe { self.calibrated_timestamps.as_ref()?.get_calibrated_timestamps(&infos) };
        result.ok().and_then(|(times, _)| Some((*times.first()?, *times.get(1)?)))
    }

    /// The driver's report of a fault (`VK_EXT_device_fault`).
    fn fault_report(&self) -> Option<String> {
        let calls = self.device_fault.as_ref()?;
        let mut counts = vk::DeviceFaultCountsEXT::default();
        let none = std::ptr::null_mut();
        // SAFETY: the device has the extension; without an info structure, only the counts are written.
        let result =
            unsafe { (calls.fp().get_device_fault_info_ext)(self.handle.handle(), &raw mut counts, none) };
        if result != vk::Result::SUCCESS && result != vk::Result::INCOMPLETE {
            return None;
        }
        let mut addresses =
            vec![vk::DeviceFaultAddressInfoEXT::default(); counts.address_info_count as usize];
        let mut vendors = vec![vk::DeviceFaultVendorInfoEXT::default(); counts.vendor_info_count as usize];
        counts.vendor_binary_size = 0;
        let mut info = vk::DeviceFaultInfoEXT { ..Default::default() };
        info.p_address_infos = addresses.as_mut_ptr();
        info.p_vendor_infos = vendors.as_mut_ptr();
        // SAFETY: the arrays have room for the counts.
        let result = unsafe {
            (calls.fp().get_device_fault_info_ext)(self.handle.handle(), &raw mut counts, &raw mut info)
        };
        if result != vk::Result::SUCCESS && result != vk::Result::INCOMPLETE {
            return None;
        }
        let description = info.description_as_c_str().map(CStr::to_string_lossy).unwrap_or_default();
        let addresses =
            addresses.iter().map(|at| format!("{:?} at {:#x}", at.address_type, at.reported_address));
        let vendors = vendors.iter().filter_map(|vendor| vendor.description_as_c_str().ok());
        let vendors = vendors.map(|text| text.to_string_lossy().into_owned());
        let all: Vec<String> =
            std::iter::once(description.into_owned()).chain(addresses).chain(vendors).collect();
        Some(format!("fault: {}", all.join(", ")))
    }
}

impl LogicalDevice {
    /// Destroys a semaphore later, because Mesa's threads still access one for a moment after the work that waits for it or signals
    /// it has completed. Can go when `tests/vulkan` is clean on lavapipe without it, under a tool that checks memory.
    pub(super) fn retire(&self, semaphore: vk::Semaphore) {
        let (mut retired, now) = (self.retired_semaphores.lock(), Instant::now());
        while retired.len() > MAX_RETIRED_SEMAPHORES
            || retired.front().is_some_and(|(since, _)| now.duration_since(*since) > RETIRED_LIFETIME)
        {
            let Some((_, old)) = retired.pop_front() else { break };
            // SAFETY: ours; the work that used it completed some time ago.
            unsafe { self.handle.destroy_semaphore(old, None) };
        }
        retired.push_back((now, semaphore));
    }
}

impl Drop for LogicalDevice {
    fn drop(&mut self) {
        // Every child object keeps the device alive, so only running work is left.
        self.wait_idle();
        for (_, semaphore) in self.retired_semaphores.get_mut().drain(..) {
            // SAFETY: ours, and the device is idle.
            unsafe { self.handle.destroy_semaphore(semaphore, None) };
        }
        drop(self.memory_pool.get_mut().take());
        // SAFETY: ours, and the device is idle.
        unsafe { self.handle.destroy_device(None) };
    }
}

fn create(
    instance: &Instance,
    physical: PhysicalDevice,
    caps: &DeviceCaps,
    options: DeviceOptions,
    compute: QueueFamily,
    transfer: Option<QueueFamily>,
) -> Result<ash::Device> {
    let priorities = [1.0_f32; MAX_COMPUTE_QUEUES as usize];
    let queue = |family: QueueFamily, most: u32| {
        vk::DeviceQueueCreateInfo::default()
            .queue_family_index(family.index)
            .queue_priorities(&priorities[..family.count.min(most) as usize])
    };
    let compute = queue(compute, MAX_COMPUTE_QUEUES);
    let queues: Vec<_> =
        std::iter::once(compute).chain(transfer.map(|family| queue(family, MAX_TRANSFER_QUEUES))).collect();
    let extensions: Vec<_> = extensions(caps).into_iter().map(CStr::as_ptr).collect();
    let enabled = &caps.enabled;
    let mut v11 = enabled.v11();
    let mut v12 = enabled.v12();
    let mut v13 = enabled.v13();
    let mut atomics = enabled.atomics();
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut executable =
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
    let mut faults = vk::PhysicalDeviceFaultFeaturesEXT::default().device_fault(true);
    let mut barriers = vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
    let mut robustness = vk::PhysicalDevicePipelineRobustnessFeaturesEXT::default().pipeline_robustness(true);
    let mut all = vk::PhysicalDeviceFeatures2::default().features(enabled.core(options.robust));
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .push_next(&mut all)
        .push_next(&mut v11)
        .push_next(&mut v12);
    let features = caps.features;
    info = match caps.version.minor >= 3 {
        true => info.push_next(&mut v13),
        // From 1.3 on it is a part of `v13`.
        false if features.synchronization2 => info.push_next(&mut barriers),
        false => info,
    };
    info = if features.atomics_f32 { info.push_next(&mut atomics) } else { info };
    info = if features.cooperative_matrix { info.push_next(&mut matrices) } else { info };
    info = if features.executable_properties { info.push_next(&mut executable) } else { info };
    info = if features.device_fault { info.push_next(&mut faults) } else { info };
    info = if features.pipeline_robustness { info.push_next(&mut robustness) } else { info };
    // SAFETY: the device belongs to this instance and has what is enabled; the chain outlives the call.
    let created = unsafe { instance.handle.create_device(physical.0, &info, None) };
    let created = created.map_err(|code| status::error("vkCreateDevice", code))?;
    let missing = REQUIRED.into_iter().find(|name| {
        // SAFETY: the device was just created, and the name is null-terminated.
        unsafe { instance.handle.get_device_proc_addr(created.handle(), name.as_ptr()) }.is_none()
    });
    let Some(missing) = missing else { return Ok(created) };
    // SAFETY: just created, without child objects.
    unsafe { created.destroy_device(None) };
    let missing = missing.to_string_lossy();
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("the driver lacks {missing}, which Vulkan 1.2 requires; reinstall it"),
    ))
}

/// The extensions to enable: those that the device has and that the backend or kernels can use.
fn extensions(caps: &DeviceCaps) -> Vec<&'static CStr> {
    let features = caps.features;
    let enabled = [
        (features.push_descriptors, ash::khr::push_descriptor::NAME),
        (features.host_import, ash::ext::external_memory_host::NAME),
        (features.executable_properties, ash::khr::pipeline_executable_properties::NAME),
        (features.device_fault, ash::ext::device_fault::NAME),
        (features.calibrated_timestamps, ash::ext::calibrated_timestamps::NAME),
        (features.memory_budget, ash::ext::memory_budget::NAME),
        (features.synchronization2 && caps.version.minor < 3, ash::khr::synchronization2::NAME),
        (features.pipeline_robustness, ash::ext::pipeline_robustness::NAME),
        (features.atomics_f32, ash::ext::shader_atomic_float::NAME),
        (features.cooperative_matrix, ash::khr::cooperative_matrix::NAME),
        // The specification requires it to be enabled where it exists.
        (has_extension(caps, ash::khr::portability_subset::NAME), ash::khr::portability_subset::NAME),
    ];
    enabled.into_iter().filter(|(supported, _)| *supported).map(|(_, name)| name).collect()
}

/// An `OutOfResources` error.
pub(super) fn out_of_resources(message: &str) -> Error {
    Error::new(ErrorKind::OutOfResources, message)
}
