//! Tensors: element type, shape, strides and offset over a shared buffer, or a description of one.

pub(crate) mod atomic_file;
mod contents;
pub mod dlpack;
pub(crate) mod host_array;
pub(crate) mod host_view;
pub(crate) mod layout;
pub(crate) mod npy;
pub(crate) mod pieces;
pub(crate) mod safetensors;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::abi;
use crate::memory::buffer::Buffer;
use crate::model::pitched::Rows;
use crate::model::placement::Placement;
use crate::tensor::host_array::HostArray;
use crate::tensor::layout::{Extents, Layout, checked_bytes};
use crate::timeline::Timeline;
use crate::timeline::open_device::OpenDevice;
use crate::{DType, DeviceId, Error, ErrorKind, Result};

/// A tensor on a device. Cloning shares the memory; so do views.
///
/// Dropping the last user of the memory is always safe and never waits: it is reused only after the work in flight
/// on it has ended. What moves data between the program and a tensor blocks until it is done.
///
/// ```
/// # use runtime_core::{Runtime, Tensor};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let matrix = device.tensor(&[2, 3], &[0i32, 1, 2, 3, 4, 5])?;
/// let transposed = matrix.permute(&[1, 0])?; // shares the memory
/// assert_eq!((transposed.shape(), transposed.strides()), (&[3, 2][..], &[1, 3][..]));
/// assert_eq!(transposed.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]); // in row-major order of the view
///
/// matrix.slice(0, 1..2)?.fill(&7i32.to_le_bytes())?; // the second row
/// assert_eq!(matrix.to_vec::<i32>()?, [0, 1, 2, 7, 7, 7]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    storage: Storage,
    dtype: DType,
    layout: Layout,
    /// The shape as Rust counts.
    extents: Extents<usize>,
    /// Row-major without gaps.
    contiguous: bool,
    /// Contiguous, and aligned for its element type: any kernel can take it. Computed once, since every launch asks.
    plain: bool,
    /// What divides the address of the first element.
    alignment_bytes: u64,
    /// What a launch hands to the backend; points into `layout` beside it.
    raw: abi::TensorArg,
}

// SAFETY: `raw` points into `layout` beside it, which is never changed; the rest is thread-safe.
#[allow(unsafe_code, reason = "`raw` holds pointers into its own structure")]
unsafe impl Send for Inner {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "`raw` holds pointers into its own structure")]
unsafe impl Sync for Inner {}

#[derive(Debug)]
enum Storage {
    Bytes(Arc<Buffer>),
    /// An embedded device creates, fills and checks it: from data, or from a seed.
    Description {
        device: Arc<OpenDevice>,
        data: Option<HostArray>,
        seed: u64,
    },
}

impl Tensor {
    /// Allocates a row-major tensor; its content is unspecified.
    pub(crate) fn allocate(
        device: &Arc<OpenDevice>,
        dtype: DType,
        shape: &[usize],
        placement: &Placement,
    ) -> Result<Self> {
        let bytes = checked_bytes(dtype, shape).map_err(|error| error.in_operation("allocate"))?;
        let buffer = Arc::new(Buffer::allocate(device, bytes, placement)?);
        Ok(Self::over(Storage::Bytes(buffer), dtype, Layout::contiguous(shape)?))
    }

    /// Allocates in order with a queue's work.
    pub(crate) fn allocate_on(
        (device, timeline): (&Arc<OpenDevice>, &Timeline),
        dtype: DType,
        shape: &[usize],
        placement: &Placement,
    ) -> Result<Self> {
        let bytes = checked_bytes(dtype, shape)?;
        let buffer = Arc::new(Buffer::allocate_on(device, timeline, bytes, placement)?);
        Ok(Self::over(Storage::Bytes(buffer), dtype, Layout::contiguous(shape)?))
    }

    /// Describes a tensor that an embedded device will create.
    pub(crate) fn describe(
        device: &Arc<OpenDevice>,
        dtype: DType,
        shape: &[usize],
        data: Option<HostArray>,
        seed: u64,
    ) -> Result<Self> {
        checked_bytes(dtype, shape)?;
        let storage = Storage::Description { device: device.clone(), data, seed };
        Ok(Self::over(storage, dtype, Layout::contiguous(shape)?))
    }

    /// Wraps an imported buffer, in which the layout lies.
    pub(crate) fn adopt(buffer: Buffer, dtype: DType, layout: Layout) -> Self {
        Self::over(Storage::Bytes(Arc::new(buffer)), dtype, layout)
    }

