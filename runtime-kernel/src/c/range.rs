//! What is known of an index: where it proves an access in range, none is checked.

use naga::proc::IndexableLength;
use naga::{
    BinaryOperator, Binding, BuiltIn, Expression, GlobalVariable, Handle, Literal, MathFunction, Scalar,
    ScalarKind, TypeInner,
};

use super::plan::Frame;

/// What an index must be less than.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Constant(u32),
    /// The length of the runtime-sized array of a storage buffer; of `None`, one that no variable is known for.
    Runtime(Option<Handle<GlobalVariable>>),
}

/// Chains of operators longer than this prove nothing.
const DEPTH: u32 = 16;

/// What `index` (or else the constant `known`) has to be checked against; `None` if it is in range for certain.
pub(crate) fn limit(
    frame: Frame<'_>,
    base: Handle<Expression>,
    index: Option<Handle<Expression>>,
    known: u32,
) -> Option<Limit> {
    let length = match *frame.pointee(base) {
        TypeInner::Vector { size, .. } => Limit::Constant(size as u32),
        TypeInner::ValuePointer { size: Some(size), .. } => Limit::Constant(size as u32),
        TypeInner::Matrix { columns, .. } => Limit::Constant(columns as u32),
        TypeInner::Array { size, .. } => match size.resolve(frame.module.to_ctx()) {
            Ok(IndexableLength::Known(length)) => Limit::Constant(length),
            _ => Limit::Runtime(root(frame, base)),
        },
        _ => return None,
    };
    let greatest = match index {
        Some(index) => upper(frame, index, 0),
        None => Some(u64::from(known)),
    };
    match (length, greatest) {
        (Limit::Constant(length), Some(greatest)) if greatest < u64::from(length) => None,
        _ => Some(length),
    }
}

/// The variable that an access chain starts from.
pub(crate) fn root(frame: Frame<'_>, mut pointer: Handle<Expression>) -> Option<Handle<GlobalVariable>> {
    loop {
        match frame.function.expressions[pointer] {
            Expression::GlobalVariable(variable) => return Some(variable),
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => pointer = base,
            _ => return None,
        }
    }
}

