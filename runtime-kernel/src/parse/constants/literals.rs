//! The values of literals.

use super::value::{Kind, Number, Value, rounded};

/// Bits of a mantissa that 64-bit floating-point numbers hold.
const PRECISION: u32 = 53;

/// The value of a number as it is written.
pub(super) fn value(text: &str) -> Option<Value> {
    match hexadecimal(text) {
        Some(hex) if hex.contains(['.', 'p', 'P']) => hex_float(hex),
        Some(hex) => {
            let (digits, kind) = with_suffix(hex, |letter| letter.is_ascii_hexdigit())?;
            let kind = kind.unwrap_or(Kind::AbstractInt);
            let number = Number::Int(i128::from_str_radix(digits, 16).ok()?);
            if kind.is_integer() { Value::scalar(kind, number) } else { None }
        }
        None => {
            let is_digit = |letter: char| letter.is_ascii_digit() || ".eE+-".contains(letter);
            let (digits, kind) = with_suffix(text, is_digit)?;
            let is_float = digits.contains(['.', 'e', 'E']);
            if !is_float && digits.len() > 1 && digits.starts_with('0') {
                return None;
            }
            match kind.unwrap_or(if is_float { Kind::AbstractFloat } else { Kind::AbstractInt }) {
                // Parsed as the type: a number that is rounded twice may be another.
                Kind::F32 => Value::scalar(Kind::F32, Number::Float(digits.parse::<f32>().ok()?.into())),
                kind if kind.is_float() => Value::scalar(kind, Number::Float(digits.parse().ok()?)),
                kind => Value::scalar(kind, Number::Int(digits.parse().ok()?)),
            }
        }
    }
}

/// The value of an integer as it is written, with any suffix.
pub(in crate::parse) fn integer(text: &str) -> Option<i128> {
    value(text)?.as_int()
}

/// The value of an integer without a suffix.
pub(in crate::parse) fn abstract_integer(text: &str) -> Option<i128> {
    value(text).filter(|value| value.kind == Kind::AbstractInt)?.as_int()
}

/// Whether naga does not read a number: a hexadecimal `f16`.
pub(super) fn is_missing(text: &str) -> bool {
    hexadecimal(text).is_some_and(|digits| digits.ends_with('h'))
}

/// What follows the `0x` of a number.
pub(super) fn hexadecimal(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// Digits, and the type of the suffix after them.
fn with_suffix(text: &str, is_digit: impl Fn(char) -> bool) -> Option<(&str, Option<Kind>)> {
    let (digits, suffix) = text.split_at(text.find(|letter| !is_digit(letter)).unwrap_or(text.len()));
    if suffix.is_empty() { Some((digits, None)) } else { Some((digits, Some(Kind::of_suffix(suffix)?))) }
}

/// A hexadecimal floating-point number without its `0x`; `None` if the type does not have it exactly.
fn hex_float(text: &str) -> Option<Value> {
    let (mantissa, exponent) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    let (exponent, kind) =
        with_suffix(exponent, |letter| letter.is_ascii_digit() || matches!(letter, '+' | '-'))?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let places = i32::try_from(digits.len() - kept.len()).ok()? - i32::try_from(fraction.len()).ok()?;
    let mantissa =
        if kept.is_empty() && !digits.is_empty() { 0 } else { u64::from_str_radix(kept, 16).ok()? };
    let zeros = mantissa.trailing_zeros().min(63);
    if (mantissa >> zeros) >> PRECISION != 0 {
        return None;
    }
    let exponent = exponent.parse::<i32>().ok()?.checked_add(places * 4)?.checked_add(zeros as i32)?;
    let value = scaled((mantissa >> zeros) as f64, exponent);
    let kind = kind.unwrap_or(Kind::AbstractFloat);
    let is_exact = rounded(value, kind) == Some(value) && (value != 0.0 || mantissa == 0);
    // A mantissa that lost bits on the way down does not come back.
    let is_same = scaled(value, exponent.checked_neg()?) == (mantissa >> zeros) as f64;
    (is_exact && is_same).then(|| Value::scalar(kind, Number::Float(value)))?
}

/// A number times a power of two, rounded once.
pub(super) fn scaled(value: f64, exponent: i32) -> f64 {
    // In steps: the power may be out of range where the product is not. All but the last one are exact, unless the
    // product is far below all numbers.
    let exponent = exponent.clamp(-2200, 2200);
    let steps = (0..exponent.abs() / 1000).map(|_| 1000 * exponent.signum());
    std::iter::once(exponent % 1000).chain(steps).fold(value, |value, step| value * 2_f64.powi(step))
}
