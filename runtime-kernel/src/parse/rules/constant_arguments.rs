//! Arguments of built-in functions that are invalid as constants, also where the other arguments are known only when the
//! kernel runs (§builtin-functions: "it is a shader-creation error if …").

use half::f16;
use naga::common::wgsl::TryToWgsl;
use naga::{
    Arena, Block, Expression, Function, GatherMode, Literal, MathFunction, Module, Span, Statement, TypeInner,
};

use super::Violation;
use crate::ir::{Value, blocks, resolved};
use crate::parse::constants;
use crate::parse::templates::shortened;

/// As many components as a matrix may have.
const MAX_COMPONENTS: usize = 16;

/// The calls whose constant arguments are invalid.
pub(super) fn invalid(module: &Module, code: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut is_suspect = has_suspect_constant(code);
    is_suspect |= infinite(&module.global_expressions, code, &mut found);
    for function in blocks::functions(module) {
        is_suspect |= infinite(&function.expressions, code, &mut found);
        let arguments = Arguments { module, function };
        let mut has_subgroups = false;
        for (handle, expression) in function.expressions.iter() {
            has_subgroups |= matches!(expression, Expression::SubgroupOperationResult { .. });
            is_suspect |= arguments.is_large_cast(expression);
            if let Some(what) = arguments.math(expression).or_else(|| arguments.valueless(expression)) {
                found.push(violation(code, function.expressions.get_span(handle), &what));
            }
        }
        if has_subgroups {
            arguments.gathers(&function.body, code, &mut found);
        }
    }
    if is_suspect {
        let wrong = constants::wrong(code).into_iter();
        found.extend(wrong.map(|(place, what)| violation(code, place.into(), what)));
    }
    found
}

/// Whether a constant of the text, which may be in the module no more, has what naga evaluates although it is an error.
fn has_suspect_constant(code: &str) -> bool {
    const SUSPECTS: [&str; 5] = ["fma", "cross", "inverseSqrt", "&&", "||"];
    let is_suspect = |text: &str| SUSPECTS.iter().any(|suspect| text.contains(suspect));
    let declaration = |rest: &str| rest.split(';').next().is_some_and(is_suspect);
    is_suspect(code) && code.split("const").skip(1).any(declaration)
}

/// Adds the constants that are infinities, or no numbers: naga looks at those of 32 and 64 bits. Returns whether there are some
/// whose text may be an error: an `fma` of constants, and the largest `f16`, to which naga rounds.
fn infinite(values: &Arena<Expression>, code: &str, found: &mut Vec<Violation>) -> bool {
    let mut is_suspect = false;
    for (handle, value) in values.iter() {
        let Expression::Literal(literal) = value else { continue };
        let place = values.get_span(handle);
        let text = place.to_range().and_then(|place| code.get(place)).unwrap_or_default();
        is_suspect |= text.starts_with("fma");
        let Literal::F16(number) = literal else { continue };
        let is_largest = number.to_f32().abs() == f16::MAX.to_f32();
        if !number.is_finite() || is_largest && constants::is_beyond_half(text) {
            found.push(violation(code, place, constants::NO_HALF));
        }
        is_suspect |= is_largest;
    }
    is_suspect
}

fn violation(code: &str, place: Span, what: &str) -> Violation {
    let text = place.to_range().and_then(|range| code.get(range)).unwrap_or_default();
    let text = shortened(text.lines().next().unwrap_or_default()).trim_end();
    Violation { place, text: format!("`{text}`: {what}") }
}

struct Arguments<'a> {
    module: &'a Module,
    function: &'a Function,
}

