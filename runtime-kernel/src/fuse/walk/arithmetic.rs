//! Operations whose results are not linear: quotients, remainders, and numbers with known bounds only.

use naga::{BinaryOperator, MathFunction, Scalar, ScalarKind};

use super::value::{Value, assume, binary, decided, is_positive};
use super::{Quotient, Walk};
use crate::fuse::linear::{Integer, Linear, Scalars, Variable};

/// The greatest `u32`.
const MAX: i128 = u32::MAX as i128;

/// What is asked of a division.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Quotient,
    Remainder,
}

impl Walk<'_> {
    /// The number of a new variable.
    pub(super) fn number(&mut self) -> u32 {
        *self.variables += 1;
        *self.variables
    }

    /// A new variable from 0 to a number.
    fn up_to(&mut self, max: i128, relies: Scalars) -> (Variable, Linear) {
        let variable = Variable::Unknown(self.number());
        self.bound_by(variable, max, relies);
        (variable, Linear::variable(variable, 1).relying(relies))
    }

    fn bound_by(&mut self, variable: Variable, max: i128, relies: Scalars) {
        self.knowledge.maxima.push((variable, max, relies));
        self.shared = None;
    }

    /// Learns that one integer is at most another.
    fn learn_order(&mut self, smaller: &Integer, larger: &Integer) {
        self.knowledge.at_most_zero(&smaller.plus_times(larger, -1));
        self.shared = None;
    }

    /// Any value of a type.
    pub(super) fn any_of(&mut self, scalar: Scalar) -> Value {
        match is_word(scalar) {
            true => Value::Number(self.up_to(MAX, 0).1),
            false => Value::Unknown,
        }
    }

    /// The result of an operation on two values with components of a type.
    pub(super) fn binary(
        &mut self,
        op: BinaryOperator,
        [left, right]: &[Value; 2],
        scalar: Option<Scalar>,
    ) -> Value {
        if let Some(count) = components(&[left, right]) {
            let part = |at| [left, right].map(|value| component(value, at));
            return Value::Parts((0..count).map(|at| self.binary(op, &part(at), scalar)).collect());
        }
        let signed = scalar.is_some_and(|scalar| scalar.kind == ScalarKind::Sint);
        match binary(op, left, right, signed) {
            Value::Unknown => scalar
                .filter(|scalar| is_word(*scalar))
                .and_then(|_| self.divided(op, [left, right], signed))
                .map_or(Value::Unknown, Value::Number),
            known => known,
        }
    }

    /// Quotients and remainders, also those that are written as shifts and masks.
    fn divided(&mut self, op: BinaryOperator, [left, right]: [&Value; 2], signed: bool) -> Option<Linear> {
        use BinaryOperator as Op;
        let constant =
            |value: &Value| value.number().and_then(|number| Some((number.value()?, number.relies)));
        let (left, (divisor, relies), wanted) = match (op, constant(left), constant(right)) {
            (Op::Divide, _, Some((by, on))) => (left, (by.into(), on), Wanted::Quotient),
            (Op::Modulo, _, Some((by, on))) => (left, (by.into(), on), Wanted::Remainder),
            (Op::ShiftRight, _, Some((by, on))) if by < 32 => (left, (1i128 << by, on), Wanted::Quotient),
            (Op::And, _, Some((mask, on))) if is_mask(mask) => {
                (left, (i128::from(mask) + 1, on), Wanted::Remainder)
            }
            (Op::And, Some((mask, on)), _) if is_mask(mask) => {
                (right, (i128::from(mask) + 1, on), Wanted::Remainder)
            }
            _ => return None,
        };
        // A negative divisor, or one that is 0.
        if divisor == 0 || signed && divisor > i128::from(i32::MAX) + 1 {
            return None;
        }
        if let Some(known) = left.number().and_then(|number| self.quotient(number, (divisor, relies), signed))
        {
            return match wanted {
                Wanted::Quotient => Some(known),
                Wanted::Remainder => Some(left.number()?.plus_times(&known, negative(divisor))),
            };
        }
        match wanted {
            Wanted::Remainder if !signed || op == Op::And => Some(self.up_to(divisor - 1, relies).1),
            Wanted::Quotient if !signed => Some(self.up_to(MAX / divisor, relies).1),
            _ => None,
        }
    }

    /// The quotient of a number that provably does not wrap around.
    fn quotient(
        &mut self,
        number: &Linear,
        (divisor, on_divisor): (i128, Scalars),
        signed: bool,
    ) -> Option<Linear> {
        let integer = self.knowledge.integer(number)?;
        if signed && !is_positive(&self.knowledge, &integer) {
            return None;
        }
        let (mut whole, mut rest) = split(&integer, divisor);
        if self.knowledge.range(&rest).is_none_or(|([least, _], _)| least < 0) {
            (whole, rest) = (Linear::default(), integer.clone());
        }
        let ([_, max], on_rest) = self.knowledge.range(&rest)?;
        let relies = integer.relies | on_rest | on_divisor;
        let whole = whole.relying(relies);
        if max < divisor {
            return Some(whole);
        }
        let variable = self.quotient_variable(rest, divisor, (max / divisor, relies));
        Some(whole.plus(&Linear::variable(variable, 1)))
    }

    /// The variable of a quotient, which is at most a number.
    fn quotient_variable(
        &mut self,
        dividend: Integer,
        divisor: i128,
        (max, relies): (i128, Scalars),
    ) -> Variable {
        let is_same = |known: &&Quotient| (&known.dividend, known.divisor) == (&dividend, divisor);
        let known = self.quotients.iter().find(is_same).map(|known| (known.quotient, known.remainder));
        let is_new = known.is_none();
        let (quotient, remainder) =
            known.unwrap_or_else(|| (Variable::Unknown(self.number()), Variable::Unknown(self.number())));
        if !self.knowledge.maxima.iter().any(|(known, ..)| *known == quotient) {
            self.bound_by(quotient, max, relies);
            self.bound_by(remainder, divisor - 1, relies);
            // The remainder is from 0 to divisor − 1.
            let product = Integer { relies, ..Integer::default() };
            let product = product.plus_times(&Integer::variable(quotient, 1), divisor);
            self.learn_order(&product, &dividend);
            self.learn_order(&dividend, &product.plus_times(&Integer::constant(divisor - 1), 1));
        }
        if is_new {
            self.quotients.push(Quotient { dividend, divisor, quotient, remainder });
        }
        quotient
    }

    /// An integer with remainders in place of what they are made of, where that is shorter.
    pub(super) fn with_remainders(&self, integer: Integer) -> Integer {
        self.quotients.iter().fold(integer, |integer, known| {
            let factor = integer.terms.iter().find(|(own, _)| *own == known.quotient);
            let Some(&(_, factor)) = factor.filter(|(_, factor)| factor % known.divisor == 0) else {
                return integer;
            };
            let times = -factor / known.divisor;
            let shorter = integer
                .plus_times(&known.dividend, -times)
                .plus_times(&Integer::variable(known.quotient, 1), -factor)
                .plus_times(&Integer::variable(known.remainder, 1), times);
            if shorter.terms.len() <= integer.terms.len() { shorter } else { integer }
        })
    }

    /// Minima, maxima and clamps.
    pub(super) fn math(&mut self, fun: MathFunction, operands: &[Value; 3], scalar: Option<Scalar>) -> Value {
        let [value, first, second] = operands;
        let used = if fun == MathFunction::Clamp { 3 } else { 2 };
        let all = operands.each_ref();
        if let Some(count) = components(&all[..used]) {
            let part = |at| all.map(|value| component(value, at));
            return Value::Parts((0..count).map(|at| self.math(fun, &part(at), scalar)).collect());
        }
        let Some(scalar) = scalar.filter(|scalar| is_word(*scalar)) else { return Value::Unknown };
        let signed = scalar.kind == ScalarKind::Sint;
        match fun {
            MathFunction::Min => self.extreme([value, first], true, signed),
            MathFunction::Max => self.extreme([value, first], false, signed),
            MathFunction::Clamp => {
                let above = self.extreme([value, first], false, signed);
                self.extreme([&above, second], true, signed)
            }
            _ => Value::Unknown,
        }
    }

    /// The smaller or the larger of two numbers.
    fn extreme(&mut self, values: [&Value; 2], is_min: bool, signed: bool) -> Value {
        let integers = values.map(|value| self.knowledge.integer(value.number()?));
        if let ([Some(one), Some(two)], [Some(a), Some(b)]) = (&integers, values.map(Value::number)) {
            let are_positive = [one, two].iter().all(|integer| is_positive(&self.knowledge, integer));
            let range = self.knowledge.range(&one.plus_times(two, -1));
            if let Some(([least, greatest], relies)) = range.filter(|_| !signed || are_positive) {
                let relies = relies | one.relies | two.relies;
                if least >= 0 || greatest <= 0 {
                    let chosen = if (greatest <= 0) == is_min { a } else { b };
                    return Value::Number(chosen.clone().relying(relies));
                }
            }
            if signed && !are_positive {
                return Value::Unknown;
            }
        } else if signed {
            return Value::Unknown;
        }
        let known: Vec<_> = integers.into_iter().flatten().collect();
        let ranges: Vec<_> = known.iter().filter_map(|integer| self.knowledge.range(integer)).collect();
        let relies = known.iter().map(|integer| integer.relies).chain(ranges.iter().map(|(_, on)| *on));
        let relies = relies.fold(0, |all, on| all | on);
        let maxima = ranges.iter().map(|([_, max], _)| *max);
        let max = match is_min {
            true => maxima.min().unwrap_or(MAX),
            false => maxima.max().filter(|_| ranges.len() == 2).unwrap_or(MAX),
        };
        let (variable, result) = self.up_to(max, relies);
        let own = Integer::variable(variable, 1);
        for integer in &known {
            match is_min {
                true => self.learn_order(&own, integer),
                false => self.learn_order(integer, &own),
            }
        }
        Value::Number(result)
    }

    /// One of two values, chosen by a condition.
    pub(super) fn select(&mut self, operands: &[Value; 3], scalar: Option<Scalar>) -> Value {
        let [condition, accept, reject] = operands;
        let all = operands.each_ref();
        if let Some(count) = components(&all) {
            let part = |at| all.map(|value| component(value, at));
            return Value::Parts((0..count).map(|at| self.select(&part(at), scalar)).collect());
        }
        if accept == reject {
            return accept.clone();
        }
        if let Some((is, relies)) = decided(&self.knowledge, condition) {
            let chosen = if is { accept } else { reject };
            return match chosen {
                Value::Number(number) => Value::Number(number.clone().relying(relies)),
                other => other.clone(),
            };
        }
        let Some(scalar) = scalar.filter(|scalar| is_word(*scalar)) else { return Value::Unknown };
        let bounds = [(accept, true), (reject, false)].map(|(value, is)| {
            let mut knowledge = self.knowledge.clone();
            assume(&mut knowledge, condition, is);
            let integer = knowledge.integer(value.number()?)?;
            let ([_, max], relies) = knowledge.range(&integer)?;
            Some((max, relies | integer.relies))
        });
        match bounds {
            [Some((one, on_one)), Some((two, on_two))] => {
                Value::Number(self.up_to(one.max(two), on_one | on_two).1)
            }
            _ => self.any_of(scalar),
        }
    }
}

