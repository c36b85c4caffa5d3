//! Options for allocating tensors and opening queues.

/// Where a tensor is allocated on a device.
///
/// [`DeviceInfo::spaces`](crate::DeviceInfo::spaces) lists the memory spaces.
///
/// ```
/// # use runtime_core::{DType, Placement, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let placement = Placement::space("pinned").aligned(4096);
/// let staging = device.allocate(DType::F32, &[4], &placement)?;
/// staging.map_mut()?.as_mut_slice::<f32>()?.fill(1.5); // written in place
/// assert_eq!((staging.space(), staging.to_vec::<f32>()?), ("pinned", vec![1.5; 4]));
///
/// let error = device.allocate(DType::F32, &[4], &Placement::space("pined")).unwrap_err();
/// assert!(error.message().contains("did you mean \"pinned\"?"));
/// # Ok::<(), runtime_core::Error>(())
/// ```
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
///
/// ```
/// # use runtime_core::{QueueOptions, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
/// let (before, after) = (queue.timestamp()?, queue.timestamp()?);
/// after.wait()?;
/// assert!(queue.read_timestamp(&before)? <= queue.read_timestamp(&after)?);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueOptions {
    /// Priority: higher runs first, 0 is normal.
    pub priority: i32,
    /// Timestamps will be recorded on the queue.
    pub timestamps: bool,
}
