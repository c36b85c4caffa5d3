//! Built-in functions that pack vectors into words.

use naga::MathFunction as Fun;
use runtime_kernel::naga;

use super::Invalid;
use super::scalar::{float, float_bits};

const F16: naga::Scalar = naga::Scalar::F16;
const F32: naga::Scalar = naga::Scalar::F32;

/// The bits of a component, and how they mean a number.
fn format(fun: Fun) -> Option<(u32, Meaning)> {
    Some(match fun {
        Fun::Pack4x8snorm | Fun::Unpack4x8snorm => (8, Meaning::Normalised { lowest: -1.0, one: 127.0 }),
        Fun::Pack4x8unorm | Fun::Unpack4x8unorm => (8, Meaning::Normalised { lowest: 0.0, one: 255.0 }),
        Fun::Pack2x16snorm | Fun::Unpack2x16snorm => (16, Meaning::Normalised { lowest: -1.0, one: 32767.0 }),
        Fun::Pack2x16unorm | Fun::Unpack2x16unorm => (16, Meaning::Normalised { lowest: 0.0, one: 65535.0 }),
        Fun::Pack2x16float | Fun::Unpack2x16float => (16, Meaning::Half),
        Fun::Pack4xI8 | Fun::Unpack4xI8 => (8, Meaning::Signed),
        Fun::Pack4xU8 | Fun::Unpack4xU8 => (8, Meaning::Unsigned),
        Fun::Pack4xI8Clamp => (8, Meaning::SignedClamped),
        Fun::Pack4xU8Clamp => (8, Meaning::UnsignedClamped),
        _ => return None,
    })
}

#[derive(Clone, Copy)]
enum Meaning {
    Normalised { lowest: f64, one: f64 },
    Half,
    Signed,
    Unsigned,
    SignedClamped,
    UnsignedClamped,
}

/// Whether a function packs or unpacks.
pub(super) fn packs(fun: Fun) -> bool {
    format(fun).is_some()
}

/// A component of the result for `words`.
///
/// # Errors
/// It is not exact.
pub(super) fn component(fun: Fun, words: &[u64], index: usize) -> Result<u64, Invalid> {
    let (bits, meaning) = format(fun).ok_or_else(|| Invalid::unknown(&format!("{fun:?}")))?;
    let mask = (1 << bits) - 1;
    // Only what unpacks has one operand.
    if words.len() == 1 {
        return unpacked(words[0] >> (index as u32 * bits) & mask, bits, meaning);
    }
    let mut whole = 0;
    for (at, word) in words.iter().enumerate() {
        whole |= (packed(*word, meaning)? & mask) << (at as u32 * bits);
    }
    Ok(whole)
}

fn packed(word: u64, meaning: Meaning) -> Result<u64, Invalid> {
    Ok(match meaning {
        Meaning::Normalised { lowest, one } => {
            let scaled = float(F32, word).clamp(lowest, 1.0) * one;
            // Devices round a half in either direction.
            if scaled.fract().abs() == 0.5 {
                return Err(Invalid::Inexact);
            }
            scaled.round() as i64 as u64
        }
        Meaning::Half => float_bits(F16, float(F32, word))?,
        Meaning::Signed | Meaning::Unsigned => word,
        Meaning::SignedClamped => i64::from((word as i32).clamp(-128, 127)) as u64,
        Meaning::UnsignedClamped => word.min(255),
    })
}

fn unpacked(part: u64, bits: u32, meaning: Meaning) -> Result<u64, Invalid> {
    let signed = (part as i64) << (64 - bits) >> (64 - bits);
    match meaning {
        Meaning::Normalised { lowest, one } => {
            let number = if lowest < 0.0 { signed as f64 } else { part as f64 };
            float_bits(F32, (number / one).max(lowest))
        }
        Meaning::Half => float_bits(F32, float(F16, part)),
        Meaning::Signed | Meaning::SignedClamped => Ok(u64::from(signed as u32)),
        Meaning::Unsigned | Meaning::UnsignedClamped => Ok(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_packed_and_unpacked() {
        let floats = |values: [f32; 4]| values.map(|value| u64::from(value.to_bits()));
        let unpack = |fun, word: u64| [0, 1, 2, 3].map(|at| component(fun, &[word], at));
        assert_eq!(component(Fun::Pack4x8snorm, &floats([1.0, 0.0, -1.0, 9.0]), 0), Ok(0x7f81_007f));
        assert_eq!(component(Fun::Pack4x8unorm, &floats([1.0, 0.0, -1.0, 9.0]), 0), Ok(0xff00_00ff));
        assert_eq!(component(Fun::Pack4x8unorm, &floats([0.5, 0.0, 0.0, 0.0]), 0), Err(Invalid::Inexact));
        assert_eq!(component(Fun::Pack2x16float, &floats([2.0, 1.0, 0.0, 0.0])[..2], 0), Ok(0x3c00_4000));
        assert_eq!(component(Fun::Pack4xI8Clamp, &[500, 1, u64::from(u32::MAX), 0], 0), Ok(0x00ff_017f));
        assert_eq!(unpack(Fun::Unpack4x8snorm, 0x7f80_8100), floats([0.0, -1.0, -1.0, 1.0]).map(Ok));
        assert_eq!(unpack(Fun::Unpack4xI8, 0xff01_0002), [2, 0, 1, u64::from(u32::MAX)].map(Ok));
        assert_eq!(unpack(Fun::Unpack4xU8, 0xff01_0002), [2, 0, 1, 255].map(Ok));
    }
}
