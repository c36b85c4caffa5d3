//! The pattern of a fill.

use crate::{Error, Result};

/// A pattern of 1, 2, 4, 8 or 16 bytes, whose size divides that of the range to fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillPattern {
    repeated: [u8; 16],
    period: usize,
}

impl FillPattern {
    /// The pattern of a fill of `bytes` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for a pattern of another size, or one that does not divide `bytes`.
    pub fn new(pattern: &[u8], bytes: u64) -> Result<Self> {
        let unit = pattern.len();
        if !matches!(unit, 1 | 2 | 4 | 8 | 16) || !bytes.is_multiple_of(unit as u64) {
            return Err(Error::invalid(format!(
                "fill: a pattern of {unit} bytes for {bytes} bytes; use a pattern of 1, 2, 4, 8 or 16 bytes that divides the size"
            )));
        }
        let repeated: [u8; 16] = std::array::from_fn(|index| pattern[index % unit]);
        let repeats = |period: &usize| repeated.chunks(*period).all(|chunk| *chunk == repeated[..*period]);
        Ok(Self { repeated, period: [1, 2, 4, 8].into_iter().find(repeats).unwrap_or(16) })
    }

    /// The shortest pattern that repeats to the same bytes: 1, 2, 4, 8 or 16.
    #[must_use]
    pub fn shortest(&self) -> &[u8] {
        &self.repeated[..self.period]
    }

    /// The pattern, repeated to 16 bytes.
    #[must_use]
    pub const fn repeated(&self) -> [u8; 16] {
        self.repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_pattern_is_reduced_to_its_period_and_repeated_to_16_bytes() {
        let bytes: Vec<u8> = (1..=16).collect();
        for unit in [1, 2, 4, 8, 16] {
            for pattern in [&bytes[..unit], &bytes[..unit].repeat(16 / unit)] {
                let made = FillPattern::new(pattern, 48).unwrap();
                assert_eq!(made.shortest(), &bytes[..unit]);
                assert_eq!(made.repeated().as_slice(), bytes[..unit].repeat(16 / unit));
            }
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        for (unit, bytes) in [(0, 0), (0, 16), (3, 12), (32, 64), (4, 6), (16, 8)] {
            let error = FillPattern::new(&vec![1; unit], bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{unit} {bytes}");
        }
    }
}
