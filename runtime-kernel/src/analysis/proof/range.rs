//! Range analysis of indices: an access whose index is proven in range needs no check.

use naga::proc::IndexableLength;
use naga::{
    BinaryOperator, Binding, BuiltIn, Expression, Function, Literal, MathFunction, Module, Scalar,
    ScalarKind, TypeInner,
};

use super::bounds::{Fact, Scope};
use super::constant::literal;
use super::operation::of_binary;
use super::{FunctionContext, call};
use crate::ir::operands::operands;
use crate::ir::variables::{self, loaded};
use crate::ir::{Global, Local, Value};

/// An element of an array, a matrix or a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    /// The access expression itself.
    pub(crate) access: Value,
    pub(crate) base: Value,
    /// `None` if the index is the constant `known`.
    pub(crate) index: Option<Value>,
    pub(crate) known: u32,
}

impl Element {
    /// The element that an access expression denotes.
    pub(crate) fn of(function: &Function, access: Value) -> Option<Self> {
        match function.expressions[access] {
            Expression::Access { base, index } => Some(Self { access, base, index: Some(index), known: 0 }),
            Expression::AccessIndex { base, index } => Some(Self { access, base, index: None, known: index }),
            _ => None,
        }
    }
}

/// The exclusive upper limit of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Constant(u32),
    /// The length of a storage buffer's runtime-sized array; with `None`, of an array whose variable is unknown.
    Runtime(Option<Global>),
}

/// Longer chains of operators are not analysed.
const MAX_DEPTH: u32 = 16;

/// The limit that an element's index must be checked against; `None` if it is proven in range.
pub(crate) fn limit(context: FunctionContext<'_>, element: Element) -> Option<Limit> {
    limit_in(context, context.bounds.scope(element.access), element)
}

/// The same without relying on any condition before the element.
pub(crate) fn limit_anywhere(context: FunctionContext<'_>, element: Element) -> Option<Limit> {
    limit_in(context, Scope::default(), element)
}

/// Whether the conditions around an access are what keeps it in range, so that it must not be moved out of them.
pub(crate) fn is_proven_by_conditions(context: FunctionContext<'_>, mut pointer: Value) -> bool {
    while let Some(element) = Element::of(context.function, pointer) {
        if limit(context, element).is_none() && limit_in(context, Scope::default(), element).is_some() {
            return true;
        }
        pointer = element.base;
    }
    false
}

/// The limit of an index into `base`; `None` if it cannot be indexed.
pub(crate) fn length(context: FunctionContext<'_>, base: Value) -> Option<Limit> {
    Some(match *context.pointee(base) {
        TypeInner::Vector { size, .. } => Limit::Constant(size as u32),
        TypeInner::ValuePointer { size: Some(size), .. } => Limit::Constant(size as u32),
        TypeInner::Matrix { columns, .. } => Limit::Constant(columns as u32),
        TypeInner::Array { size, .. } => match size.resolve(context.module.to_ctx()) {
            Ok(IndexableLength::Known(length)) => Limit::Constant(length),
            _ => Limit::Runtime(root(context, base)),
        },
        _ => return None,
    })
}

fn limit_in(context: FunctionContext<'_>, scope: Scope, element: Element) -> Option<Limit> {
    let length = length(context, element.base)?;
    let certain = match length {
        Limit::Constant(length) => {
            let greatest = match element.index {
                Some(index) => upper(context, scope, index, 0),
                None => Some(u64::from(element.known)),
            };
            greatest.is_some_and(|greatest| greatest < u64::from(length))
        }
        Limit::Runtime(Some(variable)) => element.index.is_some_and(|index| {
            facts(context, scope, index).any(|fact| fact.strict && is_length(context, fact.bound, variable))
        }),
        Limit::Runtime(None) => false,
    };
    (!certain).then_some(length)
}

/// The facts about a value that hold at a program point.
pub(crate) fn facts(
    context: FunctionContext<'_>,
    scope: Scope,
    value: Value,
) -> impl Iterator<Item = Fact> + '_ {
    context.bounds.facts_of((context.module, context.function), scope, value)
}

