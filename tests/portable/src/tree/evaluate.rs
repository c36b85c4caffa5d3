//! Evaluates expressions by WGSL's rules.

use super::{Base, Operation, Tree, Type, Value};

/// Evaluates `tree` with these values of the variables.
#[must_use]
pub fn evaluate(tree: &Tree, inputs: &[Value]) -> Value {
    match &tree.operation {
        Operation::Input(index) => inputs[*index],
        Operation::Literal(value) => *value,
        _ => {
            let arguments: Vec<_> =
                tree.arguments.iter().map(|argument| (argument.ty, evaluate(argument, inputs))).collect();
            apply(&tree.operation, tree.ty, &arguments)
        }
    }
}

fn apply(operation: &Operation, ty: Type, arguments: &[(Type, Value)]) -> Value {
    whole(operation, ty, arguments).unwrap_or_else(|| {
        let mut result = [0; 4];
        for (index, component) in result.iter_mut().enumerate().take(ty.width) {
            // A scalar operand beside vectors applies to all components.
            let at = |(ty, value): &(Type, Value)| value[if ty.width == 1 { 0 } else { index }];
            let operands: Vec<_> = arguments.iter().map(at).collect();
            let base = arguments.first().map_or(ty.base, |(ty, _)| ty.base);
            *component = match base {
                Base::F32 => float(operation, ty.base, &operands),
                _ => integer(operation, base, ty.base, &operands),
            };
        }
        result
    })
}

/// Operations that are not component-wise.
fn whole(operation: &Operation, ty: Type, arguments: &[(Type, Value)]) -> Option<Value> {
    let (first_type, first) = arguments[0];
    let bytes = |value: Value| value[0].to_le_bytes();
    let packed = |component: fn(u32) -> u32| {
        let mut bytes = first.map(component).into_iter().rev();
        bytes.try_fold(0u32, |word, byte| Some(word << 8 | (byte & 255)))
    };
    let scalar = |value: u32| [value, 0, 0, 0];
    Some(match operation {
        Operation::Swizzle(components) => {
            let mut result = [0; 4];
            components.iter().enumerate().for_each(|(to, from)| result[to] = first[*from]);
            result
        }
        Operation::Index => scalar(first[arguments[1].1[0] as usize % first_type.width]),
        Operation::Splat => [first[0]; 4],
        Operation::Construct => {
            let parts = arguments.iter().flat_map(|(ty, value)| value[..ty.width].to_vec());
            let mut result = [0; 4];
            parts.enumerate().for_each(|(index, component)| result[index] = component);
            result
        }
        Operation::All => scalar(u32::from(first[..first_type.width].iter().all(|c| *c != 0))),
        Operation::Any => scalar(u32::from(first[..first_type.width].iter().any(|c| *c != 0))),
        Operation::Dot => {
            let pairs = first.into_iter().zip(arguments[1].1).take(first_type.width);
            scalar(if ty.base == Base::F32 {
                let product = |(a, b)| f64::from(limit(a)) * f64::from(limit(b));
                limit_real(pairs.map(product).sum())
            } else {
                pairs.fold(0, |sum, (a, b): (u32, u32)| sum.wrapping_add(a.wrapping_mul(b)))
            })
        }
        Operation::PackU8 | Operation::PackI8 => scalar(packed(|c| c)?),
        Operation::PackU8Clamp => scalar(packed(|c| c.min(255))?),
        Operation::PackI8Clamp => scalar(packed(|c| (c as i32).clamp(-128, 127) as u32)?),
        Operation::UnpackU8 => bytes(first).map(u32::from),
        Operation::UnpackI8 => bytes(first).map(|byte| i32::from(byte.cast_signed()) as u32),
        Operation::DotU8 => {
            let pairs = bytes(first).into_iter().zip(bytes(arguments[1].1));
            scalar(pairs.map(|(a, b)| u32::from(a) * u32::from(b)).sum())
        }
        Operation::DotI8 => {
            let pairs = bytes(first).into_iter().zip(bytes(arguments[1].1));
            scalar(pairs.map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed())).sum::<i32>()
                as u32)
        }
        _ => return None,
    })
}

