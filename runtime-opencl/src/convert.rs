//! Splits fills into pieces that OpenCL accepts: the pattern size must divide offset and size.

use runtime_core::backend::FillPattern;

/// One `clEnqueueFillBuffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillPiece {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// The pattern is the first `unit` bytes.
    pub(crate) pattern: [u8; 16],
    pub(crate) unit: usize,
}

/// Splits a fill of `bytes` bytes at `offset` into as few pieces as possible: one, if the pattern size divides the offset.
pub(crate) fn split_fill(
    offset: usize,
    bytes: usize,
    pattern: FillPattern,
) -> impl Iterator<Item = FillPiece> {
    let (unit, whole) = (pattern.shortest().len(), pattern.repeated());
    let rotated = move |by: usize| std::array::from_fn(|index| whole[(by + index) % unit]);
    // Single bytes up to the first aligned offset, and after the last whole pattern.
    let head = (offset.next_multiple_of(unit) - offset).min(bytes);
    let body = (bytes - head) / unit * unit;
    let single = move |at: usize| FillPiece { offset: offset + at, bytes: 1, pattern: rotated(at), unit: 1 };
    let middle = FillPiece { offset: offset + head, bytes: body, pattern: rotated(head), unit };
    let middle = (body > 0).then_some(middle);
    (0..head).map(single).chain(middle).chain((head + body..bytes).map(single))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(offset: usize, bytes: usize, pattern: &[u8]) -> Vec<u8> {
        let mut memory = vec![0xee; offset + bytes + 16];
        for piece in split_fill(offset, bytes, FillPattern::new(pattern, bytes as u64).unwrap()) {
            assert!(piece.offset.is_multiple_of(piece.unit) && piece.bytes.is_multiple_of(piece.unit));
            for index in 0..piece.bytes {
                memory[piece.offset + index] = piece.pattern[index % piece.unit];
            }
        }
        memory
    }

    #[test]
    fn every_offset_is_filled_as_byte_by_byte() {
        for pattern in [&[7][..], &[1, 2], &[1, 2, 3, 4], &[1, 2, 1, 2], &[1, 2, 3, 4, 5, 6, 7, 8], &[9; 16]]
        {
            for offset in 0..20 {
                for bytes in [0, 16, 48] {
                    let memory = filled(offset, bytes, pattern);
                    for (index, byte) in memory.iter().enumerate() {
                        let inside = (offset..offset + bytes).contains(&index);
                        let expected = if inside { pattern[(index - offset) % pattern.len()] } else { 0xee };
                        assert_eq!(*byte, expected, "{pattern:?} at {offset}, {bytes} bytes: {index}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_aligned_fill_is_one_piece() {
        let of =
            |offset, pattern: &[u8]| split_fill(offset, 64, FillPattern::new(pattern, 64).unwrap()).count();
        assert_eq!(of(8, &[1, 2, 3, 4]), 1);
        assert_eq!(of(1, &[0; 16]), 1, "a pattern of one byte is aligned everywhere");
        assert_eq!(of(2, &[1, 2, 3, 4]), 2 + 1 + 2);
    }
}
