//! Shapes and strides: the layout of a tensor's elements in its buffer. Pure arithmetic, checked for overflow.

use std::ops::Range;

use smallvec::SmallVec;

use crate::model::counted::counted;
use crate::{DType, Error, Result};

/// Extents or strides. Up to 4 are stored inline, without an allocation.
pub(crate) type Extents<T = i64> = SmallVec<[T; 4]>;

/// Extents and strides in elements, and the offset of the first element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) shape: Extents,
    pub(crate) strides: Extents,
    /// Offset of the first element in elements.
    pub(crate) offset: usize,
}

impl Layout {
    /// The row-major layout without gaps.
    pub(crate) fn contiguous(shape: &[usize]) -> Result<Self> {
        let extents = shape.iter().map(|&n| i64::try_from(n)).collect::<Result<Extents, _>>();
        let shape = extents.map_err(|_| Error::invalid(format!("shape {shape:?} is too large")))?;
        let strides = row_major(&shape);
        Ok(Self { shape, strides, offset: 0 })
    }

    /// A layout with any strides; `capacity` is the number of elements in the buffer.
    pub(crate) fn strided(shape: &[usize], strides: &[i64], offset: usize, capacity: usize) -> Result<Self> {
        if shape.len() != strides.len() {
            return Err(Error::invalid(format!(
                "shape has {}, but strides has {}",
                counted(shape.len(), "dimension"),
                strides.len()
            )));
        }
        // A broadcast view may have more elements than the buffer, but their number must fit a `usize`.
        checked_elements(shape)?;
        // The offset of a view without elements is irrelevant.
        let offset = if shape.contains(&0) { 0 } else { offset };
        let layout = Self { strides: Extents::from_slice(strides), offset, ..Self::contiguous(shape)? };
        layout.check_within(capacity)?;
        Ok(layout)
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        // Cannot overflow: `checked_elements` or `checked_bytes` checked the product when the tensor was
        // created.
        self.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).product()
    }

    /// Lowest and highest element offsets relative to `offset`; `None` without elements, or on overflow.
    pub(crate) fn offset_bounds(&self) -> Option<(i64, i64)> {
        if self.shape.contains(&0) {
            return None;
        }
        self.shape.iter().zip(&self.strides).try_fold((0i64, 0i64), |(low, high), (&extent, &stride)| {
            let last = stride.checked_mul(extent - 1)?;
            Some(if last < 0 { (low.checked_add(last)?, high) } else { (low, high.checked_add(last)?) })
        })
    }

    fn check_within(&self, capacity: usize) -> Result<()> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        let fits = self.offset_bounds().is_some_and(|(low, high)| {
            let offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
            offset.checked_add(low).is_some_and(|first| first >= 0)
                && offset
                    .checked_add(high)
                    .is_some_and(|last| usize::try_from(last).is_ok_and(|last| last < capacity))
        });
        if fits {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "view shape {:?} strides {:?} offset {} is out of bounds of the buffer of {}",
            self.shape,
            self.strides,
            self.offset,
            counted(capacity, "element")
        )))
    }

    /// Whether the elements are row-major without gaps.
    pub(crate) fn is_contiguous(&self) -> bool {
        let dense = row_major(&self.shape);
        self.elements() <= 1
            || self.shape.iter().zip(&self.strides).zip(&dense).all(|((&n, s), d)| n == 1 || s == d)
    }

    /// Elements `range` of `axis`.
    pub(crate) fn slice(&self, axis: usize, range: Range<usize>) -> Result<Self> {
        let extent = *self.shape.get(axis).ok_or_else(|| {
            Error::invalid(format!(
                "axis {axis} is out of range for a tensor of {}",
                counted(self.shape.len(), "dimension")
            ))
        })?;
        let valid = usize::try_from(extent).unwrap_or(0);
        if range.start > range.end || range.end > valid {
            return Err(Error::invalid(format!(
                "range {range:?} is out of bounds of axis {axis}, which has {}",
                counted(valid, "element")
            )));
        }
        let mut layout = self.clone();
        layout.shape[axis] = i64::try_from(range.len()).unwrap_or(i64::MAX);
        if !layout.shape.contains(&0) {
            let skipped = i64::try_from(range.start).unwrap_or(i64::MAX).saturating_mul(self.strides[axis]);
            layout.offset = self.offset.saturating_add_signed(isize::try_from(skipped).unwrap_or(isize::MAX));
        }
        Ok(layout)
    }

    /// The same elements in another shape; contiguous layouts only.
    pub(crate) fn reshape(&self, shape: &[usize]) -> Result<Self> {
        let reshaped = Self { offset: self.offset, ..Self::contiguous(shape)? };
        if checked_elements(shape)? != self.elements() {
            return Err(Error::invalid(format!(
                "shape {shape:?} does not have the same number of elements as {:?}",
                self.shape
            )));
        }
        if !self.is_contiguous() {
            return Err(Error::invalid("reshape needs a contiguous tensor; copy it first"));
        }
        Ok(reshaped)
    }

    /// The axes in another order.
    pub(crate) fn permute(&self, axes: &[usize]) -> Result<Self> {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.shape.len()) {
            return Err(Error::invalid(format!(
                "axes {axes:?} are not a permutation of {}",
                counted(self.shape.len(), "dimension")
            )));
        }
        let pick = |from: &[i64]| axes.iter().map(|&axis| from[axis]).collect();
        Ok(Self { shape: pick(&self.shape), strides: pick(&self.strides), offset: self.offset })
    }

    /// Without the axes of extent 1.
    pub(crate) fn squeeze(&self) -> Self {
        let kept = || self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent != 1);
        Self {
            shape: kept().map(|(extent, _)| *extent).collect(),
            strides: kept().map(|(_, stride)| *stride).collect(),
            offset: self.offset,
        }
    }

    /// With new axes in front, and axes of extent 1 repeated, both with strides of 0.
    pub(crate) fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        let extents = Self::contiguous(shape)?.shape;
        let refused = || Error::invalid(format!("{:?} is not broadcast to {shape:?}", &self.shape[..]));
        let new = extents.len().checked_sub(self.shape.len()).ok_or_else(refused)?;
        let mut strides = Extents::from_elem(0, extents.len());
        for ((own, stride), (extent, broadcast)) in
            self.shape.iter().zip(&self.strides).zip(extents[new..].iter().zip(&mut strides[new..]))
        {
            match (own, extent) {
                (own, extent) if own == extent => *broadcast = *stride,
                (1, _) => {}
                _ => return Err(refused()),
            }
        }
        Ok(Self { shape: extents, strides, offset: self.offset })
    }

    /// The same elements with ascending addresses, as far as axes can be reordered and reversed; without axes that
    /// repeat elements.
    pub(crate) fn in_memory_order(&self) -> Self {
        let mut axes: Extents<(i64, i64)> = self
            .shape
            .iter()
            .zip(&self.strides)
            .filter(|&(&extent, &stride)| extent == 0 || (extent != 1 && stride != 0))
            .map(|(&extent, &stride)| (stride.saturating_abs(), extent))
            .collect();
        axes.sort_unstable_by_key(|&(stride, _)| std::cmp::Reverse(stride));
        let low = self.offset_bounds().map_or(0, |(low, _)| low);
        Self {
            shape: axes.iter().map(|&(_, extent)| extent).collect(),
            strides: axes.iter().map(|&(stride, _)| stride).collect(),
            offset: self.offset.saturating_add_signed(isize::try_from(low).unwrap_or(0)),
        }
    }

    /// Calls `visit` with the offset of each element relative to `base`, in row-major order of the indices.
    pub(crate) fn for_each(&self, base: i64, mut visit: impl FnMut(usize)) {
        let mut index = vec![0i64; self.shape.len()];
        for _ in 0..self.elements() {
            let at: i64 = base + index.iter().zip(&self.strides).map(|(i, s)| i * s).sum::<i64>();
            visit(usize::try_from(at).unwrap_or(0));
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    }
}

