//! Command pools and command buffers: recording kernels, copies, fills and barriers.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use runtime_core::Result;
use smallvec::SmallVec;

use super::barrier::Barrier;
use super::descriptor_sets::DescriptorSets;
use super::pipeline::{Binding, Pipeline};
use super::{LogicalDevice, Memory};

/// Rows that one `vkCmdCopyBuffer` copies.
const MAX_COPY_REGIONS: usize = 4096;

/// A command pool. Only one thread at a time may record into its command buffers.
#[derive(Debug)]
pub(crate) struct CommandPool {
    logical: Arc<LogicalDevice>,
    handle: vk::CommandPool,
    transfer_only: bool,
}

/// A command buffer and the descriptor sets that it uses.
#[derive(Debug)]
pub(crate) struct CommandBuffer {
    logical: Arc<LogicalDevice>,
    pub(super) handle: vk::CommandBuffer,
    /// It is submitted to a queue that runs no kernels.
    transfer_only: bool,
    sets: DescriptorSets,
    bound: BoundState,
}

/// The pipeline and arguments bound last, so that they are not bound again.
#[derive(Debug, Default)]
struct BoundState {
    pipeline: vk::Pipeline,
    bindings: SmallVec<[Binding; 16]>,
    constants: SmallVec<[u8; 128]>,
}

impl BoundState {
    fn invalidate(&mut self) {
        self.pipeline = vk::Pipeline::null();
        self.bindings.clear();
        self.constants.clear();
    }
}

impl CommandPool {
    /// Creates a pool for a queue family.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn new(logical: &Arc<LogicalDevice>, family: u32) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: the device is open, with queues of this family.
        let created = unsafe { logical.handle.create_command_pool(&info, None) };
        let handle = logical.check("vkCreateCommandPool", created)?;
        let mut families = logical.caps.queue_families.iter();
        let transfer_only = families.any(|other| other.index == family && !other.compute);
        Ok(Self { logical: Arc::clone(logical), handle, transfer_only })
    }

    /// Allocates a primary command buffer.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn allocate(&self) -> Result<CommandBuffer> {
        self.allocate_at(vk::CommandBufferLevel::PRIMARY)
    }

    /// Allocates a secondary command buffer, which primary ones execute any number of times.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn allocate_secondary(&self) -> Result<CommandBuffer> {
        self.allocate_at(vk::CommandBufferLevel::SECONDARY)
    }

    fn allocate_at(&self, level: vk::CommandBufferLevel) -> Result<CommandBuffer> {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.handle)
            .level(level)
            .command_buffer_count(1);
        // SAFETY: the pool is alive.
        let allocated = unsafe { self.logical.handle.allocate_command_buffers(&info) };
        let allocated = self.logical.check("vkAllocateCommandBuffers", allocated)?;
        Ok(CommandBuffer {
            logical: Arc::clone(&self.logical),
            handle: allocated.first().copied().unwrap_or_default(),
            transfer_only: self.transfer_only,
            sets: DescriptorSets::default(),
            bound: BoundState::default(),
        })
    }
}

impl Drop for CommandPool {
    fn drop(&mut self) {
        // SAFETY: ours; the work of its command buffers has completed, and none is being recorded.
        unsafe { self.logical.handle.destroy_command_pool(self.handle, None) };
    }
}

