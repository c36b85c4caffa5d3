//! Arrays of the crate `ndarray`.

use ndarray::{ArrayBase, ArrayViewD, ArrayViewMutD, Data, Dimension, IxDyn};

use crate::{Element, Error, HostArray, Result};

/// Arrays of the crate [`ndarray`](https://docs.rs/ndarray), with the feature `ndarray`.
///
/// ```
/// use ndarray::{Axis, array};
/// use runtime_core::HostArray;
///
/// let matrix = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
/// let mut host = HostArray::from_ndarray(&matrix.t())?; // copied, row-major
/// assert_eq!((host.shape(), host.as_slice::<f32>()?), (&[3, 2][..], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0][..]));
/// host.as_ndarray_mut::<f32>()?.index_axis_mut(Axis(0), 0).fill(0.0); // was 1 and 4
/// assert_eq!(host.as_ndarray::<f32>()?.sum(), 16.0);
/// # Ok::<(), runtime_core::Error>(())
/// ```
impl HostArray {
    /// Copies an array, whatever its strides are.
    ///
    /// # Errors
    /// As [`HostArray::new`].
    pub fn from_ndarray<T: Element, D: Dimension>(array: &ArrayBase<impl Data<Elem = T>, D>) -> Result<Self> {
        if let Some(elements) = array.as_slice() {
            return Self::from_slice(array.shape(), elements);
        }
        let mut copy = Self::new(T::DTYPE, array.shape())?;
        copy.as_ndarray_mut::<T>()?.assign(&array.view().into_dyn());
        Ok(copy)
    }

    /// A view of the elements, without a copy.
    ///
    /// # Errors
    /// `InvalidArgument` unless `T` is the array's element type; `Unsupported` for a shape that `ndarray` refuses.
    pub fn as_ndarray<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        ArrayViewD::from_shape(IxDyn(self.shape()), self.as_slice()?).map_err(|error| refused(&error))
    }

    /// The same, for writing.
    ///
    /// # Errors
    /// As [`HostArray::as_ndarray`].
    pub fn as_ndarray_mut<T: Element>(&mut self) -> Result<ArrayViewMutD<'_, T>> {
        let shape = IxDyn(self.shape());
        ArrayViewMutD::from_shape(shape, self.as_slice_mut()?).map_err(|error| refused(&error))
    }
}

/// `ndarray` limits the product of the extents other than 0.
fn refused(error: &ndarray::ShapeError) -> Error {
    Error::unsupported(format!("ndarray: {error}"))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array, Axis, arr0, s};

    use super::*;
    use crate::{DType, ErrorKind};

    #[test]
    fn arrays_of_any_strides_are_copied_in_order() {
        let cube = Array::from_shape_fn((2, 3, 4), |(a, b, c)| u16::try_from(100 * a + 10 * b + c).unwrap());
        for view in [
            cube.view().into_dyn(),
            cube.slice(s![.., ..;-1, 1..;2]).into_dyn(),
            cube.view().permuted_axes([2, 0, 1]).into_dyn(),
            cube.index_axis(Axis(1), 2).insert_axis(Axis(0)).into_dyn(),
        ] {
            let copy = HostArray::from_ndarray(&view).unwrap();
            assert_eq!(copy.shape(), view.shape());
            assert!(copy.as_slice::<u16>().unwrap().iter().eq(view.iter()), "{view}");
            assert_eq!(copy.as_ndarray::<u16>().unwrap(), view);
        }
    }

    #[test]
    fn scalars_and_empty_arrays_are_arrays() {
        let scalar = HostArray::from_ndarray(&arr0(2.5f64)).unwrap();
        assert_eq!((scalar.shape(), scalar.as_ndarray::<f64>().unwrap()[[]]), (&[][..], 2.5));
        let empty = HostArray::new(DType::I8, &[3, 0]).unwrap();
        assert_eq!(empty.as_ndarray::<i8>().unwrap().shape(), [3, 0]);
        assert_eq!(HostArray::from_ndarray(&empty.as_ndarray::<i8>().unwrap()).unwrap(), empty);
        let error = HostArray::new(DType::I8, &[usize::MAX, 2, 0]).unwrap().as_ndarray::<i8>().map(|_| ());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(scalar.as_ndarray::<f32>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
