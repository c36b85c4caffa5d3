//! Plain Vulkan, as in a small hand-written program: the baseline of the comparison.
//!
//! It enables only what it needs, checks nothing, and frees nothing before the process ends.

#![allow(unsafe_code, reason = "calls the driver: that is what is compared with")]

use std::ffi::CStr;

use ash::vk;

/// Tensors of the kernel.
pub(crate) const TENSORS: usize = 3;
/// Bytes of each.
pub(crate) const TENSOR_BYTES: u64 = 256;

/// A buffer with its own memory, and its mapped address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) buffer: vk::Buffer,
    pub(crate) mapped: *mut u8,
}

/// A device with a queue, a pipeline and its arguments.
pub(crate) struct Raw {
    _entry: ash::Entry,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
    memory: vk::PhysicalDeviceMemoryProperties,
    family: u32,
    pool: vk::CommandPool,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    set: vk::DescriptorSet,
    semaphore: vk::Semaphore,
    /// The last value of the semaphore that was submitted.
    value: u64,
    stamps: vk::QueryPool,
    pub(crate) period_ns: f64,
}

#[track_caller]
fn ok<T>(result: ash::prelude::VkResult<T>) -> T {
    result.expect("the driver answers an error")
}

impl Raw {
    /// Opens the device with this UUID, for a kernel of [`TENSORS`] buffers and one scalar; `None` without a driver.
    pub(crate) fn open(uuid: [u8; 16], code: &[u32], entry_point: &CStr) -> Option<Self> {
        // SAFETY: the system's loader may be loaded at any time.
        let entry = unsafe { ash::Entry::load() }.ok()?;
        let about = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        // SAFETY: the structure is complete.
        let instance = unsafe {
            entry.create_instance(&vk::InstanceCreateInfo::default().application_info(&about), None)
        };
        let instance = instance.ok()?;
        // SAFETY: the instance is alive.
        let physical = unsafe { instance.enumerate_physical_devices() }.ok()?;
        let physical = physical.into_iter().find(|device| uuid_of(&instance, *device) == uuid)?;
        let family = family(&instance, physical)?;
        let device = device(&instance, physical, family);
        // SAFETY: the physical device is of the instance.
        let memory = unsafe { instance.get_physical_device_memory_properties(physical) };
        // SAFETY: as above.
        let limits = unsafe { instance.get_physical_device_properties(physical) }.limits;
        // SAFETY: the device was made with a queue of this family.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let (layouts, layout) = layout(&device);
        let pipeline = pipeline(&device, layout, code, entry_point);
        let mut raw = Self {
            pool: pool(&device, family),
            semaphore: semaphore(&device),
            stamps: stamps(&device),
            _entry: entry,
            device,
            family,
            queue,
            memory,
            layout,
            pipeline,
            set: vk::DescriptorSet::null(),
            value: 0,
            period_ns: f64::from(limits.timestamp_period),
        };
        raw.set = raw.arguments(layouts);
        Some(raw)
    }

