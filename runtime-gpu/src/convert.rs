//! Fill patterns, converted to the units of the driver's memset calls.

use runtime_core::backend::FillPattern;

/// The unit and the value for the driver's memset at this address; `None` where a fill kernel is needed.
pub(crate) fn memset_unit(pattern: &FillPattern, address: u64) -> Option<(u32, u32)> {
    let (unit, value) = match *pattern.shortest() {
        [byte] => (1, u32::from(byte)),
        [a, b] => (2, u32::from(u16::from_le_bytes([a, b]))),
        [a, b, c, d] => (4, u32::from_le_bytes([a, b, c, d])),
        _ => return None,
    };
    address.is_multiple_of(u64::from(unit)).then_some((unit, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(pattern: &[u8], address: u64) -> Option<(u32, u32)> {
        memset_unit(&FillPattern::new(pattern, 64).unwrap(), address)
    }

    #[test]
    fn a_pattern_is_reduced_to_its_unit() {
        assert_eq!(unit(&[0; 16], 1025), Some((1, 0)));
        assert_eq!(unit(&[1, 2, 1, 2], 1026), Some((2, 0x201)));
        assert_eq!(unit(&1.0f32.to_le_bytes(), 1024), Some((4, 1.0f32.to_bits())));
        assert_eq!(unit(&1.0f64.to_le_bytes(), 1024), None);
    }

    #[test]
    fn the_driver_fills_aligned_ranges_only() {
        assert_eq!(unit(&[1, 2, 3, 4], 1024), Some((4, 0x0403_0201)));
        assert_eq!(unit(&[1, 2, 3, 4], 1026), None);
    }
}
