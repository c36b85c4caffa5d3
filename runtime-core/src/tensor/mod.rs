//! What the methods of a [`Tensor`] return, and [DLPack](dlpack).

mod contents;
pub mod dlpack;
pub(crate) mod generate;
pub(crate) mod host_array;
pub(crate) mod host_view;
pub(crate) mod layout;
mod native;
#[cfg(feature = "ndarray")]
mod ndarray;
pub(crate) mod npy;
pub(crate) mod number;
pub(crate) mod pitched_copies;
pub(crate) mod safetensors;

pub use crate::model::native::NativeTensor;
pub use generate::Interval;
pub use host_view::{HostView, HostViewMut};
pub use safetensors::StoredTensor;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use crate::abi;
use crate::memory::buffer::Buffer;
use crate::model::pitched::Rows;
use crate::model::placement::Placement;
use crate::tensor::host_array::HostArray;
use crate::tensor::layout::{Extents, Layout, checked_bytes};
use crate::timeline::Timeline;
use crate::timeline::open_device::OpenDevice;
use crate::{DType, DeviceId, Error, ErrorKind, Result};

/// A tensor on a device. Clones and views share its memory.
///
/// Dropping the last user of the memory is always safe and never waits: the memory is reused only after all
/// work in flight on it has ended. Transfers between host memory and a tensor block until they are complete.
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

/// A tensor that may be gone. No later tensor has the same identity.
#[derive(Debug)]
pub(crate) struct TensorIdentity(Weak<Inner>);

struct Inner {
    storage: Storage,
    dtype: DType,
    layout: Layout,
    /// The shape as `usize`.
    extents: Extents<usize>,
    /// Row-major without gaps.
    contiguous: bool,
    /// Contiguous, and aligned for its element type: any kernel accepts it. Computed once, because every launch
    /// needs it.
    dense_aligned: bool,
    /// The alignment of the first element; see [`Tensor::alignment_bytes`].
    alignment_bytes: u64,
    /// A number for its type; see [`Tensor::type_word`].
    type_word: u64,
    /// The ABI form for launches; points into `layout` next to it.
    raw: abi::TensorArg,
}

// SAFETY: `raw` points into `layout` next to it, which is never modified; the rest is thread-safe.
#[allow(unsafe_code, reason = "`raw` holds pointers into its own structure")]
unsafe impl Send for Inner {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "`raw` holds pointers into its own structure")]
unsafe impl Sync for Inner {}

