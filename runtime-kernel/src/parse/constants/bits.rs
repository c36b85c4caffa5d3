//! Built-in functions of bits on constants: casts, bit fields, packing.

use half::f16;

use super::value::{Kind, Number, Value, rounded, wrapped};

/// The bits of a number.
fn bits_of(number: Number, kind: Kind) -> Option<u64> {
    Some(match (number, kind) {
        (Number::Float(value), Kind::F64) => value.to_bits(),
        (Number::Float(value), Kind::F32) => (value as f32).to_bits().into(),
        (Number::Float(value), Kind::F16) => f16::from_f64(value).to_bits().into(),
        (Number::Int(value), Kind::I32 | Kind::U32) => u64::from(value as u32),
        (Number::Int(value), Kind::I64 | Kind::U64) => value as u64,
        _ => return None,
    })
}

/// The number with some bits; `None` for an infinity or a NaN, which no constant is.
fn of_bits(bits: u64, kind: Kind) -> Option<Number> {
    let number = match kind {
        Kind::F64 => Number::Float(f64::from_bits(bits)),
        Kind::F32 => Number::Float(f32::from_bits(bits as u32).into()),
        Kind::F16 => Number::Float(f16::from_bits(bits as u16).to_f64()),
        kind if kind.is_integer() => Number::Int(wrapped(bits.into(), kind)),
        _ => return None,
    };
    number.float().is_finite().then_some(number)
}

/// The value of `bitcast<kind>` or a vector of it.
pub(super) fn bitcast(kind: Kind, size: usize, value: &Value) -> Option<Value> {
    let is_large =
        value.kind == Kind::AbstractInt && value.parts.iter().any(|part| part.float() > f64::from(i32::MAX));
    let value = value.automatic(if is_large { Kind::U32 } else { value.kind.concrete() })?;
    let [from, to] = [value.kind, kind].map(|kind| kind.width() as usize / 8);
    if value.kind == Kind::Bool || value.parts.len() * from != size * to || value.shape.0 > 1 {
        return None;
    }
    let mut bytes = Vec::new();
    for part in &value.parts {
        bytes.extend_from_slice(&bits_of(*part, value.kind)?.to_le_bytes()[..from]);
    }
    let parts = bytes.chunks(to).map(|chunk| {
        let bits = chunk.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        of_bits(bits, kind)
    });
    Value::of_parts(kind, (1, size), parts)
}

/// The value of a call.
pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Value> {
    match arguments {
        [value, offset, count] if name == "extractBits" => extract(value, offset, count),
        [value, new, offset, count] if name == "insertBits" => insert(value, new, offset, count),
        [value] if name.starts_with("pack") => pack(name, value),
        [value] if name.starts_with("unpack") => unpack(name, word(value)?),
        [value] => count(name, &value.concrete()?),
        [a, b] => packed_dot(name, word(a)?, word(b)?),
        _ => None,
    }
}

/// The functions that count or find bits.
fn count(name: &str, value: &Value) -> Option<Value> {
    let is_signed = value.kind == Kind::I32;
    let parts = value.parts.iter().map(|part| {
        let bits = bits_of(*part, value.kind)? as u32;
        // The first bit that is not the sign.
        let leading = if is_signed && bits >> 31 == 1 { !bits } else { bits };
        let place = |bits: u32, place: u32| if bits == 0 { u32::MAX } else { place };
        Some(Number::Int(wrapped(
            i128::from(match name {
                "countLeadingZeros" => bits.leading_zeros(),
                "countOneBits" => bits.count_ones(),
                "countTrailingZeros" => bits.trailing_zeros(),
                "firstLeadingBit" => place(leading, 31_u32.wrapping_sub(leading.leading_zeros())),
                "firstTrailingBit" => place(bits, bits.trailing_zeros()),
                "reverseBits" => bits.reverse_bits(),
                _ => return None,
            }),
            value.kind,
        )))
    });
    (is_word(value.kind) && value.shape.0 == 1).then(|| Value::of_parts(value.kind, value.shape, parts))?
}

/// The products of bytes in words.
fn packed_dot(name: &str, a: u32, b: u32) -> Option<Value> {
    let pairs = || a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    let (kind, sum): (_, i32) = match name {
        "dot4I8Packed" => (Kind::I32, pairs().map(|(a, b)| i32::from(a as i8) * i32::from(b as i8)).sum()),
        "dot4U8Packed" => (Kind::U32, pairs().map(|(a, b)| i32::from(a) * i32::from(b)).sum()),
        _ => return None,
    };
    Value::scalar(kind, Number::Int(sum.into()))
}

/// The value of a `u32`.
fn word(value: &Value) -> Option<u32> {
    u32::try_from(value.automatic(Kind::U32)?.as_int()?).ok()
}

/// Offset and width of a bit field; an error if it does not fit.
fn field(offset: &Value, count: &Value) -> Option<(u32, u32)> {
    let (offset, count) = (word(offset)?, word(count)?);
    (offset.checked_add(count)? <= 32).then_some((offset, count))
}

