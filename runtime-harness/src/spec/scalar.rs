//! Numbers of a spec in expressions and as constants.

use runtime_core::{Number, OptionValue};

/// The value in expressions, where `true` is 1.
pub(super) fn value(number: Number) -> f64 {
    match number {
        Number::Bool(value) => f64::from(u8::from(value)),
        number => number.as_f64().unwrap_or(f64::NAN),
    }
}

/// The number as a specialisation constant; `None` for an integer that is too large.
pub(super) fn constant(number: Number) -> Option<OptionValue> {
    match number {
        Number::Integer(value) => i64::try_from(value).ok().map(OptionValue::Integer),
        Number::Float(value) => Some(OptionValue::Number(value)),
        Number::Bool(value) => Some(OptionValue::Flag(value)),
    }
}
