//! Operators on constants.

use super::value::{Kind, Number, Value};

/// The value of `operator operand`.
pub(super) fn unary(operator: &str, operand: &Value) -> Option<Value> {
    let parts = operand.parts.iter().map(|part| match (operator, *part) {
        ("-", Number::Float(value)) => Some(Number::Float(-value)),
        ("-", Number::Int(value)) if matches!(operand.kind, Kind::I32 | Kind::AbstractInt) => {
            value.checked_neg().map(Number::Int)
        }
        ("!", Number::Int(value)) if operand.kind == Kind::Bool => Some(Number::Int(1 - value)),
        ("~", Number::Int(value)) if operand.kind == Kind::U32 => {
            Some(Number::Int((!value) & i64::from(u32::MAX)))
        }
        ("~", Number::Int(value)) if operand.kind.is_integer() => Some(Number::Int(!value)),
        _ => None,
    });
    let parts: Option<Vec<_>> = parts.collect();
    if operand.second.is_some() { None } else { Value::new(operand.kind, operand.shape, parts?) }
}

/// The value of `left operator right`.
pub(super) fn binary(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    if left.second.is_some() || right.second.is_some() {
        return None;
    }
    if matches!(operator, "<<" | ">>") {
        return shift(operator, left, right);
    }
    let kind = left.kind.common(right.kind)?;
    let (left, right) = (left.automatic(kind)?, right.automatic(kind)?);
    let is_comparison = matches!(operator, "==" | "!=" | "<" | ">" | "<=" | ">=");
    let has_matrix = left.shape.0 > 1 || right.shape.0 > 1;
    if operator == "*" && has_matrix && !left.is_scalar() && !right.is_scalar() {
        return matrix_product(&left, &right);
    }
    if is_comparison && left.shape != right.shape {
        return None;
    }
    let shape = if left.is_scalar() { right.shape } else { left.shape };
    if !left.is_scalar() && !right.is_scalar() && left.shape != right.shape {
        return None;
    }
    let part = |value: &Value, at: usize| value.parts[if value.is_scalar() { 0 } else { at }];
    let parts = (0..shape.0 * shape.1).map(|at| scalar(operator, part(&left, at), part(&right, at), kind));
    let parts: Option<Vec<_>> = parts.collect();
    Value::new(if is_comparison { Kind::Bool } else { kind }, shape, parts?)
}

fn scalar(operator: &str, left: Number, right: Number, kind: Kind) -> Option<Number> {
    let truth = |value: bool| Some(Number::Int(value.into()));
    match operator {
        "==" => return truth(left == right),
        "!=" => return truth(left != right),
        "<" if kind != Kind::Bool => return truth(left.float() < right.float()),
        ">" if kind != Kind::Bool => return truth(left.float() > right.float()),
        "<=" if kind != Kind::Bool => return truth(left.float() <= right.float()),
        ">=" if kind != Kind::Bool => return truth(left.float() >= right.float()),
        _ => {}
    }
    if let (Number::Int(left), Number::Int(right)) = (left, right) {
        let whole = kind.is_integer();
        let found = match operator {
            "&" => Some(left & right),
            "|" => Some(left | right),
            "^" if whole => Some(left ^ right),
            "+" if whole => left.checked_add(right),
            "-" if whole => left.checked_sub(right),
            "*" if whole => left.checked_mul(right),
            "/" if whole => left.checked_div(right),
            "%" if whole => left.checked_rem(right),
            _ => None,
        };
        // Abstract numbers do not wrap.
        return found.map(|value| match kind {
            Kind::I32 => Number::Int((value as i32).into()),
            Kind::U32 => Number::Int((value as u32).into()),
            _ => Number::Int(value),
        });
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

fn shift(operator: &str, left: &Value, right: &Value) -> Option<Value> {
    if !left.kind.is_integer() || left.shape != right.shape {
        return None;
    }
    let right = right.automatic(Kind::U32)?;
    let bits = if left.kind == Kind::AbstractInt { 64 } else { 32 };
    let parts = left.parts.iter().zip(&right.parts).map(|(value, by)| {
        let (value, by) = (value.int()?, u32::try_from(by.int()?).ok().filter(|by| *by < bits)?);
        let shifted = match operator {
            "<<" => value.checked_mul(1_i64.checked_shl(by).filter(|factor| *factor > 0)?)?,
            _ => value >> by,
        };
        Some(Number::Int(shifted))
    });
    let parts: Option<Vec<_>> = parts.collect();
    Value::new(left.kind, left.shape, parts?)
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
    let entry =
        |column: usize, row: usize| (0..inner).map(|k| a[k * rows + row] * b[column * depth + k]).sum();
    let entries = (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row)));
    let shape = if left.shape.0 == 1 { (1, columns) } else { (columns, rows) };
    Value::new(left.kind, shape, entries.map(|(column, row)| Number::Float(entry(column, row))))
}