const fn is_word(kind: Kind) -> bool {
    matches!(kind, Kind::I32 | Kind::U32)
}

const fn mask(count: u32) -> u32 {
    if count == 0 { 0 } else { u32::MAX >> (32 - count) }
}

fn extract(value: &Value, offset: &Value, count: &Value) -> Option<Value> {
    let value = value.concrete()?;
    let (offset, count) = field(offset, count)?;
    let parts = value.parts.iter().map(|part| {
        let bits = bits_of(*part, value.kind)? as u32;
        let found = bits.checked_shr(offset).unwrap_or(0) & mask(count);
        let is_negative = value.kind == Kind::I32 && count > 0 && found >> (count - 1) == 1;
        of_bits(u64::from(if is_negative { found | !mask(count) } else { found }), value.kind)
    });
    is_word(value.kind).then(|| Value::of_parts(value.kind, value.shape, parts))?
}

fn insert(value: &Value, new: &Value, offset: &Value, count: &Value) -> Option<Value> {
    let kind = value.kind.common(new.kind)?.concrete();
    let (value, new) = (value.automatic(kind)?, new.automatic(kind)?);
    let (offset, count) = field(offset, count)?;
    let place = mask(count).checked_shl(offset).unwrap_or(0);
    let parts = value.parts.iter().zip(&new.parts).map(|(old, new)| {
        let [old, new] = [bits_of(*old, kind)? as u32, bits_of(*new, kind)? as u32];
        of_bits(u64::from(old & !place | new.checked_shl(offset).unwrap_or(0) & place), kind)
    });
    (is_word(kind) && value.shape == new.shape).then(|| Value::of_parts(kind, value.shape, parts))?
}

fn pack(name: &str, value: &Value) -> Option<Value> {
    let kind = match name {
        "pack4xI8" | "pack4xI8Clamp" => Kind::I32,
        "pack4xU8" | "pack4xU8Clamp" => Kind::U32,
        _ => Kind::F32,
    };
    let value = value.automatic(kind)?;
    let count = if name.starts_with("pack4x") { 4 } else { 2 };
    let width = if count == 4 { 8 } else { 16 };
    let packed = |part: &Number| -> Option<u32> {
        // In 32 bits, as where the kernel runs.
        let scaled =
            |least: f32, most: f32| (0.5 + most * (part.float() as f32).clamp(least, 1.0)).floor() as i32;
        Some(match name {
            "pack2x16float" => f16::from_f64(rounded(part.float(), Kind::F16)?).to_bits().into(),
            "pack4x8snorm" => scaled(-1.0, 127.0) as u32,
            "pack2x16snorm" => scaled(-1.0, 32767.0) as u32,
            "pack4x8unorm" => scaled(0.0, 255.0) as u32,
            "pack2x16unorm" => scaled(0.0, 65535.0) as u32,
            "pack4xI8Clamp" => part.int()?.clamp(-128, 127) as u32,
            "pack4xU8Clamp" => part.int()?.clamp(0, 255) as u32,
            _ => part.int()? as u32,
        })
    };
    if value.shape != (1, count) {
        return None;
    }
    let mut bits = 0;
    for (at, part) in (0..).zip(&value.parts) {
        bits |= (packed(part)? & mask(width)) << (at * width);
    }
    Value::scalar(Kind::U32, Number::Int(bits.into()))
}

fn unpack(name: &str, word: u32) -> Option<Value> {
    let bytes = word.to_le_bytes();
    let halves = [word as u16, (word >> 16) as u16];
    let of_bytes = |f: fn(u8) -> Number| bytes.into_iter().map(f).collect::<Vec<_>>();
    let of_halves = |f: fn(u16) -> Number| halves.into_iter().map(f).collect::<Vec<_>>();
    let signed = |value: f64| Number::Float(value.max(-1.0));
    let parts = match name {
        "unpack4xI8" => of_bytes(|byte| Number::Int((byte as i8).into())),
        "unpack4xU8" => of_bytes(|byte| Number::Int(byte.into())),
        "unpack4x8unorm" => of_bytes(|byte| Number::Float(f64::from(byte) / 255.0)),
        "unpack4x8snorm" => bytes.map(|byte| signed(f64::from(byte as i8) / 127.0)).to_vec(),
        "unpack2x16unorm" => of_halves(|half| Number::Float(f64::from(half) / 65535.0)),
        "unpack2x16snorm" => halves.map(|half| signed(f64::from(half as i16) / 32767.0)).to_vec(),
        "unpack2x16float" => of_halves(|half| Number::Float(f16::from_bits(half).to_f64())),
        _ => return None,
    };
    let kind = match name {
        "unpack4xI8" => Kind::I32,
        "unpack4xU8" => Kind::U32,
        _ => Kind::F32,
    };
    Value::new(kind, (1, parts.len()), parts)
}
