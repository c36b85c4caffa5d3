//! Operators on constants.

use std::cmp::Ordering;

use super::value::{Kind, Number, Value, rounded, wrapped};

/// The value of `operator operand`.
pub(super) fn unary(operator: &str, operand: &Value) -> Option<Value> {
    let parts = operand.parts.iter().map(|part| match (operator, *part) {
        ("-", Number::Float(value)) => Some(Number::Float(-value)),
        ("-", Number::Int(value)) if operand.kind.bounds().is_some_and(|[least, _]| least < 0) => {
            Some(Number::Int(wrapped(-value, operand.kind)))
        }
        ("!", Number::Int(value)) if operand.kind == Kind::Bool => Some(Number::Int(1 - value)),
        ("~", Number::Int(value)) if operand.kind.is_integer() => {
            Some(Number::Int(wrapped(!value, operand.kind)))
        }
        _ => None,
    });
    (operand.shape.0 == 1).then(|| Value::of_parts(operand.kind, operand.shape, parts))?
}

/// The value of `left operator right`.
pub(super) fn binary(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    if matches!(operator, "<<" | ">>") {
        return shift(operator, left, right);
    }
    let kind = left.kind.common(right.kind)?;
    let (left, right) = (left.automatic(kind)?, right.automatic(kind)?);
    let is_comparison = matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=");
    let has_matrix = left.shape.0 > 1 || right.shape.0 > 1;
    let is_mixed = left.is_scalar() != right.is_scalar();
    if operator == "*" && has_matrix && !is_mixed {
        return matrix_product(&left, &right);
    }
    let takes = match operator {
        "*" => true,
        "+" | "-" => !(is_mixed && has_matrix),
        "/" | "%" => !has_matrix,
        _ => !is_mixed && !has_matrix,
    };
    if !takes || !is_mixed && left.shape != right.shape {
        return None;
    }
    let shape = if left.is_scalar() { right.shape } else { left.shape };
    let part = |value: &Value, at: usize| value.parts[if value.is_scalar() { 0 } else { at }];
    let parts = (0..shape.0 * shape.1).map(|at| scalar(operator, part(&left, at), part(&right, at), kind));
    Value::of_parts(if is_comparison { Kind::Bool } else { kind }, shape, parts)
}

fn scalar(operator: &str, left: Number, right: Number, kind: Kind) -> Option<Number> {
    let truth = |value: bool| Some(Number::Int(value.into()));
    let order = match (left, right) {
        (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
        _ => left.float().partial_cmp(&right.float()),
    };
    match operator {
        "==" => return truth(left == right),
        "!=" => return truth(left != right),
        "<" if kind != Kind::Bool => return truth(order.is_some_and(Ordering::is_lt)),
        ">" if kind != Kind::Bool => return truth(order.is_some_and(Ordering::is_gt)),
        "<=" if kind != Kind::Bool => return truth(order.is_some_and(Ordering::is_le)),
        ">=" if kind != Kind::Bool => return truth(order.is_some_and(Ordering::is_ge)),
        _ => {}
    }
    if let (Number::Int(left), Number::Int(right)) = (left, right) {
        return integers(operator, left, right, kind).map(Number::Int);
    }
    let (left, right) = (left.float(), right.float());
    Some(Number::Float(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "%" => left % right,
        _ => return None,
    }))
}

/// Concrete integers wrap where a sum, difference or product does not fit.
fn integers(operator: &str, left: i128, right: i128, kind: Kind) -> Option<i128> {
    // The quotient does not fit, and the remainder of such a division is an error, too.
    let overflows = || right == -1 && kind.bounds().is_some_and(|[least, _]| left == least);
    match operator {
        "&" => Some(left & right),
        "|" => Some(left | right),
        _ if !kind.is_integer() => None,
        "^" => Some(left ^ right),
        "+" => Some(wrapped(left + right, kind)),
        "-" => Some(wrapped(left - right, kind)),
        // The lowest bits are right even where 128 do not suffice.
        "*" => Some(wrapped(left.wrapping_mul(right), kind)),
        "/" if !overflows() => left.checked_div(right),
        "%" if !overflows() => left.checked_rem(right),
        _ => None,
    }
}

/// Abstract integers may be shifted by any amount, concrete ones by less than their width.
fn shift(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    if !left.kind.is_integer() || left.shape != right.shape {
        return None;
    }
    let right = right.automatic(Kind::U32)?;
    let parts = left.parts.iter().zip(&right.parts).map(|(value, by)| {
        let (value, by) = (value.int()?, u32::try_from(by.int()?).ok()?);
        if left.kind != Kind::AbstractInt && by >= left.kind.width() {
            return None;
        }
        Some(Number::Int(match operator {
            "<<" if value == 0 => 0,
            // Bits that do not fit are an error.
            "<<" => value.checked_mul(1_i128.checked_shl(by).filter(|factor| *factor > 0)?)?,
            _ => value >> by.min(i128::BITS - 1),
        }))
    });
    Value::of_parts(left.kind, left.shape, parts)
}

/// A matrix times a matrix or a vector, or a vector times a matrix.
fn matrix_product(left: &Value, right: &Value) -> Option<Value> {
    // A vector before a matrix is a row.
    let (inner, rows) = if left.shape.0 == 1 { (left.shape.1, 1) } else { left.shape };
    let (columns, depth) = right.shape;
    if inner != depth || !left.kind.is_float() {
        return None;
    }
    let (a, b) = (left.floats(), right.floats());
    let entry = |(column, row): (usize, usize)| {
        (0..inner).try_fold(0.0, |sum, k| {
            let product = rounded(a[k * rows + row] * b[column * depth + k], left.kind)?;
            rounded(sum + product, left.kind)
        })
    };
    let entries = (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row)));
    let shape = if left.shape.0 == 1 { (1, columns) } else { (columns, rows) };
    Value::of_parts(left.kind, shape, entries.map(|place| entry(place).map(Number::Float)))
}
