//! Tensors: element type, shape, strides and offset over a shared buffer, or a description of one.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::abi;
use crate::array::HostArray;
use crate::buffer::{Buffer, Placement};
use crate::common_runtime::CommonRuntime;
use crate::device::{Device, with_exclusive};
use crate::layout::{Extents, Layout, checked_bytes, checked_elements};
use crate::rows::Rows;
use crate::transfer;
use crate::{Access, DType, DeviceId, Element, Error, ErrorKind, Queue, Result};

/// A tensor on a device. Cloning shares the memory; so do views.
///
/// Dropping the last user of the memory is always safe and never waits: it is reused only after the work in flight
/// on it has ended. What moves data between the program and a tensor blocks until it is done.
///
/// ```
/// # use runtime_core::{Runtime, Tensor};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// let matrix = Tensor::from_slice(&*device, &[2, 3], &[0i32, 1, 2, 3, 4, 5])?;
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
        device: Arc<Device>,
        data: Option<HostArray>,
        seed: u64,
    },
}

impl Tensor {
    /// Allocates a row-major tensor; its content is undefined.
    pub(crate) fn allocate(
        device: &Arc<Device>,
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
        queue: &Queue,
        dtype: DType,
        shape: &[usize],
        placement: &Placement,
    ) -> Result<Self> {
        let buffer = Arc::new(Buffer::allocate_on(queue, checked_bytes(dtype, shape)?, placement)?);
        Ok(Self::over(Storage::Bytes(buffer), dtype, Layout::contiguous(shape)?))
    }

