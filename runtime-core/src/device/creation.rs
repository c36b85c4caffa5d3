//! Tensors of element types that are chosen at run time.

use crate::device::common_runtime::CommonRuntime;
use crate::tensor::host_array::HostArray;
use crate::tensor::number::Number;
use crate::{DType, Placement, Result, Tensor};

/// Tensors of an element type that is chosen at run time, row-major and in the device's default memory space.
///
/// ```
/// use runtime_core::DType;
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// for dtype in [DType::F32, DType::F16, DType::I32] {
///     let x = device.random(dtype, &[2, 3], 7)?; // seed 7
///     let y = device.empty_like(&x)?;
///     let ones = device.full(dtype, &[3], 1)?;
///     assert_eq!((y.dtype(), y.shape(), ones.len()), (dtype, &[2, 3][..], 3));
/// }
/// # Ok::<(), runtime_core::Error>(())
/// ```
impl<'d> dyn CommonRuntime + 'd {
    /// Allocates a tensor. Its content is unspecified until written.
    ///
    /// # Errors
    /// As `empty`.
    pub fn empty_of(&self, dtype: DType, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        self.allocate(dtype, shape.as_ref(), &Placement::default())
    }

    /// Allocates a tensor of the type and shape of another one, which may be on another device.
    ///
    /// # Errors
    /// As `empty`.
    pub fn empty_like(&self, tensor: &Tensor) -> Result<Tensor> {
        self.empty_of(tensor.dtype(), tensor.shape())
    }

    /// Creates a tensor whose elements are all the same number. The device fills it.
    ///
    /// # Errors
    /// As `empty`; as [`Number::bits`].
    pub fn full(&self, dtype: DType, shape: impl AsRef<[usize]>, value: impl Into<Number>) -> Result<Tensor> {
        let element = HostArray::full(dtype, &[], value).map_err(|error| error.in_operation("full"))?;
        let tensor = self.empty_of(dtype, shape)?;
        tensor.fill(element.bytes())?;
        Ok(tensor)
    }

    /// Creates a tensor of the row-major indices 0, 1, 2, …, as [`HostArray::arange`].
    ///
    /// # Errors
    /// As `empty` and [`HostArray::arange`].
    pub fn arange(&self, dtype: DType, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        self.tensor_from_array(&HostArray::arange(dtype, shape.as_ref())?, &Placement::default())
    }

    /// Creates a tensor of pseudo-random numbers, as [`HostArray::random`]: the same on every device.
    ///
    /// # Errors
    /// As `empty` and [`HostArray::random`].
    pub fn random(&self, dtype: DType, shape: impl AsRef<[usize]>, seed: u64) -> Result<Tensor> {
        self.tensor_from_array(&HostArray::random(dtype, shape.as_ref(), seed)?, &Placement::default())
    }
}
