//! Options for allocating tensors and opening queues.

/// Where a tensor is allocated on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Name of the memory space; `None` for the first of the device.
    pub space: Option<String>,
    /// Alignment in bytes, a power of two; 0 for that of the space.
    pub alignment_bytes: usize,
    /// Back the tensor with huge pages; fails if there are none.
    pub huge_pages: bool,
}

impl Placement {
    /// Placement in a memory space: `device`, `pinned`, `shared`, or a backend-specific name.
    #[must_use]
    pub fn space(name: &str) -> Self {
        Self { space: Some(name.to_owned()), ..Self::default() }
    }

    /// Sets the alignment in bytes, a power of two.
    #[must_use]
    pub const fn aligned(mut self, bytes: usize) -> Self {
        self.alignment_bytes = bytes;
        self
    }
}

/// Options of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOptions {
    /// Priority: higher runs first, 0 is normal.
    pub priority: i32,
    /// Timestamps will be recorded on the queue.
    pub timestamps: bool,
}