/// Whether an expression is the `arrayLength` of a storage buffer.
fn is_length(context: FunctionContext<'_>, expression: Value, variable: Global) -> bool {
    match context.function.expressions[expression] {
        Expression::ArrayLength(array) => root(context, array) == Some(variable),
        _ => false,
    }
}

/// The global variable that an access chain starts from.
pub(crate) fn root(context: FunctionContext<'_>, pointer: Value) -> Option<Global> {
    variables::root(context.function, pointer).global()
}

/// Whether an expression depends, or may depend, on a variable.
pub(super) fn reads(function: &Function, value: Value, variable: Local, depth: u32) -> bool {
    match function.expressions[value] {
        Expression::LocalVariable(found) => found == variable,
        _ if depth > MAX_DEPTH => true,
        ref other => operands(other).any(|operand| reads(function, operand, variable, depth + 1)),
    }
}

/// The upper bound of an integer at a program point. A bound implies that the integer is not negative.
pub(crate) fn upper(
    context: FunctionContext<'_>,
    scope: Scope,
    expression: Value,
    depth: u32,
) -> Option<u64> {
    if depth > MAX_DEPTH {
        return None;
    }
    let from_facts = facts(context, scope, expression).filter_map(|fact| {
        let bound = upper(context, scope, fact.bound, depth + 4)?;
        // If it says that something is below zero, control never gets there.
        Some(bound.saturating_sub(fact.strict.into()))
    });
    from_facts.chain(structural_bound(context, scope, expression, depth)).min()
}

