//! Splits fills into pieces that match the driver's commands.

/// A piece of a fill; `at` is a byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillPiece {
    /// At most 16 bytes, copied from a buffer.
    Bytes { at: u64, bytes: u64, data: [u8; 16] },
    /// Whole 32-bit words, all equal: `vkCmdFillBuffer`.
    Word { at: u64, bytes: u64, word: u32 },
    /// Whole 32-bit words, which repeat after four: a kernel.
    Pattern { at: u64, bytes: u64, words: [u32; 4] },
}

/// Splits a fill of `bytes` bytes at `at` into whole words and the bytes before and after them.
pub(crate) fn split_fill(at: u64, bytes: u64, pattern: [u8; 16]) -> impl Iterator<Item = FillPiece> {
    let head = if bytes <= 16 { bytes } else { at.next_multiple_of(4) - at };
    let body = (bytes - head) / 4 * 4;
    let tail = bytes - head - body;
    let rotated = |skipped: u64| -> [u8; 16] {
        // Less than 16, so the conversion succeeds.
        let skipped = usize::try_from(skipped % 16).unwrap_or(0);
        std::array::from_fn(|index| pattern[(index + skipped) % 16])
    };
    let edge = |at: u64, bytes: u64, skipped: u64| {
        (bytes > 0).then(|| FillPiece::Bytes { at, bytes, data: rotated(skipped) })
    };
    let wide = rotated(head);
    let words: [u32; 4] =
        std::array::from_fn(|index| u32::from_le_bytes([0, 1, 2, 3].map(|byte| wide[4 * index + byte])));
    let middle = (body > 0).then(|| match words {
        [word, b, c, d] if b == word && c == word && d == word => {
            FillPiece::Word { at: at + head, bytes: body, word }
        }
        _ => FillPiece::Pattern { at: at + head, bytes: body, words },
    });
    [edge(at, head, 0), middle, edge(at + head + body, tail, head + body)].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use runtime_core::backend::FillPattern;

    use super::*;

    /// Executes the pieces byte by byte.
    fn filled(at: u64, bytes: u64, pattern: &[u8]) -> Vec<u8> {
        let mut memory = vec![0xee; 256];
        let mut put = |at: u64, bytes: u64, data: &[u8]| {
            for index in 0..usize::try_from(bytes).unwrap() {
                let byte = &mut memory[usize::try_from(at).unwrap() + index];
                assert_eq!(*byte, 0xee, "a byte is filled once");
                *byte = data[index % data.len()];
            }
        };
        for piece in split_fill(at, bytes, FillPattern::new(pattern, bytes).unwrap().repeated()) {
            match piece {
                FillPiece::Bytes { at, bytes, data } => {
                    assert!(bytes <= 16);
                    put(at, bytes, &data);
                }
                FillPiece::Word { at, bytes, word } => {
                    assert!(at % 4 == 0 && bytes % 4 == 0);
                    put(at, bytes, &word.to_le_bytes());
                }
                FillPiece::Pattern { at, bytes, words } => {
                    assert!(at % 4 == 0 && bytes % 4 == 0);
                    put(at, bytes, words.map(u32::to_le_bytes).as_flattened());
                }
            }
        }
        memory
    }

    #[test]
    fn every_pattern_fills_every_range() {
        let bytes: Vec<u8> = (1..=16).collect();
        for unit in [1, 2, 4, 8, 16] {
            for at in 0..9_u64 {
                for units in 0..12_u64 {
                    let length = units * unit as u64;
                    let mut expected = vec![0xee; 256];
                    for index in 0..usize::try_from(length).unwrap() {
                        expected[usize::try_from(at).unwrap() + index] = bytes[index % unit];
                    }
                    assert_eq!(
                        filled(at, length, &bytes[..unit]),
                        expected,
                        "{unit} at {at}, {length} bytes"
                    );
                }
            }
        }
    }

    #[test]
    fn patterns_of_one_word_use_the_drivers_fill() {
        let uses_word = |pattern: &[u8]| {
            split_fill(3, 112, FillPattern::new(pattern, 112).unwrap().repeated())
                .any(|piece| matches!(piece, FillPiece::Word { .. }))
        };
        assert!(uses_word(&[7]) && uses_word(&[1, 2]) && uses_word(&[1, 2, 3, 4]) && uses_word(&[5; 16]));
        assert!(!uses_word(&[1, 2, 3, 4, 5, 6, 7, 8]));
    }
}
