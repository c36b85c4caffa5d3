//! The allocator of device memory, with freed memory that is kept for later tensors.

use ash::vk::MemoryPropertyFlags as Flags;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, Allocator};
use gpu_allocator::{AllocationError, MemoryLocation};

/// Smallest allocation that is kept: the allocator itself keeps a block for smaller ones.
const MIN_KEPT_BYTES: u64 = 16 << 20;

/// The allocator of a device.
pub(super) struct MemoryPool {
    allocator: Allocator,
    /// Freed memory of tensors. NVIDIA's driver (580.159, H200) takes 29 ms for each GiB that it allocates.
    kept: Vec<Allocation>,
    /// Whether the device has memory of its own: what is the host's, other programs need.
    keeps: bool,
}

impl MemoryPool {
    pub(super) const fn new(allocator: Allocator, keeps: bool) -> Self {
        Self { allocator, kept: Vec::new(), keeps }
    }

    /// Allocates memory, on the device from what is kept if something has the size. Gives back what is kept if there is no more memory.
    ///
    /// # Errors
    /// Those of the allocator.
    pub(super) fn allocate(
        &mut self,
        request: &AllocationCreateDesc<'_>,
    ) -> Result<Allocation, AllocationError> {
        if let Some(kept) = self.take(request) {
            return Ok(kept);
        }
        let allocated = self.allocator.allocate(request);
        let is_short = match &allocated {
            // The allocator takes memory of the host instead.
            Ok(memory) => {
                needed(request.location).is_some_and(|flags| !memory.memory_properties().contains(flags))
            }
            Err(failure) => matches!(failure, AllocationError::OutOfMemory),
        };
        if !is_short || self.kept.is_empty() {
            return allocated;
        }
        if let Ok(memory) = allocated {
            self.allocator.free(memory)?;
        }
        self.give_back();
        self.allocator.allocate(request)
    }

    /// The smallest memory that is kept and has room for a request, which uses most of it.
    fn take(&mut self, request: &AllocationCreateDesc<'_>) -> Option<Allocation> {
        let (size, alignment) = (request.requirements.size, request.requirements.alignment);
        let fits = |kept: &Allocation| {
            (size..=size.saturating_add(size / 8)).contains(&kept.size())
                && kept.offset().is_multiple_of(alignment)
        };
        let needed = needed(request.location)?;
        let serves = |kept: &Allocation| kept.memory_properties().contains(needed) && fits(kept);
        let kept = self.kept.iter().enumerate().filter(|(_, kept)| serves(kept));
        let (at, _) = kept.min_by_key(|(_, kept)| kept.size())?;
        Some(self.kept.swap_remove(at))
    }

    /// Frees memory, or keeps it.
    pub(super) fn free(&mut self, allocation: Allocation) {
        let is_device = allocation.memory_properties().contains(Flags::DEVICE_LOCAL);
        if self.keeps && is_device && allocation.size() >= MIN_KEPT_BYTES {
            self.kept.push(allocation);
        } else {
            // Fails only for an allocation of another allocator.
            let _ = self.allocator.free(allocation);
        }
    }

    /// Bytes that are kept.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept.iter().map(Allocation::size).sum()
    }

    fn give_back(&mut self) {
        for kept in self.kept.drain(..) {
            // As above.
            let _ = self.allocator.free(kept);
        }
    }
}

/// What memory of the device has; `None` for memory of the host.
const fn needed(location: MemoryLocation) -> Option<Flags> {
    match location {
        MemoryLocation::GpuOnly => Some(Flags::DEVICE_LOCAL),
        MemoryLocation::CpuToGpu => {
            Some(Flags::from_raw(Flags::DEVICE_LOCAL.as_raw() | Flags::HOST_VISIBLE.as_raw()))
        }
        _ => None,
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        self.give_back();
    }
}
