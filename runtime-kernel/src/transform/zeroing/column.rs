//! The values of an expression in many activations, computed for all of them at once.

use std::rc::Rc;

use naga::{BinaryOperator as Op, Literal, ScalarKind};

use crate::analysis::proof::constant::fold;

/// The values of an expression, by activation.
#[derive(Clone, Debug)]
pub(super) enum Column {
    Same(Literal),
    /// The bits of each.
    Each(Kind, Rc<[u32]>),
}

/// The types of values that differ between activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 0 or 1.
    Bool,
    U32,
    I32,
}

impl Kind {
    fn literal(self, bits: u32) -> Literal {
        match self {
            Self::Bool => Literal::Bool(bits != 0),
            Self::U32 => Literal::U32(bits),
            Self::I32 => Literal::I32(bits.cast_signed()),
        }
    }
}

fn bits_of(literal: Literal) -> Option<(Kind, u32)> {
    match literal {
        Literal::Bool(truth) => Some((Kind::Bool, truth.into())),
        Literal::U32(bits) => Some((Kind::U32, bits)),
        Literal::I32(value) => Some((Kind::I32, value.cast_unsigned())),
        _ => None,
    }
}

impl Column {
    pub(super) fn number(value: u32) -> Self {
        Self::Same(Literal::U32(value))
    }

    /// The number of stored values; 0 if all are equal.
    pub(super) fn stored(&self) -> usize {
        match self {
            Self::Same(_) => 0,
            Self::Each(_, bits) => bits.len(),
        }
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Same(literal) => bits_of(*literal).map(|(kind, _)| kind),
            Self::Each(kind, _) => Some(*kind),
        }
    }

    fn literal(&self, place: usize) -> Literal {
        match self {
            Self::Same(literal) => *literal,
            Self::Each(kind, bits) => kind.literal(bits[place]),
        }
    }

    /// The bits of one value.
    pub(super) fn bits(&self, place: usize) -> Option<u32> {
        match self {
            Self::Same(literal) => bits_of(*literal).map(|(_, bits)| bits),
            Self::Each(_, bits) => bits.get(place).copied(),
        }
    }

    /// The values for which `truths` equals `wanted`.
    pub(super) fn keep(&self, truths: &[u32], wanted: bool) -> Self {
        match self {
            Self::Same(_) => self.clone(),
            Self::Each(kind, bits) => Self::Each(*kind, keep(bits, truths, wanted)),
        }
    }

    /// The values of several columns, each given with its length.
    pub(super) fn joined(parts: &[(&Self, usize)]) -> Option<Self> {
        let (first, _) = parts.first()?;
        if let Self::Same(value) = first
            && parts.iter().all(|(part, _)| matches!(part, Self::Same(other) if other == value))
        {
            return Some((*first).clone());
        }
        let kind = first.kind()?;
        let mut all = Vec::with_capacity(parts.iter().map(|(_, count)| count).sum());
        for (part, count) in parts {
            match part {
                _ if part.kind() != Some(kind) => return None,
                Self::Same(_) => all.resize(all.len() + count, part.bits(0)?),
                Self::Each(_, bits) => all.extend_from_slice(bits),
            }
        }
        Some(Self::Each(kind, all.into()))
    }

    /// Converts integers to another signedness.
    pub(super) fn cast(&self, to: ScalarKind) -> Option<Self> {
        let to = match to {
            ScalarKind::Uint => Kind::U32,
            ScalarKind::Sint => Kind::I32,
            _ => return None,
        };
        match self {
            Self::Same(literal) => bits_of(*literal).map(|(_, bits)| Self::Same(to.literal(bits))),
            Self::Each(_, bits) => Some(Self::Each(to, Rc::clone(bits))),
        }
    }

    /// `!value` for booleans, `~value` for integers.
    pub(super) fn inverted(&self) -> Option<Self> {
        let one = |kind, bits: u32| if kind == Kind::Bool { bits ^ 1 } else { !bits };
        match self {
            Self::Same(literal) => {
                bits_of(*literal).map(|(kind, bits)| Self::Same(kind.literal(one(kind, bits))))
            }
            Self::Each(kind, bits) => {
                Some(Self::Each(*kind, bits.iter().map(|&bits| one(*kind, bits)).collect()))
            }
        }
    }

    /// `accept` where this is true, `reject` elsewhere.
    pub(super) fn select(&self, accept: &Self, reject: &Self) -> Option<Self> {
        let kind = accept.kind().filter(|kind| reject.kind() == Some(*kind))?;
        let Self::Each(Kind::Bool, truths) = self else { return None };
        let chosen = |(place, truth): (usize, &u32)| if *truth == 0 { reject } else { accept }.bits(place);
        Some(Self::Each(kind, truths.iter().enumerate().map(chosen).collect::<Option<_>>()?))
    }

    /// The minimum or maximum of unsigned integers.
    pub(super) fn extreme(&self, other: &Self, larger: bool) -> Option<Self> {
        if (self.kind(), other.kind()) != (Some(Kind::U32), Some(Kind::U32)) {
            return None;
        }
        let choose = if larger { u32::max } else { u32::min };
        zip(Kind::U32, self, other, choose)
    }

    /// The result of an operation.
    pub(super) fn operate(op: Op, left: &Self, right: &Self) -> Option<Self> {
        match (left, right) {
            (Self::Same(a), Self::Same(b)) => operate(op, *a, *b).map(Self::Same),
            _ if (left.kind(), right.kind()) == (Some(Kind::U32), Some(Kind::U32)) => words(op, left, right),
            _ => {
                let values = |place| operate(op, left.literal(place), right.literal(place)).and_then(bits_of);
                let all = 0..left.stored().max(right.stored());
                let all = all.map(values).collect::<Option<Vec<_>>>()?;
                let kind = all.first()?.0;
                Some(Self::Each(kind, all.iter().map(|(_, bits)| *bits).collect()))
            }
        }
    }
}

