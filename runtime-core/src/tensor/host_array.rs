//! Arrays in host memory, for data on its way into and out of tensors.

use std::fmt;
use std::sync::Arc;

use crate::{DType, Element, Error, ErrorKind, Result};

/// Alignment of host memory: at least a cache line on any machine, and enough for vector code and DMA engines.
const ALIGNMENT_BYTES: usize = 256;

#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(256))]
struct AlignedBlock([u8; ALIGNMENT_BYTES]);

/// An array in host memory: element type, shape, and contiguous row-major bytes that it owns.
///
/// The data is aligned to 256 bytes. Unlike a tensor, an array belongs to no device, so no work is ever in
/// flight on it.
///
/// ```
/// use runtime_core::HostArray;
///
/// let array = HostArray::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(array.as_slice::<f32>()?[4], 5.0);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone)]
pub struct HostArray {
    dtype: DType,
    shape: Vec<usize>,
    len_bytes: usize,
    /// Shared with clones until one of them is written.
    blocks: Arc<Box<[AlignedBlock]>>,
}

impl HostArray {
    /// Creates an array of zeros.
    ///
    /// # Errors
    /// `InvalidArgument` if the size in bytes overflows; `OutOfMemory` (never an abort) if the allocation
    /// fails.
    pub fn new(dtype: DType, shape: &[usize]) -> Result<Self> {
        let len_bytes = byte_count(dtype, shape)?;
        let blocks = bytemuck::allocation::try_zeroed_slice_box(len_bytes.div_ceil(ALIGNMENT_BYTES));
        let blocks = blocks.map_err(|()| {
            Error::new(
                ErrorKind::OutOfMemory,
                format!("cannot allocate {len_bytes} bytes of host memory for {dtype} {shape:?}"),
            )
        })?;
        Ok(Self { dtype, shape: shape.to_vec(), len_bytes, blocks: Arc::new(blocks) })
    }

    /// Copies elements in row-major order.
    ///
    /// # Errors
    /// `InvalidArgument` unless `data` has as many elements as `shape`; as [`HostArray::new`].
    pub fn from_slice<T: Element>(shape: &[usize], data: &[T]) -> Result<Self> {
        Self::from_bytes(T::DTYPE, shape, bytemuck::cast_slice(data))
    }

    /// Copies the bytes of elements in row-major order, for any element type.
    ///
    /// # Errors
    /// `InvalidArgument` unless `bytes` has the size that `dtype` and `shape` need; as [`HostArray::new`].
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Self> {
        let needed = byte_count(dtype, shape)?;
        if bytes.len() != needed {
            return Err(Error::invalid(format!(
                "data has {} bytes, but {dtype} {shape:?} needs {needed}",
                bytes.len()
            )));
        }
        let mut array = Self::new(dtype, shape)?;
        array.bytes_mut().copy_from_slice(bytes);
        Ok(array)
    }

    /// The element type.
    #[must_use]
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents; none for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        // Cannot overflow: the size in bytes was checked when the array was created.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all elements.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.blocks)[..self.len_bytes]
    }

    /// The bytes of all elements, for writing.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let blocks: &mut Box<_> = Arc::make_mut(&mut self.blocks);
        &mut bytemuck::cast_slice_mut(blocks)[..self.len_bytes]
    }

    /// The elements as values of `T`.
    ///
    /// # Errors
    /// `InvalidArgument` unless `T` is the array's element type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_dtype::<T>()?;
        Ok(bytemuck::cast_slice(self.bytes()))
    }

    /// The elements as values of `T`, for writing.
    ///
    /// # Errors
    /// As [`HostArray::as_slice`].
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_dtype::<T>()?;
        Ok(bytemuck::cast_slice_mut(self.bytes_mut()))
    }

    fn check_dtype<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the array holds {}, not {}; `bytes` works for every dtype",
            self.dtype,
            T::DTYPE
        )))
    }
}

impl fmt::Debug for HostArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostArray({} {:?})", self.dtype, self.shape)
    }
}

/// Compares element type, shape and bytes: a NaN equals itself, and 0.0 does not equal -0.0.
impl PartialEq for HostArray {
    fn eq(&self, other: &Self) -> bool {
        (self.dtype, &self.shape, self.bytes()) == (other.dtype, &other.shape, other.bytes())
    }
}

fn byte_count(dtype: DType, shape: &[usize]) -> Result<usize> {
    if shape.contains(&0) {
        return Ok(0);
    }
    // Rust objects, and pointer arithmetic in C, are limited to `isize::MAX` bytes.
    shape
        .iter()
        .try_fold(dtype.bytes(), |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| Error::invalid(format!("the size in bytes of {dtype} {shape:?} overflows")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_round_trips() {
        let mut array = HostArray::from_slice(&[2, 2], &[1i32, 2, 3, 4]).unwrap();
        array.as_slice_mut::<i32>().unwrap()[3] = -4;
        assert_eq!(array.as_slice::<i32>().unwrap(), [1, 2, 3, -4]);
        assert_eq!((array.dtype(), array.shape(), array.len()), (DType::I32, &[2, 2][..], 4));
        assert!(array.as_slice::<f32>().unwrap_err().message().contains("holds i32, not f32"));
    }

    #[test]
    fn a_clone_is_an_array_of_its_own() {
        let mut array = HostArray::from_slice(&[2], &[1i32, 2]).unwrap();
        let clone = array.clone();
        array.as_slice_mut::<i32>().unwrap()[0] = 7;
        assert_eq!((array.as_slice().unwrap(), clone.as_slice().unwrap()), (&[7, 2][..], &[1, 2][..]));
    }

    #[test]
    fn bytes_are_aligned_and_zeroed() {
        for extent in [1, 255, 256, 257] {
            let array = HostArray::new(DType::U8, &[extent]).unwrap();
            assert_eq!(array.bytes().as_ptr().addr() % ALIGNMENT_BYTES, 0);
            assert_eq!(array.bytes(), vec![0; extent]);
        }
    }

    #[test]
    fn scalars_and_empty_arrays_have_sizes() {
        assert_eq!(HostArray::new(DType::F64, &[]).unwrap().bytes().len(), 8);
        let empty = HostArray::from_slice::<f32>(&[usize::MAX, 0, 7], &[]).unwrap();
        assert_eq!((empty.len(), empty.as_slice::<f32>().unwrap()), (0, &[][..]));
    }

    #[test]
    fn sizes_that_overflow_or_do_not_fit_are_errors() {
        for shape in [&[usize::MAX, 2][..], &[1 << 62, 2], &[1 << 61]] {
            assert_eq!(HostArray::new(DType::F32, shape).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        // Miri aborts where a real allocator would return null.
        if !cfg!(miri) {
            let huge = HostArray::new(DType::U8, &[isize::MAX as usize - 4096]).unwrap_err();
            assert_eq!(huge.kind(), ErrorKind::OutOfMemory);
        }
        let error = HostArray::from_slice(&[3], &[1f32]).unwrap_err();
        assert!(error.message().contains("4 bytes") && error.message().contains("needs 12"));
    }
}
