//! Fill patterns, converted to the units of the driver's memset calls.

/// A repeated pattern, reduced to its smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Byte(u8),
    Half(u16),
    Word(u32),
    /// Larger units, repeated to 16 bytes.
    Wide([u8; 16]),
}

impl Pattern {
    /// Reduces a pattern of 1, 2, 4, 8 or 16 bytes; `None` for another length.
    pub(crate) fn reduce(pattern: &[u8]) -> Option<Self> {
        if !matches!(pattern.len(), 1 | 2 | 4 | 8 | 16) {
            return None;
        }
        let wide: [u8; 16] = std::array::from_fn(|index| pattern[index % pattern.len()]);
        let repeats = |unit: usize| wide.chunks(unit).all(|chunk| *chunk == wide[..unit]);
        Some(if repeats(1) {
            Self::Byte(wide[0])
        } else if repeats(2) {
            Self::Half(u16::from_le_bytes([wide[0], wide[1]]))
        } else if repeats(4) {
            Self::Word(u32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]]))
        } else {
            Self::Wide(wide)
        })
    }

    /// The unit and the value for the driver's memset at this address; `None` where a fill kernel is needed.
    pub(crate) fn memset_unit(self, address: u64) -> Option<(u32, u32)> {
        let (unit, value) = match self {
            Self::Byte(value) => (1, u32::from(value)),
            Self::Half(value) => (2, u32::from(value)),
            Self::Word(value) => (4, value),
            Self::Wide(_) => return None,
        };
        address.is_multiple_of(u64::from(unit)).then_some((unit, value))
    }

    /// The pattern, repeated to 16 bytes.
    pub(crate) fn to_16_bytes(self) -> [u8; 16] {
        match self {
            Self::Byte(value) => [value; 16],
            Self::Half(value) => std::array::from_fn(|index| value.to_le_bytes()[index % 2]),
            Self::Word(value) => std::array::from_fn(|index| value.to_le_bytes()[index % 4]),
            Self::Wide(wide) => wide,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_reduced_to_its_unit() {
        assert_eq!(Pattern::reduce(&[0; 16]), Some(Pattern::Byte(0)));
        assert_eq!(Pattern::reduce(&[1, 2, 1, 2]), Some(Pattern::Half(0x201)));
        assert_eq!(Pattern::reduce(&1.0f32.to_le_bytes()), Some(Pattern::Word(1.0f32.to_bits())));
        assert!(matches!(Pattern::reduce(&1.0f64.to_le_bytes()), Some(Pattern::Wide(_))));
        assert_eq!(Pattern::reduce(&[1, 2, 3]), None);
    }

    #[test]
    fn reducing_and_widening_preserves_the_pattern() {
        for pattern in [&[7][..], &[1, 2], &[1, 2, 3, 4], &[1, 2, 3, 4, 5, 6, 7, 8], &[9; 8]] {
            let wide = Pattern::reduce(pattern).unwrap().to_16_bytes();
            assert!(wide.iter().enumerate().all(|(index, byte)| *byte == pattern[index % pattern.len()]));
        }
    }

    #[test]
    fn the_driver_fills_aligned_ranges_only() {
        let word = Pattern::reduce(&[1, 2, 3, 4]).unwrap();
        assert_eq!(word.memset_unit(1024), Some((4, 0x0403_0201)));
        assert_eq!(word.memset_unit(1026), None);
    }
}