/// The elements of a list for which `truths` equals `wanted`.
pub(super) fn keep(list: &[u32], truths: &[u32], wanted: bool) -> Rc<[u32]> {
    let pairs = list.iter().zip(truths).filter(|(_, truth)| (**truth != 0) == wanted);
    pairs.map(|(value, _)| *value).collect()
}

/// Applies `function` to the bits of two columns.
fn zip(kind: Kind, left: &Column, right: &Column, function: impl Fn(u32, u32) -> u32) -> Option<Column> {
    let bits = match (left, right) {
        (Column::Each(_, left), Column::Each(_, right)) => {
            left.iter().zip(&right[..]).map(|(&a, &b)| function(a, b)).collect()
        }
        (Column::Each(_, left), Column::Same(right)) => {
            let (_, b) = bits_of(*right)?;
            left.iter().map(|&a| function(a, b)).collect()
        }
        (Column::Same(left), Column::Each(_, right)) => {
            let (_, a) = bits_of(*left)?;
            right.iter().map(|&b| function(a, b)).collect()
        }
        (Column::Same(left), Column::Same(right)) => {
            return Some(Column::Same(kind.literal(function(bits_of(*left)?.1, bits_of(*right)?.1))));
        }
    };
    Some(Column::Each(kind, bits))
}

/// An operation on unsigned integers that differ between activations: equal to [`operate`] on each.
fn words(op: Op, left: &Column, right: &Column) -> Option<Column> {
    let number = Kind::U32;
    match op {
        Op::Add => zip(number, left, right, u32::wrapping_add),
        Op::Subtract => zip(number, left, right, u32::wrapping_sub),
        Op::Multiply => zip(number, left, right, u32::wrapping_mul),
        Op::Divide | Op::Modulo => divide(op == Op::Modulo, left, right),
        Op::ShiftLeft => zip(number, left, right, |a, b| a << (b & 31)),
        Op::ShiftRight => zip(number, left, right, |a, b| a >> (b & 31)),
        Op::And => zip(number, left, right, |a, b| a & b),
        Op::InclusiveOr => zip(number, left, right, |a, b| a | b),
        Op::ExclusiveOr => zip(number, left, right, |a, b| a ^ b),
        Op::Less => zip(Kind::Bool, left, right, |a, b| (a < b).into()),
        Op::LessEqual => zip(Kind::Bool, left, right, |a, b| (a <= b).into()),
        Op::Greater => zip(Kind::Bool, left, right, |a, b| (a > b).into()),
        Op::GreaterEqual => zip(Kind::Bool, left, right, |a, b| (a >= b).into()),
        Op::Equal => zip(Kind::Bool, left, right, |a, b| (a == b).into()),
        Op::NotEqual => zip(Kind::Bool, left, right, |a, b| (a != b).into()),
        _ => None,
    }
}

