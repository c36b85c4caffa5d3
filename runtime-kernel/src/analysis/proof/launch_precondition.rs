//! Preconditions on a launch under which accesses are in range: if they hold, no access that depends on them is
//! checked.
//!
//! Within `if row < m && column < k`, `a[row * k + column]` is below m · k. So if m · k is at most the length of
//! `a`, which a single comparison of the launch's scalars decides, every such access is in range.

use std::collections::BTreeSet;

use naga::{AddressSpace, BinaryOperator, BuiltIn, Expression, MathFunction, Scalar, ScalarKind, TypeInner};

use super::FunctionContext;
use super::bounds::Scope;
use super::polynomial::{LaunchParameter, Polynomial};
use super::range::{self, Element, Limit};
use crate::ir::Value;

/// Polynomials that must be at most zero.
pub(crate) type Preconditions = BTreeSet<Polynomial>;

/// Maximum number of preconditions per entry point.
const MAX_CONDITIONS: usize = 24;

/// Adds a precondition; returns whether it is in the set now.
pub(crate) fn add(preconditions: &mut Preconditions, precondition: Polynomial) -> bool {
    let fits = preconditions.len() < MAX_CONDITIONS || preconditions.contains(&precondition);
    if fits {
        preconditions.insert(precondition);
    }
    fits
}

/// Longer sums are not analysed.
const MAX_TERMS: usize = 8;

/// Longer chains of operators are not analysed.
const MAX_DEPTH: u32 = 10;

/// What must be at most zero for an element to be in range; `None` if the launch parameters alone do not decide
/// it.
pub(crate) fn of(context: FunctionContext<'_>, element: Element, limit: Limit) -> Option<Polynomial> {
    let length = match limit {
        Limit::Constant(length) => Polynomial::constant(length.into()),
        Limit::Runtime(variable) => Polynomial::parameter(LaunchParameter::Length(variable?)),
    };
    let scope = context.bounds.scope(element.access);
    let greatest = match element.index {
        Some(index) => bound(context, scope, index, 0)?,
        None => Polynomial::constant(element.known.into()),
    };
    let over = greatest.plus(&Polynomial::constant(1))?.minus(&length)?;
    let impossible = over.value().is_some_and(|value| value > 0);
    (over.fits() && !impossible).then_some(over)
}

/// An upper bound of an unsigned value, which may wrap on the way.
fn bound(context: FunctionContext<'_>, scope: Scope, value: Value, depth: u32) -> Option<Polynomial> {
    if depth > MAX_DEPTH || *context.inner(value) != TypeInner::Scalar(Scalar::U32) {
        return None;
    }
    let from_facts = range::facts(context, scope, value).find_map(|fact| {
        let bound = bound(context, scope, fact.bound, depth + 4)?;
        bound.minus(&Polynomial::constant(fact.strict.into()))
    });
    from_facts
        .or_else(|| structural_bound(context, scope, value, depth))
        .or_else(|| range::upper(context, scope, value, 0).map(Polynomial::constant))
}

/// The bound that follows from the expression's own form.
fn structural_bound(
    context: FunctionContext<'_>,
    scope: Scope,
    value: Value,
    depth: u32,
) -> Option<Polynomial> {
    let bound = |value| bound(context, scope, value, depth + 1);
    match context.function.expressions[value] {
        Expression::Binary { op, left, right } => match op {
            BinaryOperator::Add => {
                of_sum(context, scope, value, depth).or_else(|| bound(left)?.plus(&bound(right)?))
            }
            BinaryOperator::Multiply => bound(left)?.times(&bound(right)?),
            BinaryOperator::ShiftLeft => {
                let bits = range::constant_of(context, right).filter(|bits| *bits < 32)?;
                bound(left)?.times(&Polynomial::constant(1 << bits))
            }
            _ => None,
        },
        Expression::Math { fun: MathFunction::Min, arg, arg1: Some(other), .. } => {
            range::upper(context, scope, value, 0)
                .map(Polynomial::constant)
                .or_else(|| bound(arg))
                .or_else(|| bound(other))
        }
        Expression::Load { pointer } => Some(Polynomial::parameter(scalar(context, pointer)?)),
        Expression::As { expr, kind: ScalarKind::Uint, .. } => match context.function.expressions[expr] {
            Expression::Load { pointer } if *context.inner(expr) == TypeInner::Scalar(Scalar::I32) => {
                Some(Polynomial::parameter(scalar(context, pointer)?))
            }
            _ => None,
        },
        Expression::ArrayLength(array) => {
            Some(Polynomial::parameter(LaunchParameter::Length(range::root(context, array)?)))
        }
        Expression::AccessIndex { .. } | Expression::FunctionArgument(_) => of_built_in(context, value),
        _ => None,
    }
}