    fn over(storage: Storage, dtype: DType, layout: Layout) -> Self {
        let raw = raw(&storage, dtype, &layout);
        let contiguous = layout.is_contiguous();
        let alignment_bytes = alignment_bytes(&raw);
        let plain = contiguous && alignment_bytes >= dtype.alignment_bytes() as u64;
        let extents = layout.shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect();
        let mut inner =
            Arc::new(Inner { storage, dtype, layout, extents, contiguous, plain, alignment_bytes, raw });
        // Only here does the layout lie where it stays.
        if let Some(Inner { layout, raw, .. }) = Arc::get_mut(&mut inner) {
            (raw.shape, raw.strides) = (layout.shape.as_ptr(), layout.strides.as_ptr());
        }
        Self(inner)
    }

    /// Elements `range` of `axis`, sharing the memory.
    ///
    /// # Errors
    /// `InvalidArgument` for an axis or range that does not exist.
    pub fn slice(&self, axis: usize, range: Range<usize>) -> Result<Self> {
        self.reshaped("slice", self.0.layout.slice(axis, range))
    }

    /// The same elements in another shape, sharing the memory; only of a contiguous tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for another number of elements or a tensor with gaps.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        self.reshaped("reshape", self.0.layout.reshape(shape))
    }

    /// The axes in another order, sharing the memory.
    ///
    /// # Errors
    /// `InvalidArgument` when `axes` is no permutation.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.reshaped("permute", self.0.layout.permute(axes))
    }

    /// Any view of the buffer: strides and offset in elements, negative and zero strides included.
    ///
    /// # Errors
    /// `InvalidArgument` when it reaches outside the buffer.
    pub fn view(&self, shape: &[usize], strides: &[i64], offset: usize) -> Result<Self> {
        let capacity = self.buffer("view")?.bytes / self.dtype().bytes().max(1);
        let counted = checked_bytes(self.dtype(), shape);
        self.reshaped("view", counted.and_then(|_| Layout::strided(shape, strides, offset, capacity)))
    }

    fn reshaped(&self, operation: &str, layout: Result<Layout>) -> Result<Self> {
        let buffer = self.buffer(operation)?.clone();
        Ok(Self::over(
            Storage::Bytes(buffer),
            self.dtype(),
            layout.map_err(|error| error.in_operation(operation))?,
        ))
    }

    /// Makes the content final, after the work that writes it has ended. Launches may only read it, and skip the
    /// bookkeeping, so that threads share it without contention. For weights.
    ///
    /// # Errors
    /// The failure of the work that wrote it.
    pub fn freeze(&self) -> Result<()> {
        self.buffer("freeze")?.freeze()
    }

    /// Whether the content is final.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        matches!(&self.0.storage, Storage::Bytes(buffer) if buffer.is_frozen())
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Extents in elements.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.0.extents
    }

    /// Strides in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.0.layout.strides
    }

    /// Offset of the first element in the buffer, in bytes.
    #[must_use]
    pub fn byte_offset(&self) -> usize {
        self.0.layout.offset * self.dtype().bytes()
    }

    /// Number of elements.
    #[must_use]
    pub fn element_count(&self) -> usize {
        self.0.layout.elements()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.element_count() == 0
    }

    /// Bytes of the elements, gaps not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.element_count() * self.dtype().bytes()
    }

    /// Whether the elements are row-major without gaps.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous
    }

    /// Whether any kernel can take it: contiguous, and aligned for its element type.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// The largest power of two that divides the address of the first element; of the offset in the buffer where kernels
    /// see no addresses.
    #[inline]
    pub(crate) fn alignment_bytes(&self) -> u64 {
        self.0.alignment_bytes
    }

    /// Whether elements lie before the first one, as with a negative stride.
    pub(crate) fn begins_inside(&self) -> bool {
        self.0.layout.reach().is_some_and(|(low, _)| low < 0)
    }

    /// The device it is placed on.
    #[must_use]
    pub fn device_id(&self) -> &DeviceId {
        &self.device().info.id
    }

    /// The memory space it is placed in; `described` for a tensor of an embedded device.
    #[must_use]
    pub fn space(&self) -> &str {
        match &self.0.storage {
            Storage::Bytes(buffer) => &buffer.space().name,
            Storage::Description { .. } => "described",
        }
    }

    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        match &self.0.storage {
            Storage::Bytes(buffer) => &buffer.device,
            Storage::Description { device, .. } => device,
        }
    }

    /// The buffer behind the tensor.
    #[inline]
    pub(crate) fn buffer(&self, operation: &str) -> Result<&Arc<Buffer>> {
        match &self.0.storage {
            Storage::Bytes(buffer) => Ok(buffer),
            Storage::Description { device, .. } => Err(described(operation, device)),
        }
    }

    /// What the description says: initial data and seed.
    pub(crate) fn description(&self) -> Option<(Option<&HostArray>, u64)> {
        match &self.0.storage {
            Storage::Description { data, seed, .. } => Some((data.as_ref(), *seed)),
            Storage::Bytes(_) => None,
        }
    }

    /// What a launch hands to the backend.
    #[inline]
    pub(crate) fn raw(&self) -> &abi::TensorArg {
        &self.0.raw
    }

    /// First byte of the buffer that an element touches.
    pub(crate) fn first_byte(&self) -> usize {
        let low = self.0.layout.reach().map_or(0, |(low, _)| low);
        self.byte_offset()
            .saturating_add_signed(isize::try_from(low).unwrap_or(0) * self.dtype().bytes().cast_signed())
    }

    /// Bytes from the element that lies first in memory to the end of the one that lies last.
    fn span_bytes(&self) -> usize {
        let (low, high) = self.0.layout.reach().unwrap_or((0, -1));
        usize::try_from(high - low + 1).unwrap_or(0).saturating_mul(self.dtype().bytes())
    }

    /// Bytes from the first element to the end of the one that lies last; elements before the first do not count.
    #[inline]
    pub(crate) fn reach_bytes(&self) -> u64 {
        self.0.raw.span_bytes
    }

    /// Whether [`Tensor::reach_bytes`] are so many or more.
    #[inline]
    pub(crate) fn reaches(&self, bytes: u64) -> bool {
        // What an element has, any element has.
        let has_element = || !self.0.layout.shape.contains(&0);
        bytes <= self.0.dtype.bytes() as u64 && has_element() || bytes <= self.reach_bytes()
    }

    /// Whether code that is given the addresses of both tensors' first elements, and keeps to their reach, can touch a
    /// byte of both.
    #[inline]
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (&self.0.storage, &other.0.storage) {
            (Storage::Bytes(own), Storage::Bytes(others)) if Arc::ptr_eq(own, others) => self.meets(other),
            _ => false,
        }
    }

    /// Whether both reach a common byte of the buffer that they share.
    fn meets(&self, other: &Self) -> bool {
        let range = |tensor: &Self| {
            let first = tensor.byte_offset() as u64;
            first..first + tensor.reach_bytes()
        };
        let (own_range, others_range) = (range(self), range(other));
        own_range.start < others_range.end
            && others_range.start < own_range.end
            && !own_range.is_empty()
            && !others_range.is_empty()
    }

    /// How the elements lie in the buffer.
    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The rows that the elements lie in, if they do.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let Layout { shape, strides, .. } = &self.0.layout;
        Rows::of(shape, strides, self.byte_offset(), self.dtype().bytes())
    }
}