#[derive(Debug)]
enum Storage {
    Bytes(Arc<Buffer>),
    /// To be created, filled (from data or a seed) and checked by an embedded device.
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
        Ok(Self::from_storage(Storage::Bytes(buffer), dtype, Layout::contiguous(shape)?))
    }

    /// Allocates in order with the work of a queue.
    pub(crate) fn allocate_on(
        (device, timeline): (&Arc<OpenDevice>, &Timeline),
        dtype: DType,
        shape: &[usize],
        placement: &Placement,
    ) -> Result<Self> {
        let bytes = checked_bytes(dtype, shape)?;
        let buffer = Arc::new(Buffer::allocate_on(device, timeline, bytes, placement)?);
        Ok(Self::from_storage(Storage::Bytes(buffer), dtype, Layout::contiguous(shape)?))
    }

    /// Describes a tensor that an embedded device will create.
    pub(crate) fn new_described(
        device: &Arc<OpenDevice>,
        dtype: DType,
        shape: &[usize],
        data: Option<HostArray>,
        seed: u64,
    ) -> Result<Self> {
        checked_bytes(dtype, shape)?;
        let storage = Storage::Description { device: device.clone(), data, seed };
        Ok(Self::from_storage(storage, dtype, Layout::contiguous(shape)?))
    }

    /// Wraps an imported buffer; `layout` must be within it.
    pub(crate) fn from_buffer(buffer: Buffer, dtype: DType, layout: Layout) -> Self {
        Self::from_storage(Storage::Bytes(Arc::new(buffer)), dtype, layout)
    }

    fn from_storage(storage: Storage, dtype: DType, layout: Layout) -> Self {
        let raw = raw(&storage, dtype, &layout);
        let contiguous = layout.is_contiguous();
        let alignment_bytes = alignment_bytes(&raw);
        let space = if let Storage::Bytes(buffer) = &storage { buffer.space } else { 0 };
        let type_word = type_word(dtype, layout.shape.len(), contiguous, space);
        let dense_aligned = contiguous && alignment_bytes >= dtype.alignment_bytes() as u64;
        let extents = layout.shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect();
        let mut inner = Arc::new(Inner {
            storage,
            dtype,
            layout,
            extents,
            contiguous,
            dense_aligned,
            alignment_bytes,
            type_word,
            raw,
        });
        // The layout has reached its final address only now.
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
        self.with_layout("slice", self.0.layout.slice(axis, range))
    }

    /// The same elements in another shape, sharing the memory. The tensor must be contiguous.
    ///
    /// # Errors
    /// `InvalidArgument` for a different number of elements, or a tensor with gaps.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        self.with_layout("reshape", self.0.layout.reshape(shape))
    }

    /// The axes in another order, sharing the memory.
    ///
    /// # Errors
    /// `InvalidArgument` if `axes` is not a permutation.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.with_layout("permute", self.0.layout.permute(axes))
    }

    /// The axes in reverse order, sharing the memory: the transpose of a matrix.
    ///
    /// # Errors
    /// `Unsupported` for a tensor of an embedded device.
    pub fn transpose(&self) -> Result<Self> {
        let axes: Vec<usize> = (0..self.shape().len()).rev().collect();
        self.with_layout("transpose", self.0.layout.permute(&axes))
    }

    /// Without the axes of extent 1, sharing the memory.
    ///
    /// # Errors
    /// `Unsupported` for a tensor of an embedded device.
    pub fn squeeze(&self) -> Result<Self> {
        self.with_layout("squeeze", Ok(self.0.layout.squeeze()))
    }

    /// Repeats the elements along new axes in front, and along axes of extent 1, by strides of 0: as in NumPy, without a copy. Several
    /// indices are one element then, which a kernel should only read.
    ///
    /// # Errors
    /// `InvalidArgument` if an axis has another extent than 1 and that of `shape`, or `shape` has fewer axes.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        let counted = checked_bytes(self.dtype(), shape);
        self.with_layout("broadcast_to", counted.and_then(|_| self.0.layout.broadcast_to(shape)))
    }

    /// Any view of the buffer: strides and offset in elements, negative and zero strides included.
    ///
    /// # Errors
    /// `InvalidArgument` if the view is out of bounds of the buffer.
    pub fn view(&self, shape: &[usize], strides: &[i64], offset: usize) -> Result<Self> {
        let capacity = self.buffer("view")?.bytes / self.dtype().bytes().max(1);
        let counted = checked_bytes(self.dtype(), shape);
        self.with_layout("view", counted.and_then(|_| Layout::strided(shape, strides, offset, capacity)))
    }

    fn with_layout(&self, operation: &str, layout: Result<Layout>) -> Result<Self> {
        let buffer = self.buffer(operation)?.clone();
        Ok(Self::from_storage(
            Storage::Bytes(buffer),
            self.dtype(),
            layout.map_err(|error| error.in_operation(operation))?,
        ))
    }

    /// Makes the content final, after waiting for the work that writes it. From then on, launches may only read
    /// it, and do so without hazard tracking: threads share it without contention. Use it for weights.
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
    pub fn len(&self) -> usize {
        self.0.layout.elements()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of the elements in bytes, without gaps.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.len() * self.dtype().bytes()
    }

    /// Whether the elements are row-major without gaps.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.0.contiguous
    }

    /// Whether it is contiguous and aligned for its element type, so that any kernel accepts it.
    #[inline]
    pub(crate) fn is_dense_aligned(&self) -> bool {
        self.0.dense_aligned
    }

    /// The largest power of two that divides the address of the first element, or its offset in the buffer on
    /// devices where kernels do not see addresses.
    #[inline]
    pub(crate) fn alignment_bytes(&self) -> u64 {
        self.0.alignment_bytes
    }

    /// Whether any element precedes the first one in memory, as with a negative stride.
    pub(crate) fn has_negative_offsets(&self) -> bool {
        self.0.layout.offset_bounds().is_some_and(|(low, _)| low < 0)
    }

    /// The device that holds it.
    #[must_use]
    pub fn device_id(&self) -> &DeviceId {
        &self.device().info.id
    }

    /// The memory space that holds it; `described` for a tensor of an embedded device.
    #[must_use]
    pub fn space(&self) -> &str {
        match &self.0.storage {
            Storage::Bytes(buffer) => &buffer.space().name,
            Storage::Description { .. } => "described",
        }
    }

    /// A number for its element type, rank, contiguity and memory space: equal for tensors of one device that a kernel cannot
    /// tell apart by their types.
    #[inline]
    pub(crate) fn type_word(&self) -> u64 {
        self.0.type_word
    }

    #[inline]
    pub(crate) fn device(&self) -> &Arc<OpenDevice> {
        match &self.0.storage {
            Storage::Bytes(buffer) => &buffer.device,
            Storage::Description { device, .. } => device,
        }
    }

    /// Whether both are clones of one tensor.
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What [`Tensor::is`] recognises its clones by. It keeps no memory of the tensor.
    pub(crate) fn identity(&self) -> TensorIdentity {
        TensorIdentity(Arc::downgrade(&self.0))
    }

    /// Whether it is a clone of the tensor with this identity.
    pub(crate) fn is(&self, identity: &TensorIdentity) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.0), identity.0.as_ptr())
    }

    /// The number of its clones, itself included.
    pub(crate) fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The buffer behind the tensor.
    #[inline]
    pub(crate) fn buffer(&self, operation: &str) -> Result<&Arc<Buffer>> {
        match &self.0.storage {
            Storage::Bytes(buffer) => Ok(buffer),
            Storage::Description { device, .. } => Err(not_in_memory(operation, device)),
        }
    }

    /// Whether the program can access the memory directly.
    pub(crate) fn is_host_visible(&self) -> bool {
        matches!(&self.0.storage, Storage::Bytes(buffer) if !buffer.host_pointer.is_null())
    }

    /// The initial data and the seed of a described tensor.
    pub(crate) fn description(&self) -> Option<(Option<&HostArray>, u64)> {
        match &self.0.storage {
            Storage::Description { data, seed, .. } => Some((data.as_ref(), *seed)),
            Storage::Bytes(_) => None,
        }
    }

    /// The ABI form for launches.
    #[inline]
    pub(crate) fn raw(&self) -> &abi::TensorArg {
        &self.0.raw
    }

    /// Offset of the lowest byte in the buffer that belongs to an element.
    pub(crate) fn first_byte_offset(&self) -> usize {
        let low = self.0.layout.offset_bounds().map_or(0, |(low, _)| low);
        self.byte_offset()
            .saturating_add_signed(isize::try_from(low).unwrap_or(0) * self.dtype().bytes().cast_signed())
    }

    /// Bytes from the lowest element in memory to the end of the highest.
    fn span_bytes(&self) -> usize {
        let (low, high) = self.0.layout.offset_bounds().unwrap_or((0, -1));
        usize::try_from(high - low + 1).unwrap_or(0).saturating_mul(self.dtype().bytes())
    }

    /// Bytes from the first element to the end of the highest one in memory. Elements before the first do not
    /// count.
    #[inline]
    pub(crate) fn extent_bytes(&self) -> u64 {
        self.0.raw.span_bytes
    }

    /// Whether [`Tensor::extent_bytes`] is at least `bytes`.
    #[inline]
    pub(crate) fn covers(&self, bytes: u64) -> bool {
        // Fast path: a non-empty tensor covers at least one element.
        let has_element = || !self.0.layout.shape.contains(&0);
        bytes <= self.0.dtype.bytes() as u64 && has_element() || bytes <= self.extent_bytes()
    }

    /// Whether the extents of both tensors, from their first elements upwards, have a byte in common.
    #[inline]
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.shares_buffer_with(other) && self.intersects(other)
    }

    /// As [`Tensor::overlaps`], for two tensors in one buffer.
    fn intersects(&self, other: &Self) -> bool {
        let range = |tensor: &Self| {
            let first = tensor.byte_offset() as u64;
            first..first + tensor.extent_bytes()
        };
        let (own_range, others_range) = (range(self), range(other));
        own_range.start < others_range.end
            && others_range.start < own_range.end
            && !own_range.is_empty()
            && !others_range.is_empty()
    }

    /// The bytes of the buffer from the lowest element to the end of the highest.
    fn byte_range(&self) -> Range<usize> {
        let first = self.first_byte_offset();
        first..first + self.span_bytes()
    }

    /// Whether the buffer of both is one, and some byte between the lowest and the highest element of each is of both.
    pub(crate) fn shares_memory_with(&self, other: &Self) -> bool {
        let (own, others) = (self.byte_range(), other.byte_range());
        self.shares_buffer_with(other) && own.start < others.end && others.start < own.end
    }

    /// Whether both consist of the same elements of one buffer. For contiguous tensors.
    pub(crate) fn has_elements_of(&self, other: &Self) -> bool {
        let place = |tensor: &Self| (tensor.byte_offset(), tensor.extent_bytes(), tensor.dtype());
        self.shares_buffer_with(other) && place(self) == place(other)
    }

    #[inline]
    fn shares_buffer_with(&self, other: &Self) -> bool {
        match (&self.0.storage, &other.0.storage) {
            (Storage::Bytes(own), Storage::Bytes(others)) => Arc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Whether its elements lie in the memory between the lowest and the highest element of `other`.
    pub(crate) fn lies_within(&self, other: &Self) -> bool {
        let (own, others) = (self.byte_range(), other.byte_range());
        self.shares_buffer_with(other) && others.start <= own.start && own.end <= others.end
    }

    /// The view of `new` that corresponds to this view, which lies within `old`. The layouts of `old` and `new` are equal.
    ///
    /// # Errors
    /// `InvalidArgument` if the memory of `new` is not aligned like that of `old`.
    pub(crate) fn moved(&self, old: &Self, new: &Self) -> Result<Self> {
        if self.dtype() == old.dtype() && self.0.layout == old.0.layout {
            return Ok(new.clone());
        }
        let size = self.dtype().bytes().max(1);
        let first = (new.byte_offset() + self.byte_offset()).checked_sub(old.byte_offset());
        match first.filter(|first| first.is_multiple_of(size)) {
            Some(first) => {
                let layout = Layout { offset: first / size, ..self.0.layout.clone() };
                Ok(Self::from_storage(Storage::Bytes(new.buffer("rebind")?.clone()), self.dtype(), layout))
            }
            None => Err(Error::invalid(format!("{new:?} does not begin at a multiple of {size} bytes"))),
        }
    }

    /// The layout of the elements in the buffer.
    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The pitched rows that the elements form, if they do.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let Layout { shape, strides, .. } = &self.0.layout;
        Rows::from_strides(shape, strides, self.byte_offset(), self.dtype().bytes())
    }
}