    /// Describes a tensor that an embedded device will create.
    pub(crate) fn describe(
        device: &Arc<Device>,
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
        let (buffer, address) = match &storage {
            Storage::Bytes(buffer) => (buffer.handle, buffer.kernel_address),
            Storage::Description { .. } => (std::ptr::null_mut(), 0),
        };
        let (low, high) = layout.reach().unwrap_or((0, -1));
        let byte_offset = (layout.offset * dtype.bytes()) as u64;
        let span = u64::try_from(high - low + 1).unwrap_or(0) * dtype.bytes() as u64;
        let raw = abi::TensorArg {
            struct_size: crate::end_of!(abi::TensorArg, strides),
            ndim: u32::try_from(layout.shape.len()).unwrap_or(u32::MAX),
            buffer,
            address: if address == 0 { 0 } else { address + byte_offset },
            byte_offset,
            span_bytes: span,
            dtype: dtype.0,
            shape: std::ptr::null(),
            strides: std::ptr::null(),
        };
        let extents = layout.shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).collect();
        let mut inner = Arc::new(Inner { storage, dtype, layout, extents, raw });
        // Only here does the layout lie where it stays.
        if let Some(Inner { layout, raw, .. }) = Arc::get_mut(&mut inner) {
            (raw.shape, raw.strides) = (layout.shape.as_ptr(), layout.strides.as_ptr());
        }
        Self(inner)
    }

    /// Makes a row-major tensor from a slice, in the device's default memory space.
    ///
    /// # Errors
    /// `InvalidArgument` when the shape has another number of elements than `data`; `OutOfMemory`.
    pub fn from_slice<T: Element>(device: &dyn CommonRuntime, shape: &[usize], data: &[T]) -> Result<Self> {
        let elements = checked_elements(shape)?;
        if elements != data.len() {
            return Err(Error::invalid(format!(
                "shape {shape:?} has {elements} elements, data has {}",
                data.len()
            ))
            .in_operation("from_slice"));
        }
        let tensor = device.allocate(T::DTYPE, shape, &Placement::default())?;
        tensor.write(data)?;
        Ok(tensor)
    }

    /// Makes a tensor from host data.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a memory space that does not exist.
    pub fn from_array(device: &dyn CommonRuntime, array: &HostArray, placement: &Placement) -> Result<Self> {
        let tensor = device.allocate(array.dtype(), array.shape(), placement)?;
        tensor.write_array(array)?;
        Ok(tensor)
    }

    /// Writes row-major elements; waits for what is in flight on the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for another element type or count; whatever the device says.
    pub fn write<T: Element>(&self, data: &[T]) -> Result<()> {
        self.check_dtype(T::DTYPE, "write")?;
        self.write_bytes(bytemuck::cast_slice(data))
    }

    /// Writes host data of the same type and element count; waits for what is in flight on the tensor.
    ///
    /// # Errors
    /// As [`Tensor::write`].
    pub fn write_array(&self, array: &HostArray) -> Result<()> {
        self.check_dtype(array.dtype(), "write_array")?;
        self.write_bytes(array.bytes())
    }

    /// Writes row-major bytes; waits for what is in flight on the tensor.
    ///
    /// # Errors
    /// As [`Tensor::write`].
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        let wanted = self.bytes();
        if bytes.len() != wanted {
            return Err(Error::invalid(format!("{} bytes for a tensor of {wanted}", bytes.len()))
                .in_operation("write"));
        }
        let buffer = self.buffer("write")?;
        buffer.check_writable("write")?;
        let whole = wanted == buffer.bytes;
        let access = if whole { Access::Write } else { Access::ReadWrite };
        with_exclusive(&buffer.device, &buffer.hazards, access, |hazards| {
            // Under the lock: it may be frozen while this waits.
            buffer.check_writable("write")?;
            hazards.check_unmapped(access)?;
            self.write_placed(buffer, bytes)?;
            if whole {
                hazards.clear_uses();
            }
            Ok(())
        })
        .map_err(|error| error.in_operation("write"))
    }

    /// Reads row-major bytes; waits for what is in flight on the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for another length; the failure of the work that wrote the tensor.
    pub fn read_bytes(&self, bytes: &mut [u8]) -> Result<()> {
        let wanted = self.bytes();
        if bytes.len() != wanted {
            return Err(Error::invalid(format!("{} bytes for a tensor of {wanted}", bytes.len()))
                .in_operation("read"));
        }
        let buffer = self.buffer("read")?;
        with_exclusive(&buffer.device, &buffer.hazards, Access::Read, |hazards| {
            hazards.check_unmapped(Access::Read)?;
            self.read_placed(buffer, bytes)
        })
        .map_err(|error| error.in_operation("read"))
    }

    /// Reads all elements in row-major order; waits for what is in flight on the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for another element type; the failure of the work that wrote the tensor.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype(T::DTYPE, "to_vec")?;
        let mut data = bytemuck::zeroed_vec(self.element_count());
        self.read_bytes(bytemuck::cast_slice_mut(&mut data))?;
        Ok(data)
    }

    /// Reads everything into host data; waits for what is in flight on the tensor.
    ///
    /// # Errors
    /// The failure of the work that wrote the tensor; `OutOfMemory`.
    pub fn to_array(&self) -> Result<HostArray> {
        let mut array = HostArray::new(self.dtype(), self.shape())?;
        self.read_bytes(array.bytes_mut())?;
        Ok(array)
    }

    /// Fills the tensor with a repeated pattern of bytes; waits for what is in flight on it.
    ///
    /// # Errors
    /// `InvalidArgument` when the pattern does not divide the tensor's bytes.
    pub fn fill(&self, pattern: &[u8]) -> Result<()> {
        let bytes = self.bytes();
        if pattern.is_empty() || !bytes.is_multiple_of(pattern.len()) {
            return Err(Error::invalid(format!(
                "a pattern of {} bytes for a tensor of {bytes}",
                pattern.len()
            ))
            .in_operation("fill"));
        }
        self.write_bytes(&pattern.repeat(bytes / pattern.len()))
    }

    /// Copies to another device, or another memory space.
    ///
    /// # Errors
    /// `OutOfMemory`; the failure of the work that wrote the tensor.
    pub fn to_device(&self, device: &dyn CommonRuntime, placement: &Placement) -> Result<Self> {
        Self::from_array(device, &self.to_array()?, placement)
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

    /// Bytes of the elements, gaps not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.element_count() * self.dtype().bytes()
    }

    /// Whether the elements are row-major without gaps.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.is_contiguous()
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

    pub(crate) fn device(&self) -> &Arc<Device> {
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

    /// Bytes from the first to the last element that is touched.
    pub(crate) fn span_bytes(&self) -> usize {
        usize::try_from(self.0.raw.span_bytes).unwrap_or(usize::MAX)
    }

    /// Bytes from the first element to the end of the one that lies last; elements before the first do not count.
    pub(crate) fn reach_bytes(&self) -> u64 {
        let last = self.0.layout.reach().map_or(-1, |(_, high)| high);
        u64::try_from(last + 1).unwrap_or(0) * self.0.dtype.bytes() as u64
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

    /// The rows that the elements lie in, if they do.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let Layout { shape, strides, .. } = &self.0.layout;
        Rows::of(shape, strides, self.byte_offset(), self.dtype().bytes())
    }

    /// Writes row-major bytes where the elements lie. The caller holds the hazards.
    fn write_placed(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        if self.is_contiguous() {
            return transfer::write(buffer, self.byte_offset(), bytes);
        }
        if let Some(rows) = self.rows()
            && transfer::write_rows(buffer, &rows, bytes)?
        {
            return Ok(());
        }
        let mut span = self.read_span(buffer)?;
        self.scatter(bytes, &mut span);
        transfer::write(buffer, self.first_byte(), &span)
    }

    /// Reads the elements as row-major bytes. The caller holds the hazards.
    fn read_placed(&self, buffer: &Buffer, bytes: &mut [u8]) -> Result<()> {
        if self.is_contiguous() {
            return transfer::read(buffer, self.byte_offset(), bytes);
        }
        if let Some(rows) = self.rows()
            && transfer::read_rows(buffer, &rows, bytes)?
        {
            return Ok(());
        }
        let span = self.read_span(buffer)?;
        self.gather(&span, bytes);
        Ok(())
    }

    fn read_span(&self, buffer: &Buffer) -> Result<Vec<u8>> {
        let mut span = vec![0; self.span_bytes()];
        transfer::read(buffer, self.first_byte(), &mut span)?;
        Ok(span)
    }

    /// Spreads row-major elements over the bytes of the span.
    fn scatter(&self, elements: &[u8], span: &mut [u8]) {
        if let Some(rows) = self.rows() {
            return rows.scatter(elements, span);
        }
        let size = self.dtype().bytes();
        let mut source = elements.chunks_exact(size);
        self.for_each_in_span(|at| {
            if let Some(element) = source.next() {
                span[at * size..(at + 1) * size].copy_from_slice(element);
            }
        });
    }

    /// Collects row-major elements from the bytes of the span.
    fn gather(&self, span: &[u8], elements: &mut [u8]) {
        if let Some(rows) = self.rows() {
            return rows.gather(span, elements);
        }
        let size = self.dtype().bytes();
        let mut destination = elements.chunks_exact_mut(size);
        self.for_each_in_span(|at| {
            if let Some(element) = destination.next() {
                element.copy_from_slice(&span[at * size..(at + 1) * size]);
            }
        });
    }

    fn for_each_in_span(&self, visit: impl FnMut(usize)) {
        let low = self.0.layout.reach().map_or(0, |(low, _)| low);
        self.0.layout.for_each(-low, visit);
    }

    fn check_dtype(&self, given: DType, operation: &str) -> Result<()> {
        if given == self.dtype() {
            return Ok(());
        }
        Err(Error::invalid(format!("elements of {given} for a tensor of {}", self.dtype()))
            .in_operation(operation))
    }
}

fn described(operation: &str, device: &Device) -> Error {
    let message =
        "a tensor of an embedded device is described, not held; flash a program and read its tensors";
    Error::new(ErrorKind::Unsupported, message).in_operation(operation).on_device(&device.name)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {:?} on {} {})", self.dtype(), self.shape(), self.device_id(), self.space())
    }
}
