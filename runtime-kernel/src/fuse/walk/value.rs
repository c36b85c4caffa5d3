//! What is known of the values of a body.

use std::rc::Rc;

use naga::BinaryOperator;

use crate::fuse::linear::{Integer, Knowledge, Linear, Scalars};

/// A value, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    #[default]
    Unknown,
    /// A 32-bit integer.
    Number(Linear),
    /// The components of a vector, or the members of a structure.
    Parts(Vec<Self>),
    Condition(Rc<Condition>),
}

/// A truth value.
#[derive(Debug, PartialEq)]
pub(super) enum Condition {
    Compare { op: BinaryOperator, left: Linear, right: Linear, signed: bool },
    And(Value, Value),
    Or(Value, Value),
    Not(Value),
}

impl Value {
    pub(super) fn number(&self) -> Option<&Linear> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn part(&self, index: usize) -> Self {
        match self {
            Self::Parts(parts) => parts.get(index).cloned().unwrap_or_default(),
            _ => Self::Unknown,
        }
    }

    pub(super) fn condition(condition: Condition) -> Self {
        Self::Condition(Rc::new(condition))
    }
}

/// The result of an operation on two numbers or conditions; `signed` selects how integers are compared.
pub(super) fn binary(op: BinaryOperator, left: &Value, right: &Value, signed: bool) -> Value {
    use BinaryOperator as Op;
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => match op {
            Op::Add => Value::Number(a.plus(b)),
            Op::Subtract => Value::Number(a.minus(b)),
            Op::Multiply => a.times(b).map_or(Value::Unknown, Value::Number),
            Op::ShiftLeft => shifted(a, b).map_or(Value::Unknown, Value::Number),
            Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual | Op::Equal | Op::NotEqual => {
                Value::condition(Condition::Compare { op, left: a.clone(), right: b.clone(), signed })
            }
            _ => Value::Unknown,
        },
        (Value::Condition(_), _) | (_, Value::Condition(_)) => match op {
            Op::LogicalAnd | Op::And => Value::condition(Condition::And(left.clone(), right.clone())),
            Op::LogicalOr | Op::InclusiveOr => Value::condition(Condition::Or(left.clone(), right.clone())),
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    }
}

fn shifted(number: &Linear, by: &Linear) -> Option<Linear> {
    let by = by.value().filter(|by| *by < 32).map(|bits| (1u32 << bits, by.relies))?;
    number.times(&Linear { constant: by.0, relies: by.1, ..Linear::default() })
}

/// Learns that a condition has a value. Returns whether all of it was understood: whether what was learnt is equivalent.
pub(super) fn assume(knowledge: &mut Knowledge, condition: &Value, is: bool) -> bool {
    let Value::Condition(condition) = condition else { return false };
    match (&**condition, is) {
        (Condition::And(a, b), true) | (Condition::Or(a, b), false) => {
            let first = assume(knowledge, a, is);
            assume(knowledge, b, is) && first
        }
        (Condition::Not(a), _) => assume(knowledge, a, !is),
        (Condition::Compare { op, left, right, signed }, _) => {
            let integers = knowledge.integer(left).zip(knowledge.integer(right));
            let Some((left, right)) = integers else { return false };
            if *signed && !(is_positive(knowledge, &left) && is_positive(knowledge, &right)) {
                return false;
            }
            compared(knowledge, (*op, is), &left, &right)
        }
        _ => false,
    }
}

/// Whether an integer is the same number as an `i32`.
pub(super) fn is_positive(knowledge: &Knowledge, number: &Integer) -> bool {
    knowledge.range(number).is_some_and(|([_, max], _)| max <= i128::from(i32::MAX))
}

/// Whether a condition has the same value for all items, which value, and what that relies on.
pub(super) fn decided(knowledge: &Knowledge, condition: &Value) -> Option<(bool, Scalars)> {
    use BinaryOperator as Op;
    let Value::Condition(condition) = condition else { return None };
    let (op, left, right, signed) = match &**condition {
        Condition::Not(inner) => return decided(knowledge, inner).map(|(is, relies)| (!is, relies)),
        Condition::Compare { op, left, right, signed } => (*op, left, right, *signed),
        _ => return None,
    };
    let (left, right) = (knowledge.integer(left)?, knowledge.integer(right)?);
    if signed && !(is_positive(knowledge, &left) && is_positive(knowledge, &right)) {
        return None;
    }
    let ([least, greatest], relies) = knowledge.range(&left.plus_times(&right, -1))?;
    let is = match op {
        Op::Less | Op::GreaterEqual if greatest < 0 || least >= 0 => (greatest < 0) == (op == Op::Less),
        Op::LessEqual | Op::Greater if greatest <= 0 || least > 0 => (greatest <= 0) == (op == Op::LessEqual),
        _ => return None,
    };
    Some((is, relies | left.relies | right.relies))
}

fn compared(
    knowledge: &mut Knowledge,
    (op, is): (BinaryOperator, bool),
    left: &Integer,
    right: &Integer,
) -> bool {
    use BinaryOperator as Op;
    let one = Integer::constant(1);
    let (above, below) = (left.plus_times(right, -1), right.plus_times(left, -1));
    match (op, is) {
        (Op::Less, true) | (Op::GreaterEqual, false) => knowledge.at_most_zero(&above.plus_times(&one, 1)),
        (Op::LessEqual, true) | (Op::Greater, false) => knowledge.at_most_zero(&above),
        (Op::Greater, true) | (Op::LessEqual, false) => knowledge.at_most_zero(&below.plus_times(&one, 1)),
        (Op::GreaterEqual, true) | (Op::Less, false) => knowledge.at_most_zero(&below),
        (Op::Equal, true) | (Op::NotEqual, false) => {
            knowledge.at_most_zero(&above) & knowledge.at_most_zero(&below)
        }
        _ => false,
    }
}
