//! Recording commands.

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use runtime_core::Result;
use smallvec::SmallVec;

use super::barriers::Order;
use super::pipeline::{Binding, Pipeline};
use super::{Logical, Memory};

/// Descriptor sets that a pool of them has, and the buffers that they name together.
const POOL_SETS: u32 = 64;
const POOL_BINDINGS: u32 = 512;

/// Rows that one command copies.
const MOST_REGIONS: usize = 4096;

/// What commands are made of; one thread at a time records into those of a pool.
#[derive(Debug)]
pub(crate) struct Pool {
    logical: Arc<Logical>,
    handle: vk::CommandPool,
    copies_only: bool,
}

/// A list of commands, and the descriptor sets that they use.
#[derive(Debug)]
pub(crate) struct Commands {
    logical: Arc<Logical>,
    pub(super) handle: vk::CommandBuffer,
    /// They go to a queue that runs no kernels.
    copies_only: bool,
    sets: Sets,
    bound: Bound,
}

/// What was bound last, so that it is not bound again.
#[derive(Debug, Default)]
struct Bound {
    pipeline: vk::Pipeline,
    bindings: SmallVec<[Binding; 16]>,
    constants: SmallVec<[u8; 128]>,
}

impl Bound {
    fn forget(&mut self) {
        self.pipeline = vk::Pipeline::null();
        self.bindings.clear();
        self.constants.clear();
    }
}

/// Descriptor sets, for drivers that take no arguments in the commands themselves.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    pools: Vec<vk::DescriptorPool>,
    /// The pool that sets come from now.
    current: usize,
    /// Sets that were taken beforehand, and their layout.
    reserved: Vec<vk::DescriptorSet>,
    layout: vk::DescriptorSetLayout,
}

impl Pool {
    /// Makes a pool for a family of queues.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn new(logical: &Arc<Logical>, family: u32) -> Result<Self> {
        let info = vk::CommandPoolCreateInfo::default()
            .queue_family_index(family)
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER);
        // SAFETY: the device is open, with queues of this family.
        let made = unsafe { logical.handle.create_command_pool(&info, None) };
        let handle = logical.check("vkCreateCommandPool", made)?;
        let mut families = logical.facts.families.iter();
        let copies_only = families.any(|other| other.index == family && !other.compute);
        Ok(Self { logical: Arc::clone(logical), handle, copies_only })
    }

    /// Makes an empty list; `replayed` ones are part of others, again and again.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn commands(&self, replayed: bool) -> Result<Commands> {
        let level =
            if replayed { vk::CommandBufferLevel::SECONDARY } else { vk::CommandBufferLevel::PRIMARY };
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.handle)
            .level(level)
            .command_buffer_count(1);
        // SAFETY: the pool is alive.
        let made = unsafe { self.logical.handle.allocate_command_buffers(&info) };
        let made = self.logical.check("vkAllocateCommandBuffers", made)?;
        let handle = made.first().copied().unwrap_or_default();
        let (sets, bound) = (Sets::default(), Bound::default());
        let copies_only = self.copies_only;
        Ok(Commands { logical: Arc::clone(&self.logical), handle, copies_only, sets, bound })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: ours; the work that its lists describe has ended, and nobody records them any more.
        unsafe { self.logical.handle.destroy_command_pool(self.handle, None) };
    }
}