    /// A descriptor set of three buffers in the device's memory.
    fn arguments(&self, layout: vk::DescriptorSetLayout) -> vk::DescriptorSet {
        let count = u32::try_from(TENSORS).unwrap_or(0);
        let sizes =
            [vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: count }];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
        // SAFETY: the structure is complete.
        let pool = ok(unsafe { self.device.create_descriptor_pool(&info, None) });
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        // SAFETY: the pool has room for it.
        let set = ok(unsafe { self.device.allocate_descriptor_sets(&info) })[0];
        for binding in 0..count {
            let buffer = self.device_buffer(TENSOR_BYTES).buffer;
            let whole = [vk::DescriptorBufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE }];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&whole);
            // SAFETY: set and buffer are alive, and nothing uses the set yet.
            unsafe { self.device.update_descriptor_sets(&[write], &[]) };
        }
        set
    }

    /// A buffer in the device's own memory.
    pub(crate) fn device_buffer(&self, bytes: u64) -> Buffer {
        self.buffer(bytes, &[vk::MemoryPropertyFlags::DEVICE_LOCAL])
    }

    /// A host-visible buffer in device memory; `None` if there is none of that size.
    pub(crate) fn reachable_buffer(&self, bytes: u64) -> Option<Buffer> {
        let wanted = vk::MemoryPropertyFlags::DEVICE_LOCAL | REACHABLE;
        self.kind(u32::MAX, wanted).map(|_| self.buffer(bytes, &[wanted]))
    }

    /// A buffer in host memory; cached, if possible, for reading.
    pub(crate) fn host_buffer(&self, bytes: u64) -> Buffer {
        self.buffer(bytes, &[REACHABLE | vk::MemoryPropertyFlags::HOST_CACHED, REACHABLE])
    }

    fn buffer(&self, bytes: u64, wishes: &[vk::MemoryPropertyFlags]) -> Buffer {
        use vk::BufferUsageFlags as Usage;
        let usage = Usage::STORAGE_BUFFER | Usage::TRANSFER_SRC | Usage::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(bytes).usage(usage);
        // SAFETY: the structure is complete.
        let buffer = ok(unsafe { self.device.create_buffer(&info, None) });
        // SAFETY: the buffer is alive.
        let needs = unsafe { self.device.get_buffer_memory_requirements(buffer) };
        let kind = wishes.iter().find_map(|wish| self.kind(needs.memory_type_bits, *wish));
        let (index, flags) = kind.expect("memory of that kind");
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(index);
        // SAFETY: the structure is complete.
        let memory = ok(unsafe { self.device.allocate_memory(&info, None) });
        // SAFETY: both are new, and the memory is large enough.
        ok(unsafe { self.device.bind_buffer_memory(buffer, memory, 0) });
        let mapped = if flags.contains(REACHABLE) {
            // SAFETY: the memory is reachable and not mapped yet.
            ok(unsafe { self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) })
        } else {
            std::ptr::null_mut()
        };
        Buffer { buffer, mapped: mapped.cast() }
    }

    fn kind(&self, allowed: u32, wanted: vk::MemoryPropertyFlags) -> Option<(u32, vk::MemoryPropertyFlags)> {
        let kinds = self.memory.memory_types_as_slice().iter().zip(0u32..);
        let mut fitting =
            kinds.filter(|(kind, index)| allowed & (1 << index) != 0 && kind.property_flags.contains(wanted));
        fitting.next().map(|(kind, index)| (index, kind.property_flags))
    }

    /// Allocates command buffers.
    pub(crate) fn command_buffers(&self, count: u32) -> Vec<vk::CommandBuffer> {
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(count);
        // SAFETY: the structure is complete.
        ok(unsafe { self.device.allocate_command_buffers(&info) })
    }

    /// A command buffer with its own pool, which is never freed.
    pub(crate) fn command_buffer_of_its_own(&self) -> (vk::CommandPool, vk::CommandBuffer) {
        let pool = pool(&self.device, self.family);
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        // SAFETY: the structure is complete.
        (pool, ok(unsafe { self.device.allocate_command_buffers(&info) })[0])
    }

    /// Resets all command buffers of a pool.
    pub(crate) fn reset(&self, pool: vk::CommandPool) {
        // SAFETY: what was recorded has ended.
        ok(unsafe { self.device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()) });
    }

    /// Starts recording.
    pub(crate) fn begin(&self, commands: vk::CommandBuffer) {
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer has ended or never began.
        ok(unsafe { self.device.begin_command_buffer(commands, &info) });
    }

    /// Records a launch after everything before it.
    pub(crate) fn dispatch(&self, commands: vk::CommandBuffer, scale: f32) {
        self.barrier(commands);
        self.bind_all(commands, scale);
        // SAFETY: the command buffer is being recorded, and what it names is alive.
        unsafe { self.device.cmd_dispatch(commands, 1, 1, 1) };
    }

    /// Records all that a launch needs.
    pub(crate) fn bind_all(&self, commands: vk::CommandBuffer, scale: f32) {
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the command buffer is being recorded, and what it names is alive.
        unsafe { self.device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]) };
        self.bind(commands, scale);
    }

    /// Records the kernel and its scalar.
    pub(crate) fn bind(&self, commands: vk::CommandBuffer, scale: f32) {
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: as above.
        unsafe { self.device.cmd_bind_pipeline(commands, point, self.pipeline) };
        let (stage, bytes) = (vk::ShaderStageFlags::COMPUTE, scale.to_le_bytes());
        // SAFETY: as above; the layout has these bytes.
        unsafe { self.device.cmd_push_constants(commands, self.layout, stage, 0, &bytes) };
    }

    /// Records a barrier: later commands see the writes of earlier kernels and copies.
    pub(crate) fn barrier(&self, commands: vk::CommandBuffer) {
        use vk::{AccessFlags2 as Access, PipelineStageFlags2 as Stage};
        let barrier = [vk::MemoryBarrier2::default()
            .src_stage_mask(Stage::COMPUTE_SHADER | Stage::ALL_TRANSFER)
            .src_access_mask(Access::SHADER_STORAGE_WRITE | Access::TRANSFER_WRITE)
            .dst_stage_mask(Stage::COMPUTE_SHADER | Stage::ALL_TRANSFER)
            .dst_access_mask(Access::SHADER_STORAGE_READ | Access::SHADER_STORAGE_WRITE)];
        let info = vk::DependencyInfo::default().memory_barriers(&barrier);
        // SAFETY: the command buffer is being recorded.
        unsafe { self.device.cmd_pipeline_barrier2(commands, &info) };
    }

    /// Ends recording and submits; returns the semaphore value that signals the end.
    pub(crate) fn submit(&mut self, commands: vk::CommandBuffer) -> u64 {
        // SAFETY: the command buffer is being recorded.
        ok(unsafe { self.device.end_command_buffer(commands) });
        self.value += 1;
        let buffers = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        let signals = [vk::SemaphoreSubmitInfo::default()
            .semaphore(self.semaphore)
            .value(self.value)
            .stage_mask(vk::PipelineStageFlags2::ALL_COMMANDS)];
        let info =
            [vk::SubmitInfo2::default().command_buffer_infos(&buffers).signal_semaphore_infos(&signals)];
        // SAFETY: the structures are complete, and this thread alone uses the queue.
        ok(unsafe { self.device.queue_submit2(self.queue, &info, vk::Fence::null()) });
        self.value
    }

    /// The current value of the semaphore.
    pub(crate) fn value(&self) -> u64 {
        // SAFETY: the semaphore is alive.
        ok(unsafe { self.device.get_semaphore_counter_value(self.semaphore) })
    }

    /// Waits for the last submission.
    pub(crate) fn wait(&self) {
        let (semaphores, values) = ([self.semaphore], [self.value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the structures are complete.
        ok(unsafe { self.device.wait_semaphores(&info, u64::MAX) });
    }

    /// Copies from one buffer to another, and waits.
    pub(crate) fn copy(&mut self, commands: vk::CommandBuffer, to: &Buffer, from: &Buffer, size: u64) {
        self.begin(commands);
        let region = [vk::BufferCopy { src_offset: 0, dst_offset: 0, size }];
        // SAFETY: both buffers are alive and large enough, and the command buffer is being recorded.
        unsafe { self.device.cmd_copy_buffer(commands, from.buffer, to.buffer, &region) };
        self.submit(commands);
        self.wait();
    }

    /// The time of a launch by the device's clock.
    pub(crate) fn kernel_ns(&mut self, commands: vk::CommandBuffer, groups: u32) -> f64 {
        self.begin(commands);
        // SAFETY: the command buffer is being recorded, as in what follows.
        unsafe { self.device.cmd_reset_query_pool(commands, self.stamps, 0, 2) };
        self.stamp(commands, 0);
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: as above.
        unsafe { self.device.cmd_bind_pipeline(commands, point, self.pipeline) };
        // SAFETY: as above.
        unsafe { self.device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]) };
        // SAFETY: as above.
        unsafe { self.device.cmd_dispatch(commands, groups, 1, 1) };
        self.stamp(commands, 1);
        self.submit(commands);
        self.wait();
        let mut ticks = [0u64; 2];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: the commands that write both have ended.
        ok(unsafe { self.device.get_query_pool_results(self.stamps, 0, &mut ticks, flags) });
        #[expect(clippy::cast_precision_loss, reason = "durations are short")]
        let ticks = ticks[1].wrapping_sub(ticks[0]) as f64;
        ticks * self.period_ns
    }

    fn stamp(&self, commands: vk::CommandBuffer, index: u32) {
        let stage = vk::PipelineStageFlags2::ALL_COMMANDS;
        // SAFETY: the command buffer is being recorded, and the query was reset in it.
        unsafe { self.device.cmd_write_timestamp2(commands, stage, self.stamps, index) };
    }
}

const REACHABLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
    vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw() | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw(),
);

fn uuid_of(instance: &ash::Instance, device: vk::PhysicalDevice) -> [u8; 16] {
    let mut id = vk::PhysicalDeviceIDProperties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
    // SAFETY: the physical device is of the instance.
    unsafe { instance.get_physical_device_properties2(device, &mut properties) };
    id.device_uuid
}

/// The first family for compute without graphics, else the first for compute.
fn family(instance: &ash::Instance, device: vk::PhysicalDevice) -> Option<u32> {
    // SAFETY: the physical device is of the instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(device) };
    let compute = |index: &usize| families[*index].queue_flags.contains(vk::QueueFlags::COMPUTE);
    let graphics = |index: &usize| families[*index].queue_flags.contains(vk::QueueFlags::GRAPHICS);
    let all = 0..families.len();
    let alone = all.clone().filter(compute).find(|index| !graphics(index));
    u32::try_from(alone.or_else(|| all.clone().find(compute))?).ok()
}

fn device(instance: &ash::Instance, physical: vk::PhysicalDevice, family: u32) -> ash::Device {
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
    let mut supported = vk::PhysicalDeviceFeatures2::default();
    // SAFETY: the physical device is of the instance.
    unsafe { instance.get_physical_device_features2(physical, &mut supported) };
    let mut twelve = vk::PhysicalDeviceVulkan12Features::default().timeline_semaphore(true);
    let mut thirteen = vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut twelve);
    let info = info.enabled_features(&supported.features).push_next(&mut thirteen);
    // SAFETY: the structures are complete.
    ok(unsafe { instance.create_device(physical, &info, None) })
}

