//! Descriptor sets of one command buffer, for drivers or kernels without push descriptors. Freed only all at once.

use ash::vk;
use runtime_core::Result;

use super::LogicalDevice;
use super::pipeline::Pipeline;

/// Sets per descriptor pool.
const SETS_PER_POOL: u32 = 64;
/// Storage buffers that the sets of one pool name together.
const BUFFERS_PER_POOL: u32 = 512;

/// Descriptor pools, filled one after the other.
#[derive(Debug, Default)]
pub(super) struct DescriptorSets {
    pools: Vec<vk::DescriptorPool>,
    /// Index of the pool that sets are allocated from.
    current: usize,
    /// Sets allocated in advance, all of `reserved_layout`.
    reserved: Vec<vk::DescriptorSet>,
    reserved_layout: vk::DescriptorSetLayout,
}

impl DescriptorSets {
    /// Frees all sets, once the work that uses them has completed.
    pub(super) fn reset(&mut self, logical: &LogicalDevice) -> Result<()> {
        for pool in &self.pools {
            // SAFETY: the work that uses its sets has completed.
            let done =
                unsafe { logical.handle.reset_descriptor_pool(*pool, vk::DescriptorPoolResetFlags::empty()) };
            logical.check("vkResetDescriptorPool", done)?;
        }
        self.current = 0;
        self.reserved.clear();
        Ok(())
    }

    /// Allocates `count` sets in advance; the next [`allocate`](Self::allocate) calls for this kernel cannot fail.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn reserve(
        &mut self,
        logical: &LogicalDevice,
        pipeline: &Pipeline,
        count: usize,
    ) -> Result<()> {
        self.reserved.clear();
        self.reserved_layout = pipeline.set_layout;
        if pipeline.push_descriptors {
            return Ok(());
        }
        for _ in 0..count {
            let set = self.allocate_from_pool(logical, pipeline)?;
            self.reserved.push(set);
        }
        Ok(())
    }

    /// A set for one dispatch: a reserved one if there is one.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn allocate(
        &mut self,
        logical: &LogicalDevice,
        pipeline: &Pipeline,
    ) -> Result<vk::DescriptorSet> {
        let reserved = if self.reserved_layout == pipeline.set_layout { self.reserved.pop() } else { None };
        reserved.map_or_else(|| self.allocate_from_pool(logical, pipeline), Ok)
    }

    fn allocate_from_pool(
        &mut self,
        logical: &LogicalDevice,
        pipeline: &Pipeline,
    ) -> Result<vk::DescriptorSet> {
        loop {
            let is_new_pool = self.current == self.pools.len();
            if is_new_pool {
                self.pools.push(create_pool(logical, pipeline.bindings)?);
            }
            let layouts = [pipeline.set_layout];
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.pools[self.current])
                .set_layouts(&layouts);
            // SAFETY: the pool is ours, and the layout lives as long as the kernel.
            match unsafe { logical.handle.allocate_descriptor_sets(&info) } {
                Ok(sets) => return Ok(sets.first().copied().unwrap_or_default()),
                Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL)
                    if !is_new_pool =>
                {
                    self.current += 1;
                }
                Err(code) => return Err(logical.fail("vkAllocateDescriptorSets", code)),
            }
        }
    }

    /// Destroys the pools, once the work that uses their sets has completed.
    pub(super) fn destroy(&mut self, logical: &LogicalDevice) {
        for pool in self.pools.drain(..) {
            // SAFETY: ours; the work that uses its sets has completed.
            unsafe { logical.handle.destroy_descriptor_pool(pool, None) };
        }
    }
}

fn create_pool(logical: &LogicalDevice, bindings: u32) -> Result<vk::DescriptorPool> {
    let sizes = [vk::DescriptorPoolSize {
        ty: vk::DescriptorType::STORAGE_BUFFER,
        descriptor_count: BUFFERS_PER_POOL.max(bindings),
    }];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(SETS_PER_POOL).pool_sizes(&sizes);
    // SAFETY: the device is open.
    let created = unsafe { logical.handle.create_descriptor_pool(&info, None) };
    logical.check("vkCreateDescriptorPool", created)
}