fn row_major(shape: &[i64]) -> Extents {
    let mut strides: Extents = SmallVec::from_elem(1, shape.len());
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis].max(1));
    }
    strides
}

/// The product of the extents.
///
/// # Errors
/// `InvalidArgument` on overflow.
pub(crate) fn checked_elements(shape: &[usize]) -> Result<usize> {
    let product = shape.iter().filter(|&&n| n != 0).try_fold(1usize, |product, &n| product.checked_mul(n));
    match product {
        Some(product) => Ok(if shape.contains(&0) { 0 } else { product }),
        None => Err(Error::invalid(format!("shape {shape:?} has more elements than fit into memory"))),
    }
}

/// The size of a row-major tensor in bytes.
///
/// # Errors
/// `InvalidArgument` on overflow.
pub(crate) fn checked_bytes(dtype: DType, shape: &[usize]) -> Result<usize> {
    if dtype.bytes() == 0 {
        return Err(Error::invalid(format!("elements of {dtype} have no bytes")));
    }
    let bytes =
        checked_elements(shape)?.checked_mul(dtype.bytes()).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.ok_or_else(|| {
        Error::invalid(format!("shape {shape:?} of {dtype} has more bytes than fit into memory"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_stay_within_the_buffer() {
        assert!(Layout::strided(&[2, 3], &[3, 1], 0, 6).is_ok());
        assert!(Layout::strided(&[2, 3], &[3, 1], 1, 6).is_err());
        assert!(Layout::strided(&[4], &[-1], 3, 4).is_ok(), "a reversed view");
        assert!(Layout::strided(&[4], &[-1], 2, 4).is_err());
        assert!(Layout::strided(&[1000], &[0], 3, 4).is_ok(), "a broadcast view");
        assert!(Layout::strided(&[0, 9], &[1, 1], 77, 4).is_ok(), "no elements, no bounds");
        assert!(Layout::strided(&[3], &[i64::MAX], 0, 4).is_err());
        assert!(
            Layout::strided(&[1 << 40, 1 << 40], &[0, 0], 0, 4).is_err(),
            "the number of elements overflows"
        );
    }

    #[test]
    fn slices_and_permutations_compose() {
        let layout = Layout::contiguous(&[4, 6]).unwrap();
        let part = layout.slice(1, 2..5).unwrap().permute(&[1, 0]).unwrap();
        assert_eq!(
            (part.shape.as_slice(), part.strides.as_slice(), part.offset),
            (&[3, 4][..], &[1, 6][..], 2)
        );
        assert!(!part.is_contiguous());
        let mut offsets = Vec::new();
        part.for_each(2, |at| offsets.push(at));
        assert_eq!(offsets[..5], [2, 8, 14, 20, 3]);
    }

    #[test]
    fn in_memory_order_keeps_each_element_once() {
        let ordered = |shape: &[usize], strides: &[i64], offset| {
            Layout::strided(shape, strides, offset, 100).unwrap().in_memory_order()
        };
        assert!(ordered(&[3, 4], &[1, 3], 2).is_contiguous(), "transposed");
        assert_eq!(ordered(&[3, 4], &[-1, -3], 20), ordered(&[4, 3], &[3, 1], 9), "backwards");
        assert_eq!(ordered(&[7, 1, 5], &[0, 9, 2], 1), ordered(&[5], &[2], 1), "repeated");
        assert_eq!(ordered(&[3], &[0], 4).elements(), 1);
        assert_eq!(ordered(&[0, 3], &[0, 2], 4).elements(), 0);
    }

    #[test]
    fn sizes_in_bytes_are_checked_for_overflow() {
        assert!(checked_bytes(DType::F64, &[usize::MAX / 8, 2]).is_err());
        assert!(checked_bytes(DType::F64, &[1 << 60]).is_err());
        assert_eq!(checked_bytes(DType::F64, &[0, usize::MAX]).unwrap(), 0);
    }
}
