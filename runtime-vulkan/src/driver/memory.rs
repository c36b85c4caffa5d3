//! Buffers and the memory behind them.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation};
use runtime_core::backend::{HostBytes, HostBytesMut};
use runtime_core::{Error, ErrorKind, Result};

use super::logical::Logical;
use super::status;

/// Where memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// On the device.
    Device,
    /// In the host's memory, cached by the processor.
    Pinned,
    /// On the device, where the program reaches it.
    Shared,
}

/// A buffer with memory of its own.
pub(crate) struct Memory {
    logical: Arc<Logical>,
    pub(super) buffer: vk::Buffer,
    backing: Backing,
    /// The first byte that counts: what lies before it is there for alignment.
    pub(crate) start: u64,
    /// Where the program reaches byte 0 of the buffer.
    pointer: Option<NonNull<u8>>,
    cached: bool,
}

enum Backing {
    Nothing,
    Part(Allocation),
    Imported(vk::DeviceMemory),
}

// SAFETY: the pointer is to memory that stays mapped as long as this lives; core orders who touches it.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("buffer", &self.buffer)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// Allocates; what the program reaches is aligned there too.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn allocate(logical: &Arc<Logical>, home: Home, bytes: u64, alignment: u64) -> Result<Self> {
        let memory = Self::plain(logical, home, bytes, alignment)?;
        let misaligned = memory.pointer.map_or(0, |pointer| pointer.addr().get() as u64 % alignment);
        if misaligned == 0 {
            return Ok(memory);
        }
        drop(memory);
        let bytes = bytes.checked_add(alignment).ok_or_else(|| too_much(bytes))?;
        let mut memory = Self::plain(logical, home, bytes, alignment)?;
        let misaligned = memory.pointer.map_or(0, |pointer| pointer.addr().get() as u64 % alignment);
        memory.start = (alignment - misaligned) % alignment;
        Ok(memory)
    }

    fn plain(logical: &Arc<Logical>, home: Home, bytes: u64, alignment: u64) -> Result<Self> {
        logical.check_alive()?;
        let limit = logical.facts.allocation_bytes;
        if limit != 0 && bytes > limit {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("{bytes} bytes; the driver allocates at most {limit} at once, split the tensor"),
            ));
        }
        // On an error the drop destroys what was made so far.
        let mut memory = Self {
            logical: Arc::clone(logical),
            buffer: create(logical, bytes, false)?,
            backing: Backing::Nothing,
            start: 0,
            pointer: None,
            cached: false,
        };
        // SAFETY: the buffer was just made.
        let mut requirements = unsafe { logical.handle.get_buffer_memory_requirements(memory.buffer) };
        requirements.alignment = requirements.alignment.max(alignment);
        let part = memory.part(home, requirements)?;
        let (flags, offset) = (part.memory_properties(), part.offset());
        if flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT) {
            memory.pointer = part.mapped_ptr().map(NonNull::cast);
        }
        memory.cached = flags.contains(vk::MemoryPropertyFlags::HOST_CACHED);
        // SAFETY: the handle is used only while the allocation lives.
        let owner = unsafe { part.memory() };
        memory.backing = Backing::Part(part);
        // SAFETY: buffer and memory are fresh, and the allocator kept to the buffer's requirements.
        let bound = unsafe { logical.handle.bind_buffer_memory(memory.buffer, owner, offset) };
        logical.check("vkBindBufferMemory", bound)?;
        Ok(memory)
    }

    fn part(&self, home: Home, requirements: vk::MemoryRequirements) -> Result<Allocation> {
        let wanted = |location| AllocationCreateDesc {
            name: "tensor",
            requirements,
            location,
            linear: true,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        };
        let failed = |failure: AllocationError| status::allocation(requirements.size, &failure);
        let mut allocator = self.logical.allocator.lock();
        let allocator =
            allocator.as_mut().ok_or_else(|| super::logical::exhausted("the device is closed"))?;
        if home == Home::Device && self.logical.facts.reaches_all() {
            match allocator.allocate(&wanted(MemoryLocation::CpuToGpu)) {
                // When the device's is exhausted this may be the host's.
                Ok(part) if part.memory_properties().contains(vk::MemoryPropertyFlags::DEVICE_LOCAL) => {
                    return Ok(part);
                }
                Ok(part) => allocator.free(part).map_err(failed)?,
                Err(_) => {}
            }
        }
        let location = match home {
            Home::Device => MemoryLocation::GpuOnly,
            Home::Pinned => MemoryLocation::GpuToCpu,
            Home::Shared => MemoryLocation::CpuToGpu,
        };
        allocator.allocate(&wanted(location)).map_err(failed)
    }

    /// Wraps memory of the program, which outlives this.
    ///
    /// # Errors
    /// `Unsupported` where the driver cannot; whatever it says of this memory.
    pub(crate) fn import(logical: &Arc<Logical>, host: NonNull<u8>, bytes: u64) -> Result<Self> {
        let calls = logical
            .import
            .as_ref()
            .ok_or_else(|| Error::unsupported("import of host memory is not supported"))?;
        let page = logical.facts.import_alignment;
        let start = host.addr().get() as u64 % page;
        let whole = (start + bytes).next_multiple_of(page);
        // Both ends of the range lie in pages that the program has.
        let first = host.as_ptr().wrapping_sub(usize::try_from(start).unwrap_or(0));
        let mut kinds = vk::MemoryHostPointerPropertiesEXT::default();
        let handle_type = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        // SAFETY: the device has the extension, the pages are the program's, and the out-parameter is writable.
        let told = unsafe {
            (calls.fp().get_memory_host_pointer_properties_ext)(
                logical.handle.handle(),
                handle_type,
                first.cast(),
                &raw mut kinds,
            )
        };
        logical.check("vkGetMemoryHostPointerProperties", told.result())?;
        // On an error the drop destroys what was made so far.
        let mut memory = Self {
            logical: Arc::clone(logical),
            buffer: create(logical, whole, true)?,
            backing: Backing::Nothing,
            start,
            pointer: NonNull::new(first),
            cached: true,
        };
        // SAFETY: the buffer was just made.
        let requirements = unsafe { logical.handle.get_buffer_memory_requirements(memory.buffer) };
        let kind = import_kind(logical, requirements.memory_type_bits & kinds.memory_type_bits)?;
        let mut source =
            vk::ImportMemoryHostPointerInfoEXT::default().handle_type(handle_type).host_pointer(first.cast());
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(whole.max(requirements.size).next_multiple_of(page))
            .memory_type_index(kind)
            .push_next(&mut source);
        // SAFETY: the range is whole pages of the program, which keeps them as long as this lives.
        let made = unsafe { logical.handle.allocate_memory(&info, None) };
        let owner = logical.check("vkAllocateMemory", made)?;
        memory.backing = Backing::Imported(owner);
        // SAFETY: buffer and memory are fresh, of this size and this type.
        let bound = unsafe { logical.handle.bind_buffer_memory(memory.buffer, owner, 0) };
        logical.check("vkBindBufferMemory", bound)?;
        Ok(memory)
    }

    /// Where the program reaches the first byte that counts; `None` where it cannot.
    pub(crate) fn host(&self) -> Option<NonNull<u8>> {
        let start = usize::try_from(self.start).ok()?;
        // SAFETY: the buffer begins `start` bytes before the first that counts.
        self.pointer.map(|pointer| unsafe { pointer.add(start) })
    }

    /// Copies `bytes` bytes, which the program reaches, into memory of the program, from its byte `at` on.
    pub(crate) fn read(&self, offset: u64, destination: &HostBytesMut, at: usize, bytes: usize) {
        let (Some(host), Ok(offset)) = (self.host(), usize::try_from(offset)) else { return };
        debug_assert!(at + bytes <= destination.len(), "the piece lies inside");
        // SAFETY: the caller's range lies inside.
        let from = unsafe { host.as_ptr().add(offset) };
        // SAFETY: the piece lies inside.
        let to = unsafe { destination.as_ptr().add(at) };
        // SAFETY: both ranges are valid for as many bytes, and the device has ended its work on them.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }

    /// Copies `bytes` bytes of the program's memory, from its byte `at` on, into bytes that it reaches.
    pub(crate) fn write(&self, offset: u64, source: &HostBytes, at: usize, bytes: usize) {
        let (Some(host), Ok(offset)) = (self.host(), usize::try_from(offset)) else { return };
        debug_assert!(at + bytes <= source.len(), "the piece lies inside");
        // SAFETY: the caller's range lies inside.
        let to = unsafe { host.as_ptr().add(offset) };
        // SAFETY: the piece lies inside.
        let from = unsafe { source.as_ptr().add(at) };
        // SAFETY: both ranges are valid for as many bytes, and the device does not use them.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }

    /// Copies a few bytes into bytes that the program reaches.
    pub(crate) fn put(&self, offset: u64, source: &[u8]) {
        let (Some(host), Ok(offset)) = (self.host(), usize::try_from(offset)) else { return };
        // SAFETY: the caller's range lies inside.
        let to = unsafe { host.as_ptr().add(offset) };
        // SAFETY: both ranges are valid for as many bytes, and the device does not use them yet.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), to, source.len()) };
    }

    /// Whether the processor reads it at full speed.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: ours, and used by nobody any more.
        unsafe { self.logical.handle.destroy_buffer(self.buffer, None) };
        match std::mem::replace(&mut self.backing, Backing::Nothing) {
            Backing::Nothing => {}
            Backing::Part(part) => {
                if let Some(allocator) = self.logical.allocator.lock().as_mut() {
                    // It fails only for what it did not allocate.
                    let _ = allocator.free(part);
                }
            }
            Backing::Imported(memory) => {
                // SAFETY: ours, and used by nobody any more.
                unsafe { self.logical.handle.free_memory(memory, None) };
            }
        }
    }
}