/// The bit of [`type_word`] that says whether a tensor is contiguous.
pub(crate) const CONTIGUOUS: u64 = 1 << 60;

/// The number that [`Tensor::type_word`] returns; its highest three bits are 0.
pub(crate) fn type_word(dtype: DType, rank: usize, contiguous: bool, space: usize) -> u64 {
    let (code, bits, lanes) = dtype.dlpack();
    // A kernel does not depend on a rank that is beyond all others.
    let (rank, space) = (rank.min(0xfff) as u64, space.min(0xfff) as u64);
    let dtype = u64::from(code) << 24 | u64::from(bits) << 16 | u64::from(lanes);
    if contiguous { CONTIGUOUS | space << 48 | rank << 32 | dtype } else { space << 48 | rank << 32 | dtype }
}

/// The ABI form for launches, without pointers to shape and strides, which have not reached their final address
/// yet.
fn raw(storage: &Storage, dtype: DType, layout: &Layout) -> abi::TensorArg {
    let (buffer, address) = match storage {
        Storage::Bytes(buffer) => (buffer.handle, buffer.kernel_address),
        Storage::Description { .. } => (std::ptr::null_mut(), 0),
    };
    let byte_offset = (layout.offset * dtype.bytes()) as u64;
    // A backend binds this many bytes from the first element on. Counting elements before it would bind past
    // the buffer.
    let last = layout.offset_bounds().map_or(-1, |(_, high)| high);
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

/// The alignment of the first element as kernels see it; without elements, the largest possible.
fn alignment_bytes(raw: &abi::TensorArg) -> u64 {
    const ANY: u64 = 1 << 63;
    let first = if raw.address == 0 { raw.byte_offset } else { raw.address };
    if raw.span_bytes == 0 { ANY } else { 1 << (first | ANY).trailing_zeros() }
}

fn not_in_memory(operation: &str, device: &OpenDevice) -> Error {
    let message =
        "tensors of an embedded device have no memory on the host; flash a program and read its tensors";
    Error::new(ErrorKind::Unsupported, message).in_operation(operation).on_device(&device.name)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {} {})", self.dtype(), self.shape(), self.device_id(), self.space())
    }
}
