//! Device memory: here an allocation in host memory that only transfers and kernels access.

#![allow(unsafe_code, reason = "accesses memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::backend::{Buffer, DeviceBytes, HostBytes, HostBytesMut};
use runtime_core::device::MemoryUsage;
use runtime_core::{Element, Error, ErrorKind, Result};

/// The content of fresh memory, so that no test relies on zeros.
const FRESH: u8 = 0xa5;
/// Only this many bytes of an allocation are filled; the rest stays zero and untouched, which is faster.
const FILLED_BYTES: usize = 64 << 20;

/// Buffers that were freed while a submission still used their memory.
static FREED_IN_USE: AtomicU64 = AtomicU64::new(0);

/// The number of buffers of this process that were freed while in use. Unless a device was lost, that is a defect of core.
#[must_use]
pub fn freed_in_use() -> u64 {
    FREED_IN_USE.load(Ordering::Relaxed)
}

/// The usage of a memory space.
#[derive(Debug)]
pub(crate) struct Usage {
    total_bytes: u64,
    used_bytes: AtomicU64,
}

impl Usage {
    pub(crate) fn new(total_bytes: u64) -> Arc<Self> {
        Arc::new(Self { total_bytes, used_bytes: AtomicU64::new(0) })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> MemoryUsage {
        MemoryUsage {
            free_bytes: self.total_bytes.saturating_sub(self.bytes()),
            total_bytes: self.total_bytes,
        }
    }

    fn take(&self, bytes: u64) -> Result<()> {
        let take = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.total_bytes);
        match self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(used) => Err(out_of_memory(bytes, self.total_bytes - used)),
        }
    }
}

/// An allocation, shared with the submissions that use it.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    /// How to free it; `None` for imported memory, which belongs to another library.
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    /// The pointer that the allocator returned, before alignment.
    base: NonNull<u8>,
    layout: Layout,
    usage: Arc<Usage>,
}

// SAFETY: the memory is accessed through raw copies only, and core orders conflicting submissions, as for any device
// memory.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn allocate(bytes: usize, alignment: usize, usage: &Arc<Usage>) -> Result<Arc<Self>> {
        if !alignment.is_power_of_two() {
            return Err(Error::invalid(format!("an alignment of {alignment} bytes is not a power of two")));
        }
        // Aligned here: for a larger alignment the allocator would write all zeros itself.
        let layout = Layout::from_size_align(bytes.saturating_add(alignment), 1)
            .map_err(|_| out_of_memory(bytes as u64, 0))?;
        usage.take(bytes as u64)?;
        // Zeroed, because all of it can be read as a slice of bytes.
        // SAFETY: the layout has at least one byte.
        let Some(base) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            usage.used_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
            return Err(out_of_memory(bytes as u64, 0));
        };
        let skipped = base.align_offset(alignment);
        // SAFETY: an alignment is less than there is in front of the last `bytes` bytes.
        let start = unsafe { base.add(skipped) };
        // SAFETY: the allocation has that many bytes.
        unsafe { ptr::write_bytes(start.as_ptr(), FRESH, bytes.min(FILLED_BYTES)) };
        let owned = Owned { base, layout, usage: Arc::clone(usage) };
        Ok(Arc::new(Self { start, bytes, owned: Some(owned) }))
    }

    #[expect(clippy::needless_pass_by_value, reason = "the buffer takes over the view's memory")]
    fn import_device_memory(memory: DeviceBytes) -> Result<Arc<Self>> {
        let start = NonNull::new(memory.as_ptr().cast());
        let start = start.ok_or_else(|| Error::invalid("the memory to import is a null pointer"))?;
        Ok(Arc::new(Self { start, bytes: memory.len(), owned: None }))
    }

    /// The address of `len` bytes at `offset`, if they are inside.
    fn at(&self, offset: u64, len: usize) -> Result<*mut u8> {
        let inside = usize::try_from(offset)
            .ok()
            .filter(|&from| from.checked_add(len).is_some_and(|end| end <= self.bytes));
        let Some(offset) = inside else {
            let message =
                format!("{len} bytes at offset {offset} are outside a buffer of {} bytes", self.bytes);
            return Err(Error::invalid(message));
        };
        // SAFETY: within the allocation, as just checked.
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }

    pub(crate) fn write(&self, offset: u64, source: &HostBytes) -> Result<()> {
        let to = self.at(offset, source.len())?;
        if !source.is_empty() {
            // SAFETY: both are valid for that many bytes; host and device memory do not overlap.
            unsafe { ptr::copy_nonoverlapping(source.as_ptr(), to, source.len()) };
        }
        Ok(())
    }

    pub(crate) fn read(&self, offset: u64, destination: &HostBytesMut) -> Result<()> {
        let from = self.at(offset, destination.len())?;
        if !destination.is_empty() {
            // SAFETY: both are valid for that many bytes; host and device memory do not overlap.
            unsafe { ptr::copy_nonoverlapping(from, destination.as_ptr(), destination.len()) };
        }
        Ok(())
    }

    pub(crate) fn copy(&self, offset: u64, source: &Self, source_offset: u64, bytes: usize) -> Result<()> {
        let (to, from) = (self.at(offset, bytes)?, source.at(source_offset, bytes)?);
        // SAFETY: both are valid for that many bytes; `copy` allows them to overlap.
        unsafe { ptr::copy(from, to, bytes) };
        Ok(())
    }

    /// Overwrites memory with bytes owned by this backend.
    pub(crate) fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let to = self.at(offset, bytes.len())?;
        // SAFETY: both are valid for that many bytes, and no slice of device memory exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies memory into bytes owned by this backend.
    pub(crate) fn take(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let from = self.at(offset, bytes.len())?;
        // SAFETY: both are valid for that many bytes, and no slice of device memory exists.
        unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    pub(crate) fn load<T: Element>(&self, offset: u64) -> Result<T> {
        let mut value = T::zeroed();
        self.take(offset, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    pub(crate) fn store<T: Element>(&self, offset: u64, value: T) -> Result<()> {
        self.put(offset, bytemuck::bytes_of(&value))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(Owned { base, layout, usage }) = &self.owned else { return };
        usage.used_bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(base.as_ptr(), *layout) };
    }
}

#[cold]
fn out_of_memory(bytes: u64, free: u64) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("cannot allocate {bytes} bytes: {free} are free"))
}

