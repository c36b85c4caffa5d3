//! Splits a copy between strided tensors into pitched copies, each of which a device makes in one submission.
//! Pure arithmetic.

use crate::model::pitched::Rows;
use crate::tensor::layout::{Extents, Layout};

/// With more pieces than this, staging through host memory is faster.
const MAX_PIECES: i64 = 4096;

/// An axis of both tensors: its extent, and both strides in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    extent: i64,
    to: i64,
    from: i64,
}

/// One pitched copy per index of the outer axes.
#[derive(Debug)]
pub(crate) struct PitchedCopies {
    /// Offset of the first byte in the destination.
    to: i64,
    /// Offset of the first byte in the source.
    from: i64,
    row_bytes: i64,
    row_axis: Axis,
    outer_axes: Extents<Axis>,
}

impl PitchedCopies {
    /// Splits a copy between layouts of one shape. `None` if elements of the destination share memory, so that
    /// the result would depend on the order of the copies, or if there would be too many pieces.
    pub(crate) fn of(destination: &Layout, source: &Layout, element_bytes: usize) -> Option<Self> {
        let size = i64::try_from(element_bytes).ok()?;
        let mut axes = Extents::new();
        for ((&extent, &to), &from) in destination.shape.iter().zip(&destination.strides).zip(&source.strides)
        {
            if extent != 1 {
                axes.push(Axis { extent, to: to.checked_mul(size)?, from: from.checked_mul(size)? });
            }
        }
        if axes.iter().any(|axis| axis.extent < 1) || !is_injective(&axes, size) {
            return None;
        }
        let mut row_bytes = size;
        while let Some(next) = remove_first(&mut axes, |axis| (axis.to, axis.from) == (row_bytes, row_bytes))
        {
            row_bytes *= next.extent;
        }
        let row_axis = remove_row_axis(&mut axes, row_bytes);
        let count = axes.iter().try_fold(1i64, |count, axis| count.checked_mul(axis.extent))?;
        let first = |layout: &Layout| i64::try_from(layout.offset).ok()?.checked_mul(size);
        let (to, from) = (first(destination)?, first(source)?);
        (count <= MAX_PIECES).then_some(Self { to, from, row_bytes, row_axis, outer_axes: axes })
    }

    /// The rows of the destination and of the source, for each piece.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rows, Rows)> + Clone {
        let count: i64 = self.outer_axes.iter().map(|axis| axis.extent).product();
        (0..count).map(|index| {
            let (mut rest, mut to, mut from) = (index, self.to, self.from);
            for axis in &self.outer_axes {
                to += rest % axis.extent * axis.to;
                from += rest % axis.extent * axis.from;
                rest /= axis.extent;
            }
            (self.rows_at(to, self.row_axis.to), self.rows_at(from, self.row_axis.from))
        })
    }

    fn rows_at(&self, offset: i64, pitch: i64) -> Rows {
        // The layouts are within their buffers, so nothing here is negative.
        let bytes = |count: i64| usize::try_from(count).unwrap_or(0);
        Rows {
            offset: bytes(offset),
            rows: bytes(self.row_axis.extent),
            row_bytes: bytes(self.row_bytes),
            pitch_bytes: bytes(pitch),
        }
    }
}

/// Removes the first axis that `matches`.
fn remove_first(axes: &mut Extents<Axis>, matches: impl Fn(&Axis) -> bool) -> Option<Axis> {
    let found = axes.iter().position(matches)?;
    Some(axes.remove(found))
}

/// Removes the longest axis along which rows do not overlap on either side.
fn remove_row_axis(axes: &mut Extents<Axis>, row_bytes: i64) -> Axis {
    let is_disjoint = |axis: &Axis| axis.to >= row_bytes && axis.from >= row_bytes;
    let longest = axes.iter().copied().filter(is_disjoint).max_by_key(|axis| axis.extent);
    let one = Axis { extent: 1, to: row_bytes, from: row_bytes };
    longest.and_then(|longest| remove_first(axes, |axis| *axis == longest)).unwrap_or(one)
}