/// One component of an operation on integers or booleans.
fn integer(operation: &Operation, base: Base, result: Base, operands: &[u32]) -> u32 {
    let (a, b) = (operands[0], operands.get(1).copied().unwrap_or(0));
    let signed = base == Base::I32;
    let (sa, sb) = (a as i32, b as i32);
    let order = if signed { sa.cmp(&sb) } else { a.cmp(&b) };
    match operation {
        Operation::Negate => a.wrapping_neg(),
        Operation::Complement => !a,
        Operation::Not => u32::from(a == 0),
        Operation::Add => a.wrapping_add(b),
        Operation::Subtract => a.wrapping_sub(b),
        Operation::Multiply => a.wrapping_mul(b),
        // §arithmetic-expr: division by zero, or of the lowest value by -1, returns the dividend; the remainder is 0.
        Operation::Divide if b == 0 => a,
        Operation::Remainder if b == 0 => 0,
        Operation::Divide if signed => sa.wrapping_div(sb) as u32,
        Operation::Divide => a / b,
        Operation::Remainder if signed => sa.wrapping_rem(sb) as u32,
        Operation::Remainder => a % b,
        Operation::And | Operation::Both => a & b,
        Operation::Or | Operation::Either => a | b,
        Operation::Xor => a ^ b,
        // §bit-expr: the shift is taken modulo the width.
        Operation::ShiftLeft => a.wrapping_shl(b),
        Operation::ShiftRight if signed => sa.wrapping_shr(b) as u32,
        Operation::ShiftRight => a.wrapping_shr(b),
        Operation::Equal => u32::from(a == b),
        Operation::Unequal => u32::from(a != b),
        Operation::Less => u32::from(order.is_lt()),
        Operation::LessEqual => u32::from(order.is_le()),
        Operation::Greater => u32::from(order.is_gt()),
        Operation::GreaterEqual => u32::from(order.is_ge()),
        Operation::Select => {
            if operands[2] != 0 {
                b
            } else {
                a
            }
        }
        Operation::Min => {
            if order.is_le() {
                a
            } else {
                b
            }
        }
        Operation::Max => {
            if order.is_ge() {
                a
            } else {
                b
            }
        }
        // §clamp: min(max(e, low), high)
        Operation::Clamp if signed => sa.max(sb).min(operands[2] as i32) as u32,
        Operation::Clamp => a.max(b).min(operands[2]),
        Operation::Convert if result == Base::Bool => u32::from(a != 0),
        Operation::Convert if result == Base::F32 && base == Base::Bool => (a as f32).to_bits(),
        Operation::Convert if result == Base::F32 => ((a & 255) as f32).to_bits(),
        Operation::Convert | Operation::Bitcast => a,
        _ => bits(operation, signed, operands),
    }
}

/// Built-in functions on bits.
fn bits(operation: &Operation, signed: bool, operands: &[u32]) -> u32 {
    let a = operands[0];
    // §extractBits-builtin: the range is limited to the word.
    let range = |offset: u32, count: u32| (offset.min(32), count.min(32 - offset.min(32)));
    let mask = |count: u32| if count == 32 { u32::MAX } else { (1 << count) - 1 };
    match operation {
        Operation::Abs if signed => (a as i32).unsigned_abs(),
        Operation::Abs => a,
        Operation::Sign => (a as i32).signum() as u32,
        Operation::CountOneBits => a.count_ones(),
        Operation::CountLeadingZeros => a.leading_zeros(),
        Operation::CountTrailingZeros => a.trailing_zeros(),
        Operation::FirstLeadingBit => {
            let a = if signed && (a as i32) < 0 { !a } else { a };
            if a == 0 { u32::MAX } else { 31 - a.leading_zeros() }
        }
        Operation::FirstTrailingBit => {
            if a == 0 {
                u32::MAX
            } else {
                a.trailing_zeros()
            }
        }
        Operation::ReverseBits => a.reverse_bits(),
        Operation::ExtractBits => match range(operands[1], operands[2]) {
            (_, 0) => 0,
            (offset, count) if signed => ((a << (32 - count - offset)) as i32 >> (32 - count)) as u32,
            (offset, count) => a >> offset & mask(count),
        },
        Operation::InsertBits => match range(operands[2], operands[3]) {
            (_, 0) => a,
            (offset, count) => a & !(mask(count) << offset) | (operands[1] & mask(count)) << offset,
        },
        _ => unreachable!("{operation:?} of integers"),
    }
}

/// One component of an operation on floats; a condition operand is 0 or 1.
fn float(operation: &Operation, result: Base, operands: &[u32]) -> u32 {
    let [a, b] = [0, 1].map(|index| operands.get(index).map_or(0.0, |bits| f32::from_bits(*bits)));
    let compared = match operation {
        Operation::Equal => a == b,
        Operation::Unequal => a != b,
        Operation::Less => a < b,
        Operation::LessEqual => a <= b,
        Operation::Greater => a > b,
        Operation::GreaterEqual => a >= b,
        Operation::Convert if result == Base::Bool => a != 0.0,
        Operation::Convert if result == Base::I32 => return a as i32 as u32,
        Operation::Convert => return a as u32,
        Operation::Select => return if operands[2] != 0 { operands[1] } else { operands[0] },
        _ => return real(operation, operands, a, b).to_bits(),
    };
    u32::from(compared)
}

fn real(operation: &Operation, operands: &[u32], a: f32, b: f32) -> f32 {
    match operation {
        Operation::Negate => -a,
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => {
            f32::from_bits(limit_real(f64::from(limit(operands[0])) * f64::from(limit(operands[1]))))
        }
        Operation::Min => a.min(b),
        Operation::Max => a.max(b),
        Operation::ClampFloat => a.clamp(-8.5, 100.0),
        Operation::Abs => a.abs(),
        Operation::Sign => {
            if a == 0.0 {
                0.0
            } else {
                a.signum()
            }
        }
        Operation::Floor => a.floor(),
        Operation::Ceil => a.ceil(),
        Operation::Round => a.round_ties_even(),
        Operation::Trunc => a.trunc(),
        Operation::Fract => a - a.floor(),
        _ => unreachable!("{operation:?} of floats"),
    }
}

/// A float clamped to ± 512.
fn limit(bits: u32) -> f32 {
    f32::from_bits(bits).clamp(-512.0, 512.0)
}

/// A sum of products, rounded and clamped.
fn limit_real(value: f64) -> u32 {
    (value.round_ties_even().clamp(-512.0, 512.0) as f32).to_bits()
}