/// An allocation.
#[derive(Debug)]
pub struct NullBuffer {
    pub(crate) memory: Arc<Memory>,
    host_visible: bool,
}

impl NullBuffer {
    pub(crate) fn allocate(
        bytes: usize,
        alignment: usize,
        usage: &Arc<Usage>,
        host_visible: bool,
    ) -> Result<Self> {
        Ok(Self { memory: Memory::allocate(bytes, alignment, usage)?, host_visible })
    }

    /// Imports memory of another library.
    pub(crate) fn import_device_memory(memory: DeviceBytes, host_visible: bool) -> Result<Self> {
        Ok(Self { memory: Memory::import_device_memory(memory)?, host_visible })
    }
}

impl Drop for NullBuffer {
    fn drop(&mut self) {
        // Each submission in flight holds a reference.
        let in_use = Arc::strong_count(&self.memory) > 1;
        FREED_IN_USE.fetch_add(u64::from(in_use), Ordering::Relaxed);
    }
}

impl Buffer for NullBuffer {
    fn kernel_address(&self) -> u64 {
        self.memory.start.expose_provenance().get() as u64
    }

    fn host_pointer(&self) -> *mut u8 {
        if self.host_visible { self.memory.start.as_ptr() } else { ptr::null_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_checked_and_usage_is_counted() {
        let usage = Usage::new(1024);
        let memory = Memory::allocate(10, 256, &usage).unwrap();
        assert!(memory.start.addr().get().is_multiple_of(256));
        assert_eq!(usage.now(), MemoryUsage { free_bytes: 1014, total_bytes: 1024 });
        memory.store(6, 7u32).unwrap();
        assert_eq!((memory.load::<u32>(6).unwrap(), memory.load::<u8>(0).unwrap()), (7, FRESH));
        assert!(memory.load::<u32>(7).is_err());
        assert!(memory.load::<u8>(u64::MAX).is_err());
        assert_eq!(Memory::allocate(1015, 1, &usage).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert_eq!(Memory::allocate(usize::MAX >> 2, 1, &usage).unwrap_err().kind(), ErrorKind::OutOfMemory);
        assert!(Memory::allocate(8, 3, &usage).is_err());
        drop(memory);
        assert_eq!(usage.bytes(), 0);
    }
}