/// Whether no two elements of the destination share memory. Sufficient, not necessary: in ascending order, each
/// stride must step over everything that the shorter strides cover.
fn is_injective(axes: &[Axis], element_bytes: i64) -> bool {
    let mut strides: Extents<(i64, i64)> =
        axes.iter().map(|axis| (axis.to.saturating_abs(), axis.extent)).collect();
    strides.sort_unstable();
    let mut covered_bytes = element_bytes;
    strides.iter().all(|&(stride, extent)| {
        let is_disjoint = stride >= covered_bytes;
        covered_bytes = covered_bytes.saturating_add(stride.saturating_mul(extent - 1));
        is_disjoint
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize], strides: &[i64], offset: usize) -> Layout {
        Layout::strided(shape, strides, offset, 1 << 20).unwrap()
    }

    /// Copies one-byte elements both by pieces and by index, and compares; returns the number of pieces.
    fn check(destination: &Layout, source: &Layout) -> usize {
        let memory: Vec<u16> = (0..4096).collect();
        let (mut by_pieces, mut expected) = (vec![u16::MAX; 4096], vec![u16::MAX; 4096]);
        let (mut to, mut from) = (Vec::new(), Vec::new());
        let base = |layout: &Layout| i64::try_from(layout.offset).unwrap();
        destination.for_each(base(destination), |at| to.push(at));
        source.for_each(base(source), |at| from.push(at));
        to.iter().zip(&from).for_each(|(&to, &from)| expected[to] = memory[from]);
        let pieces = PitchedCopies::of(destination, source, 1).unwrap();
        let mut count = 0;
        for (to, from) in pieces.iter() {
            assert_eq!((to.rows, to.row_bytes), (from.rows, from.row_bytes));
            assert!(to.pitch_bytes >= to.row_bytes && from.pitch_bytes >= from.row_bytes);
            for row in 0..to.rows {
                let (at, of) = (to.offset + row * to.pitch_bytes, from.offset + row * from.pitch_bytes);
                by_pieces[at..at + to.row_bytes].copy_from_slice(&memory[of..of + to.row_bytes]);
            }
            count += 1;
        }
        assert_eq!(by_pieces, expected, "{destination:?} {source:?}");
        count
    }

    #[test]
    fn every_element_is_copied_once_whatever_the_strides() {
        let dense = |shape: &[usize]| Layout::contiguous(shape).unwrap();
        assert_eq!(check(&dense(&[4, 6]), &layout(&[4, 6], &[6, 1], 3)), 1, "dense");
        assert_eq!(check(&dense(&[4, 6]), &layout(&[4, 6], &[10, 1], 3)), 1, "columns");
        assert_eq!(check(&dense(&[4, 6]), &layout(&[4, 6], &[1, 4], 0)), 4, "transposed");
        assert_eq!(check(&dense(&[7]), &layout(&[7], &[-1], 6)), 7, "reversed");
        assert_eq!(check(&dense(&[5, 7]), &layout(&[5, 7], &[0, 3], 2)), 5, "repeated");
        assert_eq!(check(&dense(&[2, 3, 4]), &layout(&[2, 3, 4], &[1, 8, 2], 0)), 6);
        assert_eq!(check(&layout(&[3, 4], &[1, 3], 9), &dense(&[3, 4])), 3, "into a transposed view");
        assert_eq!(check(&layout(&[3, 4], &[-4, 1], 8), &layout(&[3, 4], &[1, 3], 0)), 3, "both strided");
        assert_eq!(check(&dense(&[]), &layout(&[], &[], 17)), 1, "one element");
    }

    #[test]
    fn copies_that_cannot_be_split_are_refused() {
        let dense = Layout::contiguous(&[8]).unwrap();
        assert!(
            PitchedCopies::of(&layout(&[8], &[0], 0), &dense, 4).is_none(),
            "all elements in one location"
        );
        assert!(
            PitchedCopies::of(&layout(&[4, 4], &[1, 2], 0), &layout(&[4, 4], &[4, 1], 0), 4).is_none(),
            "overlapping"
        );
        let many = Layout::contiguous(&[5000, 2]).unwrap();
        assert!(PitchedCopies::of(&many, &layout(&[5000, 2], &[-2, 0], 10000), 4).is_none(), "too many");
        assert!(
            PitchedCopies::of(&Layout::contiguous(&[0]).unwrap(), &layout(&[0], &[3], 0), 4).is_none(),
            "nothing"
        );
    }
}
