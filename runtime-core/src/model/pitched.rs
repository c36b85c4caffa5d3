//! Pitched rows: rows of bytes at a constant distance, such as a block of columns of a matrix. A device copies
//! them in one submission.

/// Non-overlapping rows of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Offset of the first byte of the first row.
    pub(crate) offset: usize,
    /// At least 1.
    pub(crate) rows: usize,
    /// At least 1.
    pub(crate) row_bytes: usize,
    /// Distance between the first bytes of consecutive rows; at least `row_bytes`.
    pub(crate) pitch_bytes: usize,
}

impl Rows {
    /// The rows occupied by a strided tensor, in row-major order; `None` if its elements do not form such rows.
    pub(crate) fn from_strides(
        shape: &[i64],
        strides: &[i64],
        offset_bytes: usize,
        element_bytes: usize,
    ) -> Option<Self> {
        let mut rows = Self { offset: offset_bytes, rows: 1, row_bytes: element_bytes, pitch_bytes: 0 };
        for (&extent, &stride) in shape.iter().zip(strides).rev().filter(|(extent, _)| **extent != 1) {
            let extent = usize::try_from(extent).ok().filter(|&extent| extent > 0)?;
            let stride = usize::try_from(stride).ok()?.checked_mul(element_bytes)?;
            if rows.rows == 1 && stride == rows.row_bytes {
                rows.row_bytes = rows.row_bytes.checked_mul(extent)?;
            } else if rows.rows == 1 && stride > rows.row_bytes {
                (rows.rows, rows.pitch_bytes) = (extent, stride);
            } else if rows.rows > 1 && stride == rows.rows.checked_mul(rows.pitch_bytes)? {
                rows.rows = rows.rows.checked_mul(extent)?;
            } else {
                return None;
            }
        }
        Some(Self { pitch_bytes: rows.pitch_bytes.max(rows.row_bytes), ..rows })
    }

    /// A single row: `bytes` contiguous bytes.
    pub(crate) const fn dense(offset: usize, bytes: usize) -> Self {
        Self { offset, rows: 1, row_bytes: bytes, pitch_bytes: bytes }
    }

    /// Both sides as the same number of rows of the same length, if possible.
    pub(crate) fn paired(self, other: Self) -> Option<(Self, Self)> {
        let split = |whole: Self, like: Self| Self {
            rows: like.rows,
            row_bytes: like.row_bytes,
            pitch_bytes: like.row_bytes,
            ..whole
        };
        match (self.rows, other.rows) {
            _ if self.bytes() != other.bytes() => None,
            (1, _) => Some((split(self, other), other)),
            (_, 1) => Some((self, split(other, self))),
            _ => (self.row_bytes == other.row_bytes).then_some((self, other)),
        }
    }

    /// Bytes of all rows, without gaps.
    pub(crate) const fn bytes(&self) -> usize {
        self.rows * self.row_bytes
    }

    /// Bytes from the start of the first row to the end of the last, including gaps.
    pub(crate) const fn span_bytes(&self) -> usize {
        (self.rows - 1) * self.pitch_bytes + self.row_bytes
    }

    /// Whether the two have no byte in common. Both belong to one buffer.
    pub(crate) fn is_apart_from(&self, other: &Self) -> bool {
        let ends_before = |a: &Self, b: &Self| a.offset + a.span_bytes() <= b.offset;
        if ends_before(self, other) || ends_before(other, self) {
            return true;
        }
        // They interleave: only blocks of columns of one matrix can be disjoint.
        let pitch = self.pitch_bytes;
        let (first, second) = (self.offset % pitch, other.offset % pitch);
        let (low, high, low_bytes, high_bytes) = if first <= second {
            (first, second, self.row_bytes, other.row_bytes)
        } else {
            (second, first, other.row_bytes, self.row_bytes)
        };
        other.pitch_bytes == pitch && low + low_bytes <= high && high + high_bytes <= low + pitch
    }

    /// Copies dense bytes into the rows; `span` starts at the first row.
    pub(crate) fn scatter(&self, dense: &[u8], span: &mut [u8]) {
        for (row, bytes) in dense.chunks_exact(self.row_bytes).enumerate() {
            span[row * self.pitch_bytes..][..self.row_bytes].copy_from_slice(bytes);
        }
    }