impl CommandBuffer {
    /// Begins a command buffer that is submitted once.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.begin_with(
            &vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT),
        )
    }

    /// Begins a secondary command buffer, which may be executed several times at once.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn begin_secondary(&mut self) -> Result<()> {
        let inherited = vk::CommandBufferInheritanceInfo::default();
        self.begin_with(
            &vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
                .inheritance_info(&inherited),
        )
    }

    fn begin_with(&mut self, info: &vk::CommandBufferBeginInfo<'_>) -> Result<()> {
        self.bound.invalidate();
        self.sets.reset(&self.logical)?;
        // SAFETY: its earlier work has completed, so beginning it resets it.
        let begun = unsafe { self.logical.handle.begin_command_buffer(self.handle, info) };
        self.logical.check("vkBeginCommandBuffer", begun)?;
        if !self.logical.is_host_cpu {
            self.record_barrier(Barrier::ACQUIRE_COMPLETED);
        }
        Ok(())
    }

    /// Ends recording.
    ///
    /// # Errors
    /// The driver's error; `OutOfMemory` for what was recorded.
    pub(crate) fn end(&self) -> Result<()> {
        // SAFETY: the command buffer is in the recording state.
        let ended = unsafe { self.logical.handle.end_command_buffer(self.handle) };
        self.logical.check("vkEndCommandBuffer", ended)
    }

    /// Orders all earlier commands before all later ones.
    #[inline]
    pub(crate) fn barrier(&self) {
        self.record_barrier(Barrier::ALL_WORK);
    }

    /// Orders earlier kernels before later kernels.
    #[inline]
    pub(crate) fn kernel_barrier(&self) {
        self.record_barrier(Barrier::KERNELS);
    }

    /// Makes all earlier writes visible to the host, once it has seen them complete.
    pub(crate) fn make_host_visible(&self) {
        if !self.logical.is_host_cpu {
            self.record_barrier(Barrier::TO_HOST);
        }
    }

    /// Orders work that others have submitted to the same `VkQueue` before all later commands.
    pub(crate) fn barrier_behind_foreign_work(&self) {
        self.record_barrier(Barrier::FOREIGN_WORK);
    }

    #[inline]
    fn record_barrier(&self, barrier: Barrier) {
        let barrier = if self.transfer_only { barrier.without_kernels() } else { barrier };
        self.logical.barriers.record(&self.logical.handle, self.handle, barrier);
    }

    /// Allocates the descriptor sets of `count` dispatches of a kernel, so that those cannot fail if they follow at once.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    pub(crate) fn reserve(&mut self, pipeline: &Pipeline, count: usize) -> Result<()> {
        self.sets.reserve(&self.logical, pipeline, count)
    }

    /// Runs a kernel. On an error no command is recorded.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    #[inline]
    pub(crate) fn dispatch(
        &mut self,
        pipeline: &Pipeline,
        bindings: &[Binding],
        constants: &[u8],
        [x, y, z]: [u32; 3],
    ) -> Result<()> {
        let new_pipeline = self.bound.pipeline != pipeline.handle;
        let new_bindings =
            if new_pipeline { !bindings.is_empty() } else { bindings != self.bound.bindings.as_slice() };
        let set = if new_bindings && !pipeline.push_descriptors {
            self.sets.allocate(&self.logical, pipeline)?
        } else {
            vk::DescriptorSet::null()
        };
        let device = &self.logical.handle;
        if new_pipeline {
            // SAFETY: the command buffer is in the recording state, and the pipeline lives until its work has completed.
            unsafe {
                device.cmd_bind_pipeline(self.handle, vk::PipelineBindPoint::COMPUTE, pipeline.handle);
            }
            // Another pipeline layout invalidates what was bound.
            self.bound.invalidate();
            self.bound.pipeline = pipeline.handle;
        }
        if new_bindings {
            self.bind(pipeline, bindings, set);
            self.bound.bindings.clear();
            self.bound.bindings.extend_from_slice(bindings);
        }
        let device = &self.logical.handle;
        if constants != self.bound.constants.as_slice() {
            let stage = vk::ShaderStageFlags::COMPUTE;
            // SAFETY: the command buffer is in the recording state, and the layout has room for as many bytes.
            unsafe { device.cmd_push_constants(self.handle, pipeline.layout, stage, 0, constants) };
            self.bound.constants.clear();
            self.bound.constants.extend_from_slice(constants);
        }
        // SAFETY: every argument is bound; whoever loaded the kernel guarantees what it does with them.
        unsafe { device.cmd_dispatch(self.handle, x, y, z) };
        Ok(())
    }

    #[inline]
    fn bind(&self, pipeline: &Pipeline, bindings: &[Binding], set: vk::DescriptorSet) {
        debug_assert_eq!(bindings.len(), pipeline.bindings as usize, "one for each binding of the kernel");
        let data: *const c_void = bindings.as_ptr().cast();
        if let (true, Some(push_descriptor)) = (pipeline.push_descriptors, &self.logical.push_descriptor) {
            // SAFETY: the template reads one entry for each binding of the kernel, and `bindings` has as many.
            unsafe {
                push_descriptor.cmd_push_descriptor_set_with_template(
                    self.handle,
                    pipeline.template,
                    pipeline.layout,
                    0,
                    data,
                );
            }
            return;
        }
        let device = &self.logical.handle;
        // SAFETY: the template reads as many entries as `bindings` has, and no work uses the set yet.
        unsafe { device.update_descriptor_set_with_template(set, pipeline.template, data) };
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the command buffer is in the recording state, and the set has the pipeline's layout.
        unsafe { device.cmd_bind_descriptor_sets(self.handle, point, pipeline.layout, 0, &[set], &[]) };
    }

    /// Copies between buffers; offsets are relative to the tensor's first byte.
    pub(crate) fn copy(&self, to: (&Memory, u64), from: (&Memory, u64), bytes: u64) {
        let region = vk::BufferCopy {
            src_offset: from.0.base_offset + from.1,
            dst_offset: to.0.base_offset + to.1,
            size: bytes,
        };
        // SAFETY: the command buffer is in the recording state; both ranges lie within their buffers, which live until
        // the work has completed.
        unsafe { self.logical.handle.cmd_copy_buffer(self.handle, from.0.buffer, to.0.buffer, &[region]) };
    }

    /// Copies rows of `row_bytes` bytes, with a pitch on each side.
    pub(crate) fn copy_2d(
        &self,
        (to, to_pitch): ((&Memory, u64), u64),
        (from, from_pitch): ((&Memory, u64), u64),
        row_bytes: u64,
        rows: u64,
    ) {
        let region = |row: u64| vk::BufferCopy {
            src_offset: from.0.base_offset + from.1 + row * from_pitch,
            dst_offset: to.0.base_offset + to.1 + row * to_pitch,
            size: row_bytes,
        };
        for first in (0..rows).step_by(MAX_COPY_REGIONS) {
            let last = rows.min(first + MAX_COPY_REGIONS as u64);
            let regions: Vec<_> = (first..last).map(region).collect();
            // SAFETY: as for `copy`, for every row.
            unsafe {
                self.logical.handle.cmd_copy_buffer(self.handle, from.0.buffer, to.0.buffer, &regions);
            }
        }
    }

    /// Fills whole 32-bit words.
    pub(crate) fn fill(&self, to: (&Memory, u64), bytes: u64, word: u32) {
        let at = to.0.base_offset + to.1;
        // SAFETY: the command buffer is in the recording state, and the range consists of whole words within the buffer.
        unsafe { self.logical.handle.cmd_fill_buffer(self.handle, to.0.buffer, at, bytes, word) };
    }

    /// Executes a secondary command buffer.
    pub(crate) fn execute(&mut self, secondary: &Self) {
        // SAFETY: the secondary command buffer was ended, and allows simultaneous use.
        unsafe { self.logical.handle.cmd_execute_commands(self.handle, &[secondary.handle]) };
        // Afterwards the bound state is undefined.
        self.bound.invalidate();
    }
}

impl Drop for CommandBuffer {
    fn drop(&mut self) {
        self.sets.destroy(&self.logical);
    }
}