impl Commands {
    /// Begins a list that is handed over once.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.begin_with(
            &vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT),
        )
    }

    /// Begins a list that is part of others, again and again.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn begin_replayed(&mut self) -> Result<()> {
        let parent = vk::CommandBufferInheritanceInfo::default();
        self.begin_with(
            &vk::CommandBufferBeginInfo::default()
                .flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
                .inheritance_info(&parent),
        )
    }

    fn begin_with(&mut self, info: &vk::CommandBufferBeginInfo<'_>) -> Result<()> {
        self.bound.forget();
        self.sets.clear(&self.logical)?;
        // SAFETY: the list's earlier work has ended, so that it is reset here.
        let begun = unsafe { self.logical.handle.begin_command_buffer(self.handle, info) };
        self.logical.check("vkBeginCommandBuffer", begun)?;
        if !self.logical.shares_memory {
            self.order(Order::SEEN);
        }
        Ok(())
    }

    /// Ends the list.
    ///
    /// # Errors
    /// Whatever the driver says; `OutOfMemory` for what was recorded.
    pub(crate) fn end(&self) -> Result<()> {
        // SAFETY: the list was begun.
        let ended = unsafe { self.logical.handle.end_command_buffer(self.handle) };
        self.logical.check("vkEndCommandBuffer", ended)
    }

    /// Whatever comes later sees all that came before.
    #[inline]
    pub(crate) fn barrier(&self) {
        self.order(Order::WORK);
    }

    /// Kernels that come later see what kernels before them have done.
    #[inline]
    pub(crate) fn barrier_of_kernels(&self) {
        self.order(Order::KERNELS);
    }

    /// The program sees all that came before, once it knows that this has ended.
    pub(crate) fn publish(&self) {
        if !self.logical.shares_memory {
            self.order(Order::PUBLISHED);
        }
    }

    #[inline]
    fn order(&self, order: Order) {
        let order = if self.copies_only { order.without_kernels() } else { order };
        self.logical.barriers.record(&self.logical.handle, self.handle, order);
    }

    /// Takes what `count` dispatches of a kernel need, which follow at once: they do not fail.
    ///
    /// # Errors
    /// `OutOfMemory` for descriptor sets.
    pub(crate) fn reserve(&mut self, pipeline: &Pipeline, count: usize) -> Result<()> {
        self.sets.reserved.clear();
        self.sets.layout = pipeline.set_layout;
        if pipeline.pushed {
            return Ok(());
        }
        for _ in 0..count {
            let set = self.sets.allocate(&self.logical, pipeline)?;
            self.sets.reserved.push(set);
        }
        Ok(())
    }

    /// Runs a kernel. One that is refused leaves no command behind.
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
        let fresh = self.bound.pipeline != pipeline.handle;
        let rebound = if fresh { !bindings.is_empty() } else { bindings != self.bound.bindings.as_slice() };
        let set = if rebound && !pipeline.pushed {
            self.sets.take(&self.logical, pipeline)?
        } else {
            vk::DescriptorSet::null()
        };
        let device = &self.logical.handle;
        if fresh {
            // SAFETY: the list is being recorded, and the pipeline lives until its work has ended.
            unsafe {
                device.cmd_bind_pipeline(self.handle, vk::PipelineBindPoint::COMPUTE, pipeline.handle);
            }
            // Another kernel's layout disturbs what was bound for this one.
            self.bound.forget();
            self.bound.pipeline = pipeline.handle;
        }
        if rebound {
            self.bind(pipeline, bindings, set);
            self.bound.bindings.clear();
            self.bound.bindings.extend_from_slice(bindings);
        }
        let device = &self.logical.handle;
        if constants != self.bound.constants.as_slice() {
            let stage = vk::ShaderStageFlags::COMPUTE;
            // SAFETY: the list is being recorded, and the layout has room for as many bytes.
            unsafe { device.cmd_push_constants(self.handle, pipeline.layout, stage, 0, constants) };
            self.bound.constants.clear();
            self.bound.constants.extend_from_slice(constants);
        }
        // SAFETY: everything that the kernel takes is bound; what it does with it is vouched for by whoever loaded it.
        unsafe { device.cmd_dispatch(self.handle, x, y, z) };
        Ok(())
    }

    #[inline]
    fn bind(&self, pipeline: &Pipeline, bindings: &[Binding], set: vk::DescriptorSet) {
        debug_assert_eq!(bindings.len(), pipeline.bindings as usize, "one for each binding of the kernel");
        let data: *const c_void = bindings.as_ptr().cast();
        if let (true, Some(push)) = (pipeline.pushed, &self.logical.push) {
            // SAFETY: the template reads as many buffers as the kernel has, and so many there are.
            unsafe {
                push.cmd_push_descriptor_set_with_template(
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
        // SAFETY: as above, and no work uses the set yet.
        unsafe { device.update_descriptor_set_with_template(set, pipeline.template, data) };
        let point = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: the list is being recorded, and the set is of the pipeline's layout.
        unsafe { device.cmd_bind_descriptor_sets(self.handle, point, pipeline.layout, 0, &[set], &[]) };
    }

    /// Copies between buffers, from bytes counted from the first that counts.
    pub(crate) fn copy(&self, to: (&Memory, u64), from: (&Memory, u64), bytes: u64) {
        let region =
            vk::BufferCopy { src_offset: from.0.start + from.1, dst_offset: to.0.start + to.1, size: bytes };
        // SAFETY: the list is being recorded, both ranges lie within their buffers, and those live until the work has ended.
        unsafe { self.logical.handle.cmd_copy_buffer(self.handle, from.0.buffer, to.0.buffer, &[region]) };
    }

    /// Copies rows of `row_bytes` bytes, which lie a pitch apart on each side.
    pub(crate) fn copy_rows(
        &self,
        (to, to_pitch): ((&Memory, u64), u64),
        (from, from_pitch): ((&Memory, u64), u64),
        row_bytes: u64,
        rows: u64,
    ) {
        let region = |row: u64| vk::BufferCopy {
            src_offset: from.0.start + from.1 + row * from_pitch,
            dst_offset: to.0.start + to.1 + row * to_pitch,
            size: row_bytes,
        };
        for first in (0..rows).step_by(MOST_REGIONS) {
            let last = rows.min(first + MOST_REGIONS as u64);
            let regions: Vec<_> = (first..last).map(region).collect();
            // SAFETY: as for a plain copy, for every row.
            unsafe {
                self.logical.handle.cmd_copy_buffer(self.handle, from.0.buffer, to.0.buffer, &regions);
            }
        }
    }

    /// Fills whole words.
    pub(crate) fn fill(&self, to: (&Memory, u64), bytes: u64, word: u32) {
        let at = to.0.start + to.1;
        // SAFETY: the list is being recorded, and the range, which is of whole words, lies within the buffer.
        unsafe { self.logical.handle.cmd_fill_buffer(self.handle, to.0.buffer, at, bytes, word) };
    }

    /// Runs another list as part of this one.
    pub(crate) fn include(&mut self, other: &Self) {
        // SAFETY: the other list was ended, and may be part of several at once.
        unsafe { self.logical.handle.cmd_execute_commands(self.handle, &[other.handle]) };
        // It leaves behind what nobody knows.
        self.bound.forget();
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        for pool in self.sets.pools.drain(..) {
            // SAFETY: ours; the work that uses its sets has ended.
            unsafe { self.logical.handle.destroy_descriptor_pool(pool, None) };
        }
    }
}

impl Sets {
    /// Takes all sets back.
    fn clear(&mut self, logical: &Logical) -> Result<()> {
        for pool in &self.pools {
            // SAFETY: the work that uses its sets has ended.
            let done =
                unsafe { logical.handle.reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty()) };
            logical.check("vkResetDescriptorPool", done)?;
        }
        self.current = 0;
        self.reserved.clear();
        Ok(())
    }

    fn take(&mut self, logical: &Logical, pipeline: &Pipeline) -> Result<vk::DescriptorSet> {
        let reserved = if self.layout == pipeline.set_layout { self.reserved.pop() } else { None };
        reserved.map_or_else(|| self.allocate(logical, pipeline), Ok)
    }

    fn allocate(&mut self, logical: &Logical, pipeline: &Pipeline) -> Result<vk::DescriptorSet> {
        loop {
            let fresh = self.current == self.pools.len();
            if fresh {
                self.pools.push(pool(logical, pipeline.bindings)?);
            }
            let layouts = [pipeline.set_layout];
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pools[self.current])
                .set_layouts(&layouts);
            // SAFETY: the pool is ours, and the layout lives as long as the kernel.
            match unsafe { logical.handle.allocate_descriptor_sets(&info) } {
                Ok(sets) => return Ok(sets.first().copied().unwrap_or_default()),
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL) if !fresh => {
                    self.current += 1;
                }
                Err(code) => return Err(logical.fail("vkAllocateDescriptorSets", code)),
            }
        }
    }
}

fn pool(logical: &Logical, bindings: u32) -> Result<vk::DescriptorPool> {
    let sizes = [vk::DescriptorPoolSize {
        ty: vk::DescriptorType::STORAGE_BUFFER,
        descriptor_count: POOL_BINDINGS.max(bindings),
    }];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(POOL_SETS).pool_sizes(&sizes);
    // SAFETY: the device is open.
    let made = unsafe { logical.handle.create_descriptor_pool(&info, None) };
    logical.check("vkCreateDescriptorPool", made)
}