    /// Copies the rows into dense bytes; `span` starts at the first row.
    pub(crate) fn gather(&self, span: &[u8], dense: &mut [u8]) {
        for (row, bytes) in dense.chunks_exact_mut(self.row_bytes).enumerate() {
            bytes.copy_from_slice(&span[row * self.pitch_bytes..][..self.row_bytes]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(shape: &[i64], strides: &[i64]) -> Option<(usize, usize, usize)> {
        Rows::from_strides(shape, strides, 8, 4).map(|rows| (rows.rows, rows.row_bytes, rows.pitch_bytes))
    }

    #[test]
    fn strided_layouts_that_form_rows_are_recognised() {
        assert_eq!(rows(&[3, 5], &[5, 1]), Some((1, 60, 60)), "dense");
        assert_eq!(rows(&[], &[]), Some((1, 4, 4)), "one element");
        assert_eq!(rows(&[3, 2], &[5, 1]), Some((3, 8, 20)), "columns");
        assert_eq!(rows(&[3, 1], &[5, 1]), Some((3, 4, 20)), "a column");
        assert_eq!(rows(&[7], &[2]), Some((7, 4, 8)), "every other");
        assert_eq!(rows(&[2, 3, 2, 4], &[60, 20, 4, 1]), Some((6, 32, 80)), "merged on both levels");
        assert_eq!(
            rows(&[2, 1, 3], &[6, -7, 1]),
            Some((2, 12, 24)),
            "the stride of an axis of extent 1 is ignored"
        );
        assert_eq!(rows(&[4, 3], &[1, 4]), None, "transposed");
        assert_eq!(rows(&[3], &[-1]), None, "backwards");
        assert_eq!(rows(&[3, 2], &[0, 1]), None, "repeated");
        assert_eq!(rows(&[3, 2], &[1, 1]), None, "rows that overlap");
        assert_eq!(rows(&[2, 3, 2], &[100, 5, 1]), None, "three levels");
        assert_eq!(rows(&[0, 2], &[2, 1]), None, "nothing");
    }

    #[test]
    fn dense_bytes_are_split_like_the_other_side() {
        let block = Rows { offset: 4, rows: 3, row_bytes: 8, pitch_bytes: 20 };
        let (dense, other) = Rows::dense(100, 24).paired(block).unwrap();
        assert_eq!((dense.rows, dense.row_bytes, dense.pitch_bytes, dense.offset), (3, 8, 8, 100));
        assert_eq!(other, block);
        assert_eq!(block.paired(block), Some((block, block)));
        assert_eq!(block.paired(Rows { rows: 6, row_bytes: 4, ..block }), None);
        assert_eq!(block.paired(Rows::dense(0, 25)), None);
    }

    #[test]
    fn columns_of_one_matrix_are_disjoint_unless_they_share_one() {
        let columns = |from: usize, count: usize| Rows {
            offset: 40 + from,
            rows: 5,
            row_bytes: count,
            pitch_bytes: 20,
        };
        assert!(columns(0, 4).is_apart_from(&columns(4, 16)));
        assert!(columns(4, 16).is_apart_from(&columns(0, 4)));
        assert!(!columns(0, 5).is_apart_from(&columns(4, 16)));
        assert!(!columns(15, 10).is_apart_from(&columns(2, 4)), "its rows continue on the next line");
        assert!(columns(0, 4).is_apart_from(&Rows { offset: 200, ..columns(0, 20) }));
    }

    #[test]
    fn rows_are_scattered_and_gathered() {
        let block = Rows { offset: 0, rows: 3, row_bytes: 2, pitch_bytes: 3 };
        let mut span = [9; 8];
        block.scatter(&[1, 2, 3, 4, 5, 6], &mut span);
        assert_eq!(span, [1, 2, 9, 3, 4, 9, 5, 6]);
        let mut dense = [0; 6];
        block.gather(&span, &mut dense);
        assert_eq!(dense, [1, 2, 3, 4, 5, 6]);
    }
}
