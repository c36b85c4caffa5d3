//! Tensors' memory: on the device, in the host's memory, or the program's own.

use std::ptr::NonNull;
use std::sync::Arc;

use runtime_core::backend::{Buffer, HostBytesMut};
use runtime_core::{Error, Result};

use crate::context::Context;
use crate::driver::{Facts, Home, Memory};

/// Alignment of every allocation.
pub(crate) const ALIGNMENT_BYTES: u64 = 256;

/// A memory space, in the order of `DeviceInfo::spaces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Device,
    Pinned,
    Shared,
}

impl Space {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Device, "device"), (Self::Pinned, "pinned"), (Self::Shared, "shared")];

    /// The spaces of a device, with their names.
    pub(crate) fn all(facts: &Facts) -> &'static [(Self, &'static str)] {
        &Self::ALL[..if facts.has_shared() { 3 } else { 2 }]
    }

    /// The space of an index.
    ///
    /// # Errors
    /// `InvalidArgument` for one that the device does not have.
    pub(crate) fn of(index: u32, facts: &Facts) -> Result<Self> {
        let all = Self::all(facts);
        let found = all.get(index as usize).map(|(space, _)| *space);
        found.ok_or_else(|| {
            Error::invalid(format!("space {index} does not exist; valid: 0 to {}", all.len() - 1))
        })
    }

    fn home(self) -> Home {
        match self {
            Self::Device => Home::Device,
            Self::Pinned => Home::Pinned,
            Self::Shared => Home::Shared,
        }
    }
}

/// An allocation, or memory of the program.
#[derive(Debug)]
pub struct VulkanBuffer {
    context: Arc<Context>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) bytes: u64,
    space: Space,
}

impl VulkanBuffer {
    pub(crate) fn allocate(
        context: &Arc<Context>,
        space: Space,
        bytes: usize,
        alignment: usize,
    ) -> Result<Self> {
        if !alignment.max(1).is_power_of_two() {
            return Err(Error::invalid(format!("alignment of {alignment} bytes; pass a power of two")));
        }
        let (bytes, alignment) = (bytes as u64, (alignment as u64).max(ALIGNMENT_BYTES));
        let memory = Memory::allocate(&context.logical, space.home(), bytes, alignment)?;
        Ok(Self { context: Arc::clone(context), memory: Arc::new(memory), bytes, space })
    }

    pub(crate) fn import(context: &Arc<Context>, space: Space, host: &HostBytesMut) -> Result<Self> {
        if space != Space::Pinned {
            return Err(Error::invalid("host memory is imported into space \"pinned\""));
        }
        let bytes = host.len() as u64;
        let memory = match NonNull::new(host.as_ptr()).filter(|_| bytes > 0) {
            Some(start) => Memory::import(&context.logical, start, bytes)?,
            None => Memory::allocate(&context.logical, Home::Pinned, 0, ALIGNMENT_BYTES)?,
        };
        Ok(Self { context: Arc::clone(context), memory: Arc::new(memory), bytes, space })
    }

    /// The device that the memory belongs to.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether the program may look at the memory: by itself, or because reading it so is fast.
    #[inline]
    pub(crate) fn is_seen(&self) -> bool {
        self.memory.host().is_some() && (self.space != Space::Device || self.memory.is_cached())
    }

    /// Checks that a range lies inside.
    ///
    /// # Errors
    /// `InvalidArgument` if it does not.
    pub(crate) fn check(&self, what: &str, offset: u64, bytes: u64) -> Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Error::invalid(format!(
                "{what}: {bytes} bytes at offset {offset} of a buffer of {} bytes",
                self.bytes
            ))),
        }
    }
}

impl Buffer for VulkanBuffer {
    /// Kernels take buffers by handle.
    fn kernel_address(&self) -> u64 {
        0
    }

    fn host_pointer(&self) -> *mut u8 {
        let seen = self.memory.host().filter(|_| self.space != Space::Device);
        seen.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }
}