/// The upper bound that follows from an expression's own form.
fn structural_bound(
    context: FunctionContext<'_>,
    scope: Scope,
    expression: Value,
    depth: u32,
) -> Option<u64> {
    let upper = |expression| upper(context, scope, expression, depth + 1);
    match context.function.expressions[expression] {
        Expression::Literal(_) | Expression::Constant(_) => {
            of_literal(literal(context.module, &context.function.expressions, expression)?)
        }
        Expression::ZeroValue(_) => Some(0),
        Expression::Binary { op: BinaryOperator::Subtract, left, right } => {
            if !is_at_least(context, scope, left, right) {
                return None;
            }
            Some(upper(left)?.saturating_sub(constant_of(context, right).unwrap_or(0)))
        }
        Expression::Binary { op, left, right } => {
            use BinaryOperator as Op;
            let constant = constant_of(context, right);
            // If one side is unbounded the other is not visited: values that are used twice would otherwise take
            // exponential time.
            let a = match op {
                Op::And | Op::Modulo | Op::Divide | Op::ShiftRight | Op::Add | Op::Multiply => upper(left),
                _ => return None,
            };
            let b = if op == Op::And || a.is_some() { upper(right) } else { None };
            of_binary(context.inner(left), op, (a, b), constant)
        }
        Expression::Select { accept, reject, .. } => Some(upper(accept)?.max(upper(reject)?)),
        Expression::Math { fun: MathFunction::Min, arg, arg1: Some(arg1), .. }
            if is_unsigned(context, arg) =>
        {
            match (upper(arg), upper(arg1)) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        // If `low` is above `high`, WGSL returns `high`, but GPUs may return either.
        Expression::Math { fun: MathFunction::Clamp, arg, arg1: Some(low), arg2: Some(high), .. }
            if is_unsigned(context, arg) =>
        {
            Some(upper(low)?.max(upper(high)?))
        }
        Expression::As { expr, kind: ScalarKind::Uint | ScalarKind::Sint, .. } => {
            match *context.inner(expr) {
                TypeInner::Scalar(Scalar { kind: ScalarKind::Bool, .. }) => Some(1),
                TypeInner::Scalar(Scalar { kind: ScalarKind::Uint | ScalarKind::Sint, .. }) => {
                    upper(expr).filter(|greatest| i32::try_from(*greatest).is_ok())
                }
                _ => None,
            }
        }
        Expression::Load { .. } => context.bounds.ceiling(loaded(context.function, expression)?),
        Expression::AccessIndex { .. } | Expression::FunctionArgument(_) => of_built_in(context, expression),
        Expression::CallResult(function) => {
            let arguments = context.bounds.arguments_of(expression)?;
            let arguments: Vec<_> = arguments.iter().map(|&argument| upper(argument)).collect();
            call::greatest(context.module, function, &arguments)
        }
        _ => None,
    }
}

/// Whether conditions imply that an unsigned value is at least `least`, so that the difference is not negative.
fn is_at_least(context: FunctionContext<'_>, scope: Scope, value: Value, least: Value) -> bool {
    let source = (context.module, context.function);
    let constant = constant_of(context, least);
    is_unsigned(context, value)
        && context.bounds.facts_in(scope).any(|fact| {
            // The fact's bound must be the value, and its lower side must be `least` or known to be at least that.
            let known = || constant_of(context, fact.value).map(|below| below + u64::from(fact.strict));
            context.bounds.are_same(source, fact.bound, value)
                && (context.bounds.are_same(source, fact.value, least)
                    || constant.is_some_and(|least| known().is_some_and(|known| known >= least)))
        })
}

/// The value of a constant.
pub(crate) fn constant_of(context: FunctionContext<'_>, expression: Value) -> Option<u64> {
    match context.function.expressions[expression] {
        Expression::Literal(_) | Expression::Constant(_) => {
            structural_bound(context, Scope::default(), expression, 0)
        }
        _ => None,
    }
}

fn of_literal(literal: Literal) -> Option<u64> {
    match literal {
        Literal::U32(value) => Some(u64::from(value)),
        Literal::I32(value) => u64::try_from(value).ok(),
        Literal::U64(value) => Some(value),
        _ => None,
    }
}

fn is_unsigned(context: FunctionContext<'_>, expression: Value) -> bool {
    matches!(context.inner(expression), TypeInner::Scalar(Scalar { kind: ScalarKind::Uint, .. }))
}

/// The upper bound of an invocation's local id or index.
fn of_built_in(context: FunctionContext<'_>, expression: Value) -> Option<u64> {
    let size = context.group_size?;
    match built_in(context, expression)? {
        (BuiltIn::LocalInvocationId, Some(axis)) => {
            Some(u64::from(*size.get(axis as usize)?).saturating_sub(1))
        }
        (BuiltIn::LocalInvocationIndex, None) => {
            Some(size.iter().map(|extent| u64::from(*extent)).product::<u64>().saturating_sub(1))
        }
        _ => None,
    }
}

/// The built-in value that an expression denotes, with the component if it is one.
pub(crate) fn built_in(context: FunctionContext<'_>, expression: Value) -> Option<(BuiltIn, Option<u32>)> {
    built_in_of((context.module, context.function), expression)
}

/// The same, for an entry point without any further context.
pub(crate) fn built_in_of(source: (&Module, &Function), expression: Value) -> Option<(BuiltIn, Option<u32>)> {
    let (value, component) = match source.1.expressions[expression] {
        Expression::AccessIndex { base, index } => match built_in_value(source, base) {
            Some(built_in) => return Some((built_in, Some(index))),
            None => (expression, None),
        },
        _ => (expression, None),
    };
    Some((built_in_value(source, value)?, component))
}

/// The built-in value of an argument, or of a member of a struct argument.
fn built_in_value((module, function): (&Module, &Function), expression: Value) -> Option<BuiltIn> {
    let argument = |index: u32| &function.arguments[index as usize];
    let binding = match function.expressions[expression] {
        Expression::FunctionArgument(index) => &argument(index).binding,
        Expression::AccessIndex { base, index: member } => match function.expressions[base] {
            Expression::FunctionArgument(index) => match &module.types[argument(index).ty].inner {
                TypeInner::Struct { members, .. } => &members.get(member as usize)?.binding,
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    match binding {
        Some(Binding::BuiltIn(built_in)) => Some(*built_in),
        _ => None,
    }
}
