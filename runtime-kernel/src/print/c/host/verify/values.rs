//! Verifies that every value is defined before its use: by the group, in the region, or in another region that
//! stores it.

use std::collections::BTreeSet;

use naga::Expression;

use super::super::schedule::steps::{Condition, Step};
use super::Verdict;
use super::evaluated::{Evaluated, Uses};
use crate::ir::Value;
use crate::ir::operands::is_result;
use crate::ir::variables::{self, Root, root};

/// Names defined so far. The steps are in program order, in which definitions dominate their uses.
#[derive(Default)]
struct Defined {
    uniform: BTreeSet<Value>,
    by_items: BTreeSet<Value>,
}

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    let mut defined = Defined::default();
    // The ends of loops, which may use what is defined inside.
    let mut ends = Vec::new();
    on.all().into_iter().try_for_each(|(step, _)| visit(on, step, &mut defined, &mut ends))?;
    ends.iter().try_for_each(|uses| known(uses, &defined.uniform))
}

fn visit(on: &Evaluated<'_, '_>, step: &Step, defined: &mut Defined, ends: &mut Vec<Uses>) -> Verdict {
    if let Some(Condition::Once(value)) = step.condition() {
        let uses = on.condition(value);
        match step {
            Step::Loop { .. } => ends.push(uses),
            _ => known(&uses, &defined.uniform)?,
        }
    }
    match step {
        Step::Once(shared) => shared.body.iter().try_for_each(|statement| {
            let uses = on.statement(statement);
            known(&uses, &defined.uniform)?;
            let declared = uses.defined.is_subset(&on.schedule.storage.uniform);
            defined.uniform.extend(uses.defined);
            ensure!(declared, "the group defines a value that it does not have")
        }),
        Step::Lanes(region) => self::region(on, *region, defined),
        _ => Ok(()),
    }
}

/// What the group uses, the group computes.
fn known(uses: &Uses, uniform: &BTreeSet<Value>) -> Verdict {
    let unknown = uses.named.iter().find(|value| !uniform.contains(value) && !uses.defined.contains(value));
    ensure!(unknown.is_none(), "the group uses {unknown:?} before it computes it")
}

fn region(on: &Evaluated<'_, '_>, region: usize, defined: &mut Defined) -> Verdict {
    let storage = &on.schedule.storage;
    let uses = on.region(region);
    let (recomputed, needs) = (&storage.recomputed[region], &storage.needs[region]);
    let shared = uses.defined.intersection(&storage.uniform).next();
    ensure!(shared.is_none(), "region {region} defines {shared:?} of the group")?;
    for &value in uses.named.difference(&uses.defined) {
        if defined.uniform.contains(&value) || recomputed.contains(&value) {
            continue;
        }
        let before = defined.by_items.contains(&value);
        ensure!(before, "region {region} uses {value:?} before it is computed")?;
        ensure!(storage.stored.contains(&value), "region {region} uses {value:?}, which is not stored")?;
        // Values read from storage must be those that the printer stores.
        let recorded = needs.values.contains(&value) && !needs.defined.contains(&value);
        ensure!(recorded, "region {region} does not fetch {value:?}")?;
    }
    for &value in recomputed {
        repeated(on, value, (&defined.uniform, recomputed), &uses)?;
        let before = defined.by_items.contains(&value);
        ensure!(before, "region {region} computes {value:?} before the program does")?;
    }
    defined.by_items.extend(uses.defined);
    Ok(())
}

/// A recomputed value must have the same result whenever it is computed.
fn repeated(
    on: &Evaluated<'_, '_>,
    value: Value,
    (uniform, recomputed): (&BTreeSet<Value>, &BTreeSet<Value>),
    region: &Uses,
) -> Verdict {
    let uses = on.definition(value);
    let known = |name: &Value| {
        uniform.contains(name)
            || (recomputed.contains(name) && *name < value)
            || (on.schedule.storage.stored.contains(name) && region.named.contains(name))
    };
    ensure!(uses.named.iter().all(known), "{value:?} is computed again too early")?;
    let fixed = uses.variables.is_empty() && uses.evaluated.iter().all(|&part| is_fixed(on, part));
    ensure!(fixed, "{value:?} is computed again from what may have changed")?;
    let guarded = !uses.evaluated.is_disjoint(&on.schedule.guarded);
    ensure!(!guarded, "{value:?} is computed again away from what keeps it in range")
}

/// Whether an expression reads nothing that changes.
fn is_fixed(on: &Evaluated<'_, '_>, part: Value) -> bool {
    match on.function.expressions[part] {
        Expression::Load { pointer } => is_read_only(on, pointer),
        ref other => !is_result(other),
    }
}

/// Whether a pointer leads into memory that the kernel cannot write.
pub(super) fn is_read_only(on: &Evaluated<'_, '_>, pointer: Value) -> bool {
    match root(on.function, pointer) {
        Root::Global(variable) => variables::is_read_only(on.module.global_variables[variable].space),
        _ => false,
    }
}