impl Arguments<'_> {
    /// What is wrong with a call of a mathematical function.
    fn math(&self, expression: &Expression) -> Option<String> {
        let Expression::Math { fun, arg, arg1: Some(arg1), arg2, arg3 } = *expression else { return None };
        match (fun, arg2, arg3) {
            (MathFunction::Clamp, Some(high), _) => self
                .pairs(arg1, high)?
                .find(|(low, high)| low > high)
                .map(|(low, high)| format!("the lower bound {low} is above the upper bound {high}")),
            (MathFunction::SmoothStep, ..) => self
                .pairs(arg, arg1)?
                .find(|(low, high)| low == high)
                .map(|(low, _)| format!("both edges are {low}; they must differ")),
            (MathFunction::ExtractBits, Some(count), _) => self.bits(arg1, count),
            (MathFunction::InsertBits, Some(offset), Some(count)) => self.bits(offset, count),
            (MathFunction::Ldexp, ..) => {
                let most = self.largest_exponent(arg)?;
                let above = self.components(arg1)?.into_iter().find(|exponent| *exponent > most)?;
                Some(format!("the exponent {above} is above {most}, the largest one of the type"))
            }
            _ => None,
        }
    }

    /// What is wrong with a call whose arguments are all constants, which naga leaves for the time when the kernel runs.
    fn valueless(&self, expression: &Expression) -> Option<String> {
        let values = |arguments: &[Option<Value>]| -> Option<Vec<_>> {
            arguments.iter().flatten().map(|argument| self.constant(*argument)).collect()
        };
        let is_valueless = match *expression {
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                constants::is_valueless(fun.try_to_wgsl()?, &values(&[Some(arg), arg1, arg2, arg3])?)
            }
            Expression::As { expr, kind, convert: None } => {
                constants::is_valueless_cast(kind, &self.constant(expr)?)
            }
            _ => false,
        };
        is_valueless.then(|| {
            "this has no value: an argument is out of range, or the result is an infinity or no number"
                .to_owned()
        })
    }

    /// Whether the bits of a large number are taken, to which naga may have given the type `f32`.
    fn is_large_cast(&self, expression: &Expression) -> bool {
        let Expression::As { expr, convert: None, .. } = *expression else { return false };
        let is_large = |part: &f64| part.abs() > f64::from(i32::MAX);
        self.components(expr).is_some_and(|parts| parts.iter().any(is_large))
    }

    /// The value of a constant scalar, vector or matrix.
    fn constant(&self, value: Value) -> Option<constants::Value> {
        let ty = resolved(self.module, self.function, value)?;
        let (scalar, shape) = match *ty.inner_with(&self.module.types) {
            TypeInner::Scalar(scalar) => (scalar, (1, 1)),
            TypeInner::Vector { size, scalar } => (scalar, (1, size as usize)),
            TypeInner::Matrix { columns, rows, scalar } => (scalar, (columns as usize, rows as usize)),
            _ => return None,
        };
        constants::Value::of_components(scalar, shape, &self.components(value)?)
    }

    fn bits(&self, offset: Value, count: Value) -> Option<String> {
        let (offset, count) = self.pairs(offset, count)?.next()?;
        (offset + count > 32.0)
            .then(|| format!("offset {offset} and count {count} go beyond the 32 bits of the number"))
    }

    /// One more than the exponent bias of a floating-point type.
    fn largest_exponent(&self, value: Value) -> Option<f64> {
        let ty = resolved(self.module, self.function, value)?;
        match ty.inner_with(&self.module.types).scalar_width()? {
            2 => Some(16.0),
            4 => Some(128.0),
            8 => Some(1024.0),
            _ => None,
        }
    }

    fn gathers(&self, block: &Block, code: &str, found: &mut Vec<Violation>) {
        for (statement, span) in block.span_iter() {
            if let Statement::SubgroupGather { mode, .. } = statement {
                let (index, limit, is_quad) = match *mode {
                    GatherMode::Broadcast(index)
                    | GatherMode::Shuffle(index)
                    | GatherMode::ShuffleDown(index)
                    | GatherMode::ShuffleUp(index)
                    | GatherMode::ShuffleXor(index) => (index, 128.0, false),
                    GatherMode::QuadBroadcast(index) => (index, 4.0, true),
                    GatherMode::BroadcastFirst | GatherMode::QuadSwap(_) => continue,
                };
                let index = self.components(index).and_then(|components| components.first().copied());
                if let Some(index) = index.filter(|index| *index >= limit) {
                    let of = if is_quad { "quad" } else { "subgroup" };
                    found.push(violation(
                        code,
                        *span,
                        &format!("the index {index} of a {of} is not below {limit}"),
                    ));
                }
            }
            blocks::inner(statement).for_each(|inner| self.gathers(inner, code, found));
        }
    }

    /// Two constants, by component.
    fn pairs(&self, one: Value, other: Value) -> Option<impl Iterator<Item = (f64, f64)>> {
        Some(self.components(one)?.into_iter().zip(self.components(other)?))
    }

    /// The components of a constant. A `let` is none, whatever its value is.
    fn components(&self, value: Value) -> Option<Vec<f64>> {
        let mut components = Vec::new();
        let known = self.collect(&self.function.expressions, value, true, &mut components);
        (known && !components.is_empty()).then_some(components)
    }

    fn collect(&self, values: &Arena<Expression>, value: Value, is_local: bool, into: &mut Vec<f64>) -> bool {
        if is_local && self.function.named_expressions.contains_key(&value) || into.len() > MAX_COMPONENTS {
            return false;
        }
        match &values[value] {
            Expression::Literal(literal) => {
                let number = number(*literal);
                into.extend(number);
                number.is_some()
            }
            Expression::Constant(constant) => {
                let init = self.module.constants[*constant].init;
                self.collect(&self.module.global_expressions, init, false, into)
            }
            Expression::ZeroValue(ty) => match self.module.types[*ty].inner {
                TypeInner::Scalar(_) => {
                    into.push(0.0);
                    true
                }
                TypeInner::Vector { size, .. } => {
                    into.extend([0.0; MAX_COMPONENTS].iter().take(size as usize));
                    true
                }
                TypeInner::Matrix { columns, rows, .. } => {
                    into.extend([0.0; MAX_COMPONENTS].iter().take(columns as usize * rows as usize));
                    true
                }
                _ => false,
            },
            Expression::Splat { size, value } => {
                (0..*size as usize).all(|_| self.collect(values, *value, is_local, into))
            }
            Expression::Compose { components, .. } => {
                components.iter().all(|component| self.collect(values, *component, is_local, into))
            }
            _ => false,
        }
    }
}

/// As a number of 64 bits, which tells all bounds apart but large ones of 64 bits.
fn number(literal: Literal) -> Option<f64> {
    match literal {
        Literal::F64(value) | Literal::AbstractFloat(value) => Some(value),
        Literal::F32(value) => Some(f64::from(value)),
        Literal::F16(value) => Some(f64::from(value)),
        Literal::U32(value) => Some(f64::from(value)),
        Literal::I32(value) => Some(f64::from(value)),
        Literal::U64(value) => Some(value as f64),
        Literal::I64(value) | Literal::AbstractInt(value) => Some(value as f64),
        _ => None,
    }
}