/// An upper bound of a sum when a condition bounds part of it: within `if start + lane < n`, `first + start +
/// lane` is below `first + n`, in any order of the terms. The sum may wrap, as the part may.
fn of_sum(context: FunctionContext<'_>, scope: Scope, value: Value, depth: u32) -> Option<Polynomial> {
    let source = (context.module, context.function);
    let mut all = Vec::new();
    terms(context, value, &mut all);
    context.bounds.facts_in(scope).find_map(|fact| {
        let (mut part, mut rest) = (Vec::new(), all.clone());
        terms(context, fact.value, &mut part);
        if part.len() < 2 || part.len() >= rest.len() {
            return None;
        }
        for term in part {
            rest.swap_remove(rest.iter().position(|&other| context.bounds.are_same(source, other, term))?);
        }
        let limit = bound(context, scope, fact.bound, depth + 4)?;
        let limit = limit.minus(&Polynomial::constant(fact.strict.into()))?;
        rest.into_iter().try_fold(limit, |sum, term| sum.plus(&bound(context, scope, term, depth + 1)?))
    })
}

/// Collects the terms of a sum.
fn terms(context: FunctionContext<'_>, value: Value, found: &mut Vec<Value>) {
    match context.function.expressions[value] {
        Expression::Binary { op: BinaryOperator::Add, left, right } if found.len() < MAX_TERMS => {
            terms(context, left, found);
            terms(context, right, found);
        }
        _ => found.push(value),
    }
}

/// The scalar argument that a pointer leads to.
fn scalar(context: FunctionContext<'_>, pointer: Value) -> Option<LaunchParameter> {
    let Expression::AccessIndex { base, index } = context.function.expressions[pointer] else { return None };
    match context.function.expressions[base] {
        Expression::GlobalVariable(variable)
            if context.module.global_variables[variable].space == AddressSpace::Immediate =>
        {
            Some(LaunchParameter::Scalar(variable, index))
        }
        _ => None,
    }
}

/// The greatest id of a work-group, or of an invocation in the whole grid.
fn of_built_in(context: FunctionContext<'_>, value: Value) -> Option<Polynomial> {
    let (built_in, Some(axis)) = range::built_in(context, value)? else { return None };
    let groups = Polynomial::parameter(LaunchParameter::Groups(axis));
    let count = match built_in {
        BuiltIn::WorkGroupId => groups,
        BuiltIn::GlobalInvocationId => {
            groups.times(&Polynomial::constant((*context.group_size?.get(axis as usize)?).into()))?
        }
        BuiltIn::NumWorkGroups => return Some(groups),
        _ => return None,
    };
    count.minus(&Polynomial::constant(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_preconditions_is_limited() {
        let mut preconditions = Preconditions::new();
        let conditions = |from: u64| (from..).map(Polynomial::constant);
        assert!(conditions(0).take(MAX_CONDITIONS).all(|condition| add(&mut preconditions, condition)));
        assert!(
            conditions(0).take(MAX_CONDITIONS).all(|condition| add(&mut preconditions, condition)),
            "known"
        );
        assert!(!add(&mut preconditions, Polynomial::constant(MAX_CONDITIONS as u64)));
        assert_eq!(preconditions.len(), MAX_CONDITIONS);
    }
}