/// A quotient or remainder; `None` if any divisor is 0.
fn divide(rest: bool, left: &Column, right: &Column) -> Option<Column> {
    match right {
        // Divisions are slow, and most divisors are powers of two.
        Column::Same(Literal::U32(divisor)) if divisor.is_power_of_two() => {
            let (mask, shift) = (divisor - 1, divisor.trailing_zeros());
            if rest {
                zip(Kind::U32, left, right, |a, _| a & mask)
            } else {
                zip(Kind::U32, left, right, |a, _| a >> shift)
            }
        }
        Column::Same(Literal::U32(0)) => None,
        Column::Each(_, divisors) if divisors.contains(&0) => None,
        _ if rest => zip(Kind::U32, left, right, |a, b| a % b),
        _ => zip(Kind::U32, left, right, |a, b| a / b),
    }
}

fn operate(op: Op, left: Literal, right: Literal) -> Option<Literal> {
    match (op, left, right) {
        (Op::And, Literal::U32(a), Literal::U32(b)) => Some(Literal::U32(a & b)),
        (Op::InclusiveOr, Literal::U32(a), Literal::U32(b)) => Some(Literal::U32(a | b)),
        (Op::ExclusiveOr, Literal::U32(a), Literal::U32(b)) => Some(Literal::U32(a ^ b)),
        (Op::Modulo, Literal::U32(a), Literal::U32(b)) => a.checked_rem(b).map(Literal::U32),
        (Op::LogicalAnd | Op::And, Literal::Bool(a), Literal::Bool(b)) => Some(Literal::Bool(a && b)),
        (Op::LogicalOr | Op::InclusiveOr, Literal::Bool(a), Literal::Bool(b)) => Some(Literal::Bool(a || b)),
        _ => fold(op, left, right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [Op; 18] = [
        Op::Add,
        Op::Subtract,
        Op::Multiply,
        Op::Divide,
        Op::Modulo,
        Op::Equal,
        Op::NotEqual,
        Op::Less,
        Op::LessEqual,
        Op::Greater,
        Op::GreaterEqual,
        Op::And,
        Op::ExclusiveOr,
        Op::InclusiveOr,
        Op::LogicalAnd,
        Op::LogicalOr,
        Op::ShiftLeft,
        Op::ShiftRight,
    ];
    const EDGES: [u32; 12] = [0, 1, 2, 3, 8, 31, 32, 33, 100, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

    /// The column has the given values, or neither exists.
    fn agree(column: Option<&Column>, values: &[Option<Literal>]) -> bool {
        let Some(values) = values.iter().copied().collect::<Option<Vec<_>>>() else {
            return column.is_none();
        };
        column.is_some_and(|column| {
            values.iter().enumerate().all(|(place, value)| column.literal(place) == *value)
        })
    }

    #[test]
    fn operations_on_columns_equal_operations_on_single_values() {
        for kind in [Kind::Bool, Kind::U32, Kind::I32] {
            let edges: Rc<[u32]> =
                EDGES.iter().map(|edge| if kind == Kind::Bool { edge & 1 } else { *edge }).collect();
            let each = Column::Each(kind, Rc::clone(&edges));
            for (op, &edge) in OPS.iter().flat_map(|op| edges.iter().map(move |edge| (*op, edge))) {
                let one = kind.literal(edge);
                let values = |f: &dyn Fn(Literal) -> Option<Literal>| {
                    edges.iter().map(|edge| f(kind.literal(*edge))).collect::<Vec<_>>()
                };
                let right = Column::operate(op, &each, &Column::Same(one));
                assert!(agree(right.as_ref(), &values(&|value| operate(op, value, one))), "{op:?} {one:?}");
                let left = Column::operate(op, &Column::Same(one), &each);
                assert!(agree(left.as_ref(), &values(&|value| operate(op, one, value))), "{one:?} {op:?}");
                let turned: Rc<[u32]> = edges.iter().map(|_| edge).collect();
                let both = Column::operate(op, &each, &Column::Each(kind, turned));
                assert!(
                    agree(both.as_ref(), &values(&|value| operate(op, value, one))),
                    "{op:?} {one:?} each"
                );
            }
        }
    }
}
