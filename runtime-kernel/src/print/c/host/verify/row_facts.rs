//! Verifies the facts that a row decides before its loop: their inputs are available there, and unchecked accesses
//! are as linear as the schedule claims.

use naga::Expression;

use super::super::schedule::row_facts::{Linear, RowFacts};
use super::super::schedule::variable_storage::Storage;
use super::Verdict;
use super::evaluated::Evaluated;
use crate::ir::Value;

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    on.schedule.rows.iter().enumerate().try_for_each(|(region, row)| {
        known(on, region, &row.row_facts)?;
        let sides = row.row_facts.bounds.iter().chain(&row.row_facts.facts);
        sides.clone().try_for_each(|fact| {
            let compared = match on.function.expressions[fact.handle] {
                Expression::Binary { op, left, right } => {
                    op == fact.op && left == fact.left.value && right == fact.right.value
                }
                _ => false,
            };
            ensure!(compared, "{:?} is another comparison", fact.handle)?;
            is_computable(on, region, fact.left, &row.row_facts)?;
            is_computable(on, region, fact.right, &row.row_facts)
        })?;
        row.row_facts.accesses.iter().try_for_each(|(&access, &index)| {
            let own = matches!(on.function.expressions[access],
                Expression::Access { index: own, .. } if own == index.value);
            ensure!(own, "{access:?} has another index")?;
            is_computable(on, region, index, &row.row_facts)
        })?;
        row.nontemporal_stores.iter().try_for_each(|stream| {
            let assumed = row.row_facts.accesses.get(&stream.access).is_some_and(|index| index.slope == 1);
            ensure!(assumed, "{:?} is no row", stream.access)
        })
    })
}

/// Values fetched for the first invocation of a row are available, and the region does not change them.
fn known(on: &Evaluated<'_, '_>, region: usize, row_facts: &RowFacts) -> Verdict {
    let (uses, storage) = (on.region(region), &on.schedule.storage);
    let stored = row_facts
        .known
        .stored
        .iter()
        .all(|value| storage.stored.contains(value) && !uses.defined.contains(value));
    ensure!(stored, "region {region} decides by a value that is not there yet")?;
    let fixed = row_facts.known.variables.iter().all(|variable| {
        storage.variable(*variable) == Storage::Lanes
            && !uses.written.contains(variable)
            && !storage.initialised[region].contains(variable)
    });
    ensure!(fixed, "region {region} decides by a variable that it changes")
}

/// Whether a value can be computed before a row, and has the claimed slope.
fn is_computable(on: &Evaluated<'_, '_>, region: usize, linear: Linear, row_facts: &RowFacts) -> Verdict {
    let here = |value: &Value| {
        on.schedule.storage.uniform.contains(value)
            || row_facts.known.values.contains(value)
            || row_facts.known.stored.contains(value)
    };
    let (mut pending, mut trees) = (vec![linear.value], Vec::new());
    if on.is_named(linear.value) {
        ensure!(here(&linear.value), "region {region} does not have {:?}", linear.value)?;
    } else {
        trees.push(on.condition(linear.value));
    }
    while let Some(value) = pending.pop() {
        if row_facts.known.values.contains(&value) && on.is_named(value) {
            trees.push(on.definition(value));
        }
    }
    for tree in trees {
        let missing = tree.named.iter().find(|value| !here(value));
        ensure!(missing.is_none(), "region {region} decides by {missing:?}")?;
        let readable = tree.variables.iter().all(|variable| {
            row_facts.known.variables.contains(variable)
                || on.schedule.storage.variable(*variable) == Storage::Group
        });
        ensure!(readable, "region {region} reads a variable that the row does not have")?;
        let loads = tree.evaluated.iter().all(|&part| match on.function.expressions[part] {
            Expression::Load { pointer } => {
                on.variable(pointer).is_some() || super::values::is_read_only(on, pointer)
            }
            _ => true,
        });
        ensure!(loads, "region {region} reads memory before the row")?;
    }
    slope(on, linear)
}

/// The slope of values that depend on positions alone is recomputed; for loads of variables the analysis is
/// trusted.
fn slope(on: &Evaluated<'_, '_>, linear: Linear) -> Verdict {
    if on.context.group_size.is_none_or(|size| size[0] <= 1) {
        return Ok(());
    }
    let found = [0_u32, 1, 7].map(|x| value_at(on, linear.value, x, 0));
    let [Some(first), Some(second), Some(eighth)] = found else { return Ok(()) };
    let slope = linear.slope.cast_unsigned();
    let linear = second.wrapping_sub(first) == slope && eighth.wrapping_sub(first) == slope.wrapping_mul(7);
    ensure!(linear, "an index grows by {} and not {slope}", second.wrapping_sub(first))
}

/// A value at position `x` of the first row of group zero; `None` if it depends on anything else.
fn value_at(on: &Evaluated<'_, '_>, value: Value, x: u32, depth: u32) -> Option<u32> {
    use naga::{BinaryOperator as Op, Binding, BuiltIn, Literal};
    let of = |value| value_at(on, value, x, depth + 1);
    match on.function.expressions[value] {
        _ if depth > 32 => None,
        Expression::Literal(Literal::U32(word)) => Some(word),
        Expression::Literal(Literal::I32(word)) => Some(word.cast_unsigned()),
        Expression::FunctionArgument(index) => match on.function.arguments[index as usize].binding {
            Some(Binding::BuiltIn(BuiltIn::LocalInvocationIndex)) => Some(x),
            _ => None,
        },
        Expression::AccessIndex { base, index } => match on.function.expressions[base] {
            Expression::FunctionArgument(argument) => {
                match on.function.arguments[argument as usize].binding {
                    Some(Binding::BuiltIn(BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId)) => {
                        Some(if index == 0 { x } else { 0 })
                    }
                    Some(Binding::BuiltIn(BuiltIn::WorkGroupId)) => Some(0),
                    _ => None,
                }
            }
            _ => None,
        },
        Expression::Binary { op: Op::Add, left, right } => Some(of(left)?.wrapping_add(of(right)?)),
        Expression::Binary { op: Op::Subtract, left, right } => Some(of(left)?.wrapping_sub(of(right)?)),
        Expression::Binary { op: Op::Multiply, left, right } => Some(of(left)?.wrapping_mul(of(right)?)),
        _ => None,
    }
}
