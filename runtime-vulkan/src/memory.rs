//! Tensor memory: on the device, pinned, or imported from the host.

use std::ptr::NonNull;
use std::sync::Arc;

use runtime_core::backend::{Buffer, DeviceBytes, HostBytesMut, NativeHandle, check_range, space_at};
use runtime_core::{Error, Result};

use crate::device_state::DeviceState;
use crate::driver::{DeviceCaps, Memory, MemoryLocation};

/// Alignment of every allocation.
pub(crate) const ALIGNMENT_BYTES: u64 = 256;

/// The memory spaces, in the order of `DeviceInfo::spaces`. Devices without mappable device memory lack the last one.
const SPACES: [(MemoryLocation, &str); 3] = [
    (MemoryLocation::Device, "device"),
    (MemoryLocation::Pinned, "pinned"),
    (MemoryLocation::Shared, "shared"),
];

/// The spaces of a device, with their names.
pub(crate) fn spaces(caps: &DeviceCaps) -> &'static [(MemoryLocation, &'static str)] {
    &SPACES[..if caps.has_shared_space() { 3 } else { 2 }]
}

/// The space with an index.
///
/// # Errors
/// `InvalidArgument` for one that the device does not have.
pub(crate) fn space(index: u32, caps: &DeviceCaps) -> Result<MemoryLocation> {
    space_at(spaces(caps), index).map(|(space, _)| space)
}

/// An allocation, or imported host memory.
#[derive(Debug)]
pub struct VulkanBuffer {
    pub(crate) shared: Arc<DeviceState>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) bytes: u64,
    space: MemoryLocation,
}

impl VulkanBuffer {
    pub(crate) fn allocate(
        shared: &Arc<DeviceState>,
        space: MemoryLocation,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self> {
        let (bytes, alignment) = (bytes as u64, (alignment as u64).max(ALIGNMENT_BYTES));
        let memory = Memory::allocate(&shared.logical, space, bytes, alignment)?;
        Ok(Self { shared: Arc::clone(shared), memory: Arc::new(memory), bytes, space })
    }

    pub(crate) fn import(
        shared: &Arc<DeviceState>,
        space: MemoryLocation,
        host: &HostBytesMut,
    ) -> Result<Self> {
        if space != MemoryLocation::Pinned {
            return Err(Error::invalid("host memory can be imported only into space \"pinned\""));
        }
        let bytes = host.len() as u64;
        let memory = match NonNull::new(host.as_ptr()).filter(|_| bytes > 0) {
            Some(start) => Memory::import(&shared.logical, start, bytes)?,
            None => Memory::allocate(&shared.logical, MemoryLocation::Pinned, 0, ALIGNMENT_BYTES)?,
        };
        Ok(Self { shared: Arc::clone(shared), memory: Arc::new(memory), bytes, space })
    }

    /// Wraps a `VkBuffer` of the program.
    ///
    /// # Errors
    /// `InvalidArgument` for a space other than `device`.
    pub(crate) fn import_buffer(
        shared: &Arc<DeviceState>,
        space: MemoryLocation,
        memory: &DeviceBytes,
    ) -> Result<Self> {
        if space != MemoryLocation::Device {
            return Err(Error::invalid("a `VkBuffer` can be imported only into space \"device\""));
        }
        let (bytes, buffer) = (memory.len() as u64, memory.as_ptr().expose_provenance() as u64);
        let memory = Arc::new(Memory::borrow(&shared.logical, buffer));
        Ok(Self { shared: Arc::clone(shared), memory, bytes, space })
    }

    /// Whether the host may read the memory: through a host view, or because this backend reads it directly.
    #[inline]
    pub(crate) fn is_host_visible(&self) -> bool {
        self.memory.host_ptr().is_some()
            && (self.space != MemoryLocation::Device || self.memory.is_host_cached())
    }

    /// Checks that a range lies inside.
    ///
    /// # Errors
    /// `InvalidArgument` if it does not.
    pub(crate) fn check(&self, what: &str, offset: u64, bytes: u64) -> Result<()> {
        check_range(what, offset, bytes, self.bytes)
    }
}

impl Buffer for VulkanBuffer {
    /// Kernels take buffers by handle, not by address.
    fn kernel_address(&self) -> u64 {
        0
    }

    fn host_pointer(&self) -> *mut u8 {
        let mapped = self.memory.host_ptr().filter(|_| self.space != MemoryLocation::Device);
        mapped.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    fn native(&self) -> Result<(Vec<NativeHandle>, u64)> {
        Ok(self.memory.native())
    }
}
