//! `VkBuffer`s with their memory: sub-allocated, or imported from the host.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk::{self, Handle};
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation as AllocatorLocation};
use runtime_core::backend::{HostRange, Piece};
use runtime_core::{Error, ErrorKind, Result};

use super::logical_device::LogicalDevice;
use super::status;

/// Where memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryLocation {
    /// On the device.
    Device,
    /// In host memory, cached by the CPU.
    Pinned,
    /// On the device, mapped into the host's address space.
    Shared,
}

/// A `VkBuffer` with memory of its own.
pub(crate) struct Memory {
    logical: Arc<LogicalDevice>,
    pub(super) buffer: vk::Buffer,
    backing: Backing,
    /// Offset of the tensor's first byte in the buffer; the bytes before it are there for alignment.
    pub(crate) base_offset: u64,
    /// Host address of the buffer's byte 0, if it is mapped.
    mapped: Option<NonNull<u8>>,
    host_cached: bool,
}

enum Backing {
    Unbound,
    /// The buffer is the program's.
    Borrowed,
    Suballocated(Allocation),
    Imported(vk::DeviceMemory),
}

// SAFETY: the memory stays mapped as long as this lives, and core orders accesses to it.
unsafe impl Send for Memory {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("buffer", &self.buffer)
            .field("base_offset", &self.base_offset)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// Allocates memory, aligned on the device and, if mapped, on the host.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn allocate(
        logical: &Arc<LogicalDevice>,
        location: MemoryLocation,
        bytes: u64,
        alignment: u64,
    ) -> Result<Self> {
        let memory = Self::allocate_unaligned(logical, location, bytes, alignment)?;
        let misaligned = memory.mapped.map_or(0, |pointer| pointer.addr().get() as u64 % alignment);
        if misaligned == 0 {
            return Ok(memory);
        }
        drop(memory);
        let bytes = bytes.checked_add(alignment).ok_or_else(|| size_overflow(bytes))?;
        let mut memory = Self::allocate_unaligned(logical, location, bytes, alignment)?;
        let misaligned = memory.mapped.map_or(0, |pointer| pointer.addr().get() as u64 % alignment);
        memory.base_offset = (alignment - misaligned) % alignment;
        Ok(memory)
    }

    fn allocate_unaligned(
        logical: &Arc<LogicalDevice>,
        location: MemoryLocation,
        bytes: u64,
        alignment: u64,
    ) -> Result<Self> {
        logical.check_alive()?;
        let limit = logical.caps.allocation_bytes;
        if limit != 0 && bytes > limit {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("{bytes} bytes; the driver allocates at most {limit} at once: split the tensor"),
            ));
        }
        // On an error, dropping `memory` destroys what exists so far.
        let mut memory = Self {
            logical: Arc::clone(logical),
            buffer: create(logical, bytes, false)?,
            backing: Backing::Unbound,
            base_offset: 0,
            mapped: None,
            host_cached: false,
        };
        // SAFETY: the buffer was just created.
        let mut requirements = unsafe { logical.handle.get_buffer_memory_requirements(memory.buffer) };
        requirements.alignment = requirements.alignment.max(alignment);
        let allocation = memory.suballocate(location, requirements)?;
        let (flags, offset) = (allocation.memory_properties(), allocation.offset());
        if flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT) {
            memory.mapped = allocation.mapped_ptr().map(NonNull::cast);
        }
        memory.host_cached = flags.contains(vk::MemoryPropertyFlags::HOST_CACHED);
        // SAFETY: the handle is used only while the allocation is alive.
        let owner = unsafe { allocation.memory() };
        memory.backing = Backing::Suballocated(allocation);
        // SAFETY: neither buffer nor memory is bound yet, and the allocation meets the buffer's requirements.
        let bound = unsafe { logical.handle.bind_buffer_memory(memory.buffer, owner, offset) };
        logical.check("vkBindBufferMemory", bound)?;
        Ok(memory)
    }

    fn suballocate(
        &self,
        location: MemoryLocation,
        requirements: vk::MemoryRequirements,
    ) -> Result<Allocation> {
        let request = |location| AllocationCreateDesc {
            name: "tensor",
            requirements,
            location,
            linear: true,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        };
        let failed = |failure: AllocationError| status::allocation_error(requirements.size, &failure);
        let mut pool = self.logical.memory_pool.lock();
        let pool =
            pool.as_mut().ok_or_else(|| super::logical_device::out_of_resources("the device is closed"))?;
        if location == MemoryLocation::Device && self.logical.caps.all_device_memory_is_host_visible() {
            match pool.allocate(&request(AllocatorLocation::CpuToGpu)) {
                // When device memory is exhausted, this may be in host memory.
                Ok(allocation)
                    if allocation.memory_properties().contains(vk::MemoryPropertyFlags::DEVICE_LOCAL) =>
                {
                    return Ok(allocation);
                }
                Ok(allocation) => pool.free(allocation),
                Err(_) => {}
            }
        }
        let location = match location {
            MemoryLocation::Device => AllocatorLocation::GpuOnly,
            MemoryLocation::Pinned => AllocatorLocation::GpuToCpu,
            MemoryLocation::Shared => AllocatorLocation::CpuToGpu,
        };
        pool.allocate(&request(location)).map_err(failed)
    }

    /// Imports host memory, which must outlive this (`VK_EXT_external_memory_host`).
    ///
    /// # Errors
    /// `Unsupported` without the extension, or for this kind of memory; the driver's error.
    pub(crate) fn import(logical: &Arc<LogicalDevice>, host: NonNull<u8>, bytes: u64) -> Result<Self> {
        let calls = logical
            .host_import
            .as_ref()
            .ok_or_else(|| Error::unsupported("import of host memory is not supported"))?;
        let page = logical.caps.import_alignment;
        let base_offset = host.addr().get() as u64 % page;
        let whole = (base_offset + bytes).next_multiple_of(page);
        // The first and last page belong to the program, since the range begins and ends in them.
        let first = host.as_ptr().wrapping_sub(usize::try_from(base_offset).unwrap_or(0));
        let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
        let handle_type = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        // SAFETY: the device has the extension, the pages belong to the program, and the out parameter is writable.
        let result = unsafe {
            (calls.fp().get_memory_host_pointer_properties_ext)(
                logical.handle.handle(),
                handle_type,
                first.cast(),
                &raw mut properties,
            )
        };
        logical.check("vkGetMemoryHostPointerProperties", result.result())?;
        // On an error, dropping `memory` destroys what exists so far.
        let mut memory = Self {
            logical: Arc::clone(logical),
            buffer: create(logical, whole, true)?,
            backing: Backing::Unbound,
            base_offset,
            mapped: NonNull::new(first),
            host_cached: true,
        };
        // SAFETY: the buffer was just created.
        let requirements = unsafe { logical.handle.get_buffer_memory_requirements(memory.buffer) };
        let memory_type =
            import_memory_type(logical, requirements.memory_type_bits & properties.memory_type_bits)?;
        let mut source =
            vk::ImportMemoryHostPointerInfoEXT::default().handle_type(handle_type).host_pointer(first.cast());
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(whole.max(requirements.size).next_multiple_of(page))
            .memory_type_index(memory_type)
            .push_next(&mut source);
        // SAFETY: the range consists of whole pages that the program keeps as long as this lives.
        let created = unsafe { logical.handle.allocate_memory(&info, None) };
        let owner = logical.check("vkAllocateMemory", created)?;
        memory.backing = Backing::Imported(owner);
        // SAFETY: neither buffer nor memory is bound yet; size and memory type fit.
        let bound = unsafe { logical.handle.bind_buffer_memory(memory.buffer, owner, 0) };
        logical.check("vkBindBufferMemory", bound)?;
        Ok(memory)
    }

    /// Wraps a buffer of the program, which outlives this.
    pub(crate) fn borrow(logical: &Arc<LogicalDevice>, buffer: u64) -> Self {
        Self {
            logical: Arc::clone(logical),
            buffer: vk::Buffer::from_raw(buffer),
            backing: Backing::Borrowed,
            base_offset: 0,
            mapped: None,
            host_cached: false,
        }
    }

    /// Host address of the tensor's first byte; `None` if it is not mapped.
    pub(crate) fn host_ptr(&self) -> Option<NonNull<u8>> {
        let base_offset = usize::try_from(self.base_offset).ok()?;
        // SAFETY: `base_offset` lies within the buffer.
        self.mapped.map(|mapped| unsafe { mapped.add(base_offset) })
    }

    /// Copies a piece of host memory to mapped memory (upload), where it begins at `offset`, or from it (download).
    pub(crate) fn copy_host(&self, offset: u64, host: &HostRange, piece: Piece) {
        let (Some(mapped), Ok(offset)) = (self.host_ptr(), usize::try_from(offset)) else { return };
        debug_assert!(
            piece.offset + piece.bytes <= host.size_bytes(),
            "the piece lies within the host range"
        );
        // SAFETY: the caller checked the range.
        let mapped = unsafe { mapped.as_ptr().add(offset) };
        // SAFETY: both ranges are valid for as many bytes, and the device does not use them.
        unsafe { host.copy_piece(mapped, piece) };
    }

    /// Copies a few bytes to mapped memory.
    pub(crate) fn write_bytes(&self, offset: u64, source: &[u8]) {
        let (Some(host), Ok(offset)) = (self.host_ptr(), usize::try_from(offset)) else { return };
        // SAFETY: the caller checked the range.
        let to = unsafe { host.as_ptr().add(offset) };
        // SAFETY: both ranges are valid for as many bytes, and the device does not use them yet.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), to, source.len()) };
    }

    /// Whether host reads are cached.
    pub(crate) fn is_host_cached(&self) -> bool {
        self.host_cached
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !matches!(self.backing, Backing::Borrowed) {
            // SAFETY: ours, and no longer in use.
            unsafe { self.logical.handle.destroy_buffer(self.buffer, None) };
        }
        match std::mem::replace(&mut self.backing, Backing::Unbound) {
            Backing::Unbound | Backing::Borrowed => {}
            Backing::Suballocated(allocation) => {
                if let Some(pool) = self.logical.memory_pool.lock().as_mut() {
                    pool.free(allocation);
                }
            }
            Backing::Imported(memory) => {
                // SAFETY: ours, and no longer in use.
                unsafe { self.logical.handle.free_memory(memory, None) };
            }
        }
    }
}

fn create(logical: &LogicalDevice, bytes: u64, imported: bool) -> Result<vk::Buffer> {
    let mut external = vk::ExternalMemoryBufferCreateInfo::default()
        .handle_types(vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT);
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let mut info = vk::BufferCreateInfo::default().size(bytes.max(4).next_multiple_of(4)).usage(usage);
    if logical.sharing_families.len() > 1 {
        info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&logical.sharing_families);
    }
    if imported {
        info = info.push_next(&mut external);
    }
    // SAFETY: the device is open, and `info` outlives the call.
    let created = unsafe { logical.handle.create_buffer(&info, None) };
    logical.check("vkCreateBuffer", created)
}

/// The memory type for imported memory: a host-visible, coherent one.
fn import_memory_type(logical: &LogicalDevice, bits: u32) -> Result<u32> {
    let types = logical.caps.memory_types.iter().zip(0_u32..);
    let mut fitting = types.filter(|(ty, index)| bits >> index & 1 == 1 && ty.host_visible);
    fitting
        .next()
        .map(|(_, index)| index)
        .ok_or_else(|| Error::unsupported("import of this host memory is not supported"))
}

fn size_overflow(bytes: u64) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("{bytes} bytes exceed the address space"))
}
