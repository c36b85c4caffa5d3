//! Fills, cut into pieces that the driver takes.

/// A piece of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// At most 16 bytes, which are copied from elsewhere.
    Bytes { at: u64, bytes: u64, data: [u8; 16] },
    /// Whole words, all the same.
    Words { at: u64, bytes: u64, word: u32 },
    /// Whole words, which repeat after four.
    Wide { at: u64, bytes: u64, words: [u32; 4] },
}

/// Repeats a pattern of 1, 2, 4, 8 or 16 bytes to 16; `None` for another length.
pub(crate) fn widen(pattern: &[u8]) -> Option<[u8; 16]> {
    matches!(pattern.len(), 1 | 2 | 4 | 8 | 16)
        .then(|| std::array::from_fn(|index| pattern[index % pattern.len()]))
}

/// Cuts a fill of `bytes` bytes from `at` on: whole words, and what is before and behind them.
pub(crate) fn pieces(at: u64, bytes: u64, pattern: [u8; 16]) -> impl Iterator<Item = Piece> {
    let head = if bytes <= 16 { bytes } else { at.next_multiple_of(4) - at };
    let body = (bytes - head) / 4 * 4;
    let tail = bytes - head - body;
    let from = |skipped: u64| -> [u8; 16] {
        // Below 16, so it fits.
        let skipped = usize::try_from(skipped % 16).unwrap_or(0);
        std::array::from_fn(|index| pattern[(index + skipped) % 16])
    };
    let edge = |at: u64, bytes: u64, skipped: u64| {
        (bytes > 0).then(|| Piece::Bytes { at, bytes, data: from(skipped) })
    };
    let wide = from(head);
    let words: [u32; 4] =
        std::array::from_fn(|index| u32::from_le_bytes([0, 1, 2, 3].map(|byte| wide[4 * index + byte])));
    let middle = (body > 0).then(|| match words {
        [word, b, c, d] if b == word && c == word && d == word => {
            Piece::Words { at: at + head, bytes: body, word }
        }
        _ => Piece::Wide { at: at + head, bytes: body, words },
    });
    [edge(at, head, 0), middle, edge(at + head + body, tail, head + body)].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries the pieces out, byte by byte.
    fn filled(at: u64, bytes: u64, pattern: &[u8]) -> Vec<u8> {
        let mut memory = vec![0xee; 256];
        let mut put = |at: u64, bytes: u64, data: &[u8]| {
            for index in 0..usize::try_from(bytes).unwrap() {
                let place = &mut memory[usize::try_from(at).unwrap() + index];
                assert_eq!(*place, 0xee, "a byte is filled once");
                *place = data[index % data.len()];
            }
        };
        for piece in pieces(at, bytes, widen(pattern).unwrap()) {
            match piece {
                Piece::Bytes { at, bytes, data } => {
                    assert!(bytes <= 16);
                    put(at, bytes, &data);
                }
                Piece::Words { at, bytes, word } => {
                    assert!(at % 4 == 0 && bytes % 4 == 0);
                    put(at, bytes, &word.to_le_bytes());
                }
                Piece::Wide { at, bytes, words } => {
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
    fn what_repeats_after_a_word_is_left_to_the_driver() {
        let plain = |pattern: &[u8]| {
            pieces(3, 100, widen(pattern).unwrap()).any(|piece| matches!(piece, Piece::Words { .. }))
        };
        assert!(plain(&[7]) && plain(&[1, 2]) && plain(&[1, 2, 3, 4]) && plain(&[5; 16]));
        assert!(!plain(&[1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(widen(&[1, 2, 3]), None);
    }
}