fn create(logical: &Logical, bytes: u64, imported: bool) -> Result<vk::Buffer> {
    let mut external = vk::ExternalMemoryBufferCreateInfo::default()
        .handle_types(vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT);
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER
        | vk::BufferUsageFlags::TRANSFER_SRC
        | vk::BufferUsageFlags::TRANSFER_DST;
    let mut info = vk::BufferCreateInfo::default().size(bytes.max(4).next_multiple_of(4)).usage(usage);
    if logical.sharing.len() > 1 {
        info = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&logical.sharing);
    }
    if imported {
        info = info.push_next(&mut external);
    }
    // SAFETY: the device is open, and the description lives during the call.
    let made = unsafe { logical.handle.create_buffer(&info, None) };
    logical.check("vkCreateBuffer", made)
}

/// The type for imported memory: one that the program and the device see alike.
fn import_kind(logical: &Logical, bits: u32) -> Result<u32> {
    let kinds = logical.facts.memory.iter().zip(0_u32..);
    let mut fitting = kinds.filter(|(kind, index)| bits >> index & 1 == 1 && kind.on_host);
    fitting
        .next()
        .map(|(_, index)| index)
        .ok_or_else(|| Error::unsupported("import of this host memory is not supported"))
}

fn too_much(bytes: u64) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("{bytes} bytes are more than there are addresses"))
}