fn pool(device: &ash::Device, family: u32) -> vk::CommandPool {
    let info = vk::CommandPoolCreateInfo::default()
        .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
        .queue_family_index(family);
    // SAFETY: the structure is complete.
    ok(unsafe { device.create_command_pool(&info, None) })
}

fn semaphore(device: &ash::Device) -> vk::Semaphore {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: the structures are complete.
    ok(unsafe { device.create_semaphore(&info, None) })
}

fn stamps(device: &ash::Device) -> vk::QueryPool {
    let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(2);
    // SAFETY: the structure is complete.
    ok(unsafe { device.create_query_pool(&info, None) })
}

fn layout(device: &ash::Device) -> (vk::DescriptorSetLayout, vk::PipelineLayout) {
    let bindings: [_; TENSORS] = std::array::from_fn(|binding| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(u32::try_from(binding).unwrap_or(0))
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    });
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the structure is complete.
    let sets = ok(unsafe { device.create_descriptor_set_layout(&info, None) });
    let (layouts, range) =
        ([sets], [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 4 }]);
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&range);
    // SAFETY: the structure is complete.
    (sets, ok(unsafe { device.create_pipeline_layout(&info, None) }))
}

fn pipeline(
    device: &ash::Device,
    layout: vk::PipelineLayout,
    code: &[u32],
    entry_point: &CStr,
) -> vk::Pipeline {
    // SAFETY: the code is complete.
    let module =
        ok(unsafe { device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(code), None) });
    let stage = vk::PipelineShaderStageCreateInfo::default()
        .stage(vk::ShaderStageFlags::COMPUTE)
        .module(module)
        .name(entry_point);
    let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
    // SAFETY: the structures are complete.
    let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &info, None) };
    made.expect("the driver takes the code")[0]
}
