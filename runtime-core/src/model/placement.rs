//! Where tensors and queues are made.

/// Where a tensor is placed on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// A memory space by name; `None`: the device's first.
    pub space: Option<String>,
    /// Wanted alignment in bytes, a power of two; 0: the space's own.
    pub alignment_bytes: usize,
    /// Back it with huge pages; an error where there are none.
    pub huge_pages: bool,
}

impl Placement {
    /// A memory space by name: `device`, `pinned`, `shared`, or one of the backend's own.
    #[must_use]
    pub fn space(name: &str) -> Self {
        Self { space: Some(name.to_owned()), ..Self::default() }
    }

    /// With an alignment in bytes, a power of two.
    #[must_use]
    pub const fn aligned(mut self, bytes: usize) -> Self {
        self.alignment_bytes = bytes;
        self
    }
}

/// Options of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOptions {
    /// Higher runs first; 0 is normal.
    pub priority: i32,
    /// The queue will be asked for timestamps.
    pub timestamps: bool,
}