/// What a launch hands to the backend, but for shape and strides, which do not lie yet where they stay.
fn raw(storage: &Storage, dtype: DType, layout: &Layout) -> abi::TensorArg {
    let (buffer, address) = match storage {
        Storage::Bytes(buffer) => (buffer.handle, buffer.kernel_address),
        Storage::Description { .. } => (std::ptr::null_mut(), 0),
    };
    let byte_offset = (layout.offset * dtype.bytes()) as u64;
    // A backend binds these bytes behind the first element: with those before it, it would bind past the buffer.
    let last = layout.reach().map_or(-1, |(_, high)| high);
    abi::TensorArg {
        struct_size: crate::end_of!(abi::TensorArg, strides),
        ndim: u32::try_from(layout.shape.len()).unwrap_or(u32::MAX),
        buffer,
        address: if address == 0 { 0 } else { address + byte_offset },
        byte_offset,
        span_bytes: u64::try_from(last + 1).unwrap_or(0) * dtype.bytes() as u64,
        dtype: dtype.0,
        shape: std::ptr::null(),
        strides: std::ptr::null(),
    }
}

/// The largest power of two that divides where kernels see the first element; of no element, any.
fn alignment_bytes(raw: &abi::TensorArg) -> u64 {
    const MOST: u64 = 1 << 63;
    let first = if raw.address == 0 { raw.byte_offset } else { raw.address };
    if raw.span_bytes == 0 { MOST } else { 1 << (first | MOST).trailing_zeros() }
}

fn described(operation: &str, device: &OpenDevice) -> Error {
    let message =
        "a tensor of an embedded device is described, not held; flash a program and read its tensors";
    Error::new(ErrorKind::Unsupported, message).in_operation(operation).on_device(&device.name)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {} {})", self.dtype(), self.shape(), self.device_id(), self.space())
    }
}