const fn is_word(scalar: Scalar) -> bool {
    matches!(scalar.kind, ScalarKind::Sint | ScalarKind::Uint) && scalar.width == 4
}

/// Whether a number is one less than a power of two.
const fn is_mask(mask: u32) -> bool {
    mask & mask.wrapping_add(1) == 0
}

/// The factor that subtracts a multiple modulo 2³².
fn negative(factor: i128) -> u32 {
    u32::try_from(factor).map_or(0, u32::wrapping_neg)
}

/// A multiple of a divisor, divided by it, and what is left of a number.
fn split(number: &Integer, divisor: i128) -> (Linear, Integer) {
    let mut whole = Linear::default();
    let mut rest = Integer::constant(number.constant.rem_euclid(divisor));
    let word = |number: i128| u32::try_from(number.rem_euclid(MAX + 1)).unwrap_or(0);
    whole.constant = word(number.constant.div_euclid(divisor));
    for &(variable, factor) in &number.terms {
        match factor % divisor {
            0 => whole = whole.plus_times(&Linear::variable(variable, 1), word(factor / divisor)),
            _ => rest = rest.plus_times(&Integer::variable(variable, 1), factor),
        }
    }
    (whole, rest)
}

/// The number of components, if one of the values has more than one.
fn components(values: &[&Value]) -> Option<usize> {
    values.iter().find_map(|value| match value {
        Value::Parts(parts) => Some(parts.len()),
        _ => None,
    })
}

fn component(value: &Value, at: usize) -> Value {
    match value {
        Value::Parts(_) => value.part(at),
        whole => whole.clone(),
    }
}