/// The greatest value that an integer, which is then not negative, can have.
pub(crate) fn upper(frame: Frame<'_>, expression: Handle<Expression>, depth: u32) -> Option<u64> {
    if depth > DEPTH {
        return None;
    }
    let expressions = &frame.function.expressions;
    match expressions[expression] {
        Expression::Literal(literal) => of_literal(literal),
        Expression::Constant(constant) => {
            match frame.module.global_expressions[frame.module.constants[constant].init] {
                Expression::Literal(literal) => of_literal(literal),
                Expression::ZeroValue(_) => Some(0),
                _ => None,
            }
        }
        Expression::ZeroValue(_) => Some(0),
        Expression::Binary { op, left, right } => of_binary(frame, op, (left, right), depth + 1),
        Expression::Select { accept, reject, .. } => {
            Some(upper(frame, accept, depth + 1)?.max(upper(frame, reject, depth + 1)?))
        }
        Expression::Math { fun: MathFunction::Min, arg, arg1: Some(arg1), .. } if is_unsigned(frame, arg) => {
            match (upper(frame, arg, depth + 1), upper(frame, arg1, depth + 1)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        Expression::Math { fun: MathFunction::Clamp, arg, arg2: Some(high), .. }
            if is_unsigned(frame, arg) =>
        {
            upper(frame, high, depth + 1)
        }
        Expression::As { expr, kind: ScalarKind::Uint | ScalarKind::Sint, .. } => match *frame.inner(expr) {
            TypeInner::Scalar(Scalar { kind: ScalarKind::Bool, .. }) => Some(1),
            TypeInner::Scalar(Scalar { kind: ScalarKind::Uint | ScalarKind::Sint, .. }) => {
                upper(frame, expr, depth + 1).filter(|greatest| i32::try_from(*greatest).is_ok())
            }
            _ => None,
        },
        Expression::Load { .. } => upper(frame, frame.bounds.above(expression)?, depth + 1)?.checked_sub(1),
        Expression::AccessIndex { base, index } => of_built_in(frame, base, Some(index)),
        Expression::FunctionArgument(_) => of_built_in(frame, expression, None),
        _ => None,
    }
}

fn of_literal(literal: Literal) -> Option<u64> {
    match literal {
        Literal::U32(value) => Some(u64::from(value)),
        Literal::I32(value) => u64::try_from(value).ok(),
        Literal::U64(value) => Some(value),
        Literal::I64(value) => u64::try_from(value).ok(),
        _ => None,
    }
}

fn is_unsigned(frame: Frame<'_>, expression: Handle<Expression>) -> bool {
    matches!(frame.inner(expression), TypeInner::Scalar(Scalar { kind: ScalarKind::Uint, .. }))
}

fn of_binary(
    frame: Frame<'_>,
    operator: BinaryOperator,
    (left, right): (Handle<Expression>, Handle<Expression>),
    depth: u32,
) -> Option<u64> {
    let TypeInner::Scalar(scalar) = *frame.inner(left) else { return None };
    let (a, b) = (upper(frame, left, depth), upper(frame, right, depth));
    let constant = match frame.function.expressions[right] {
        Expression::Literal(literal) => of_literal(literal),
        Expression::Constant(_) => b,
        _ => None,
    };
    let unsigned = scalar.kind == ScalarKind::Uint;
    let greatest = match scalar {
        Scalar::U32 => u64::from(u32::MAX),
        Scalar::I32 => 0x7fff_ffff,
        _ => return None,
    };
    match operator {
        BinaryOperator::And => match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        BinaryOperator::Modulo if unsigned || a.is_some() => constant?.checked_sub(1),
        BinaryOperator::Divide if unsigned || a.is_some() => a.unwrap_or(greatest).checked_div(constant?),
        BinaryOperator::ShiftRight if unsigned || a.is_some() => {
            a.unwrap_or(greatest).checked_shr(constant?.try_into().ok()?)
        }
        BinaryOperator::Add => a?.checked_add(b?).filter(|sum| *sum <= greatest),
        BinaryOperator::Multiply => a?.checked_mul(b?).filter(|product| *product <= greatest),
        _ => None,
    }
}

/// The greatest value of an invocation's place in its work-group.
fn of_built_in(frame: Frame<'_>, expression: Handle<Expression>, component: Option<u32>) -> Option<u64> {
    let size = frame.group_size?;
    let greatest = |built_in: BuiltIn, component: Option<u32>| match (built_in, component) {
        (BuiltIn::LocalInvocationId, Some(axis)) => {
            Some(u64::from(*size.get(axis as usize)?).saturating_sub(1))
        }
        (BuiltIn::LocalInvocationIndex, None) => {
            Some(size.iter().map(|extent| u64::from(*extent)).product::<u64>().saturating_sub(1))
        }
        _ => None,
    };
    let argument = |index: u32| &frame.function.arguments[index as usize];
    match frame.function.expressions[expression] {
        Expression::FunctionArgument(index) => match (&argument(index).binding, component) {
            (Some(Binding::BuiltIn(built_in)), component) => greatest(*built_in, component),
            (None, Some(member)) => greatest(member_of(frame, index, member)?, None),
            _ => None,
        },
        Expression::AccessIndex { base, index: member } => match frame.function.expressions[base] {
            Expression::FunctionArgument(index) if argument(index).binding.is_none() => {
                greatest(member_of(frame, index, member)?, component)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The built-in value that a member of a structure of arguments is.
fn member_of(frame: Frame<'_>, argument: u32, member: u32) -> Option<BuiltIn> {
    match &frame.module.types[frame.function.arguments[argument as usize].ty].inner {
        TypeInner::Struct { members, .. } => match members.get(member as usize)?.binding {
            Some(Binding::BuiltIn(built_in)) => Some(built_in),
            _ => None,
        },
        _ => None,
    }
}
