//! Verifies that variables are stored where all their uses find them, with their initial value.

use std::collections::BTreeSet;

use naga::{Block, Expression, Statement};

use super::super::schedule::steps::{Condition, Step};
use super::super::schedule::variable_storage::Storage;
use super::Verdict;
use super::evaluated::{Around, Evaluated, Uses};
use crate::ir::Local;

/// The users of variables, in step order.
struct Users {
    regions: Vec<(usize, Around, Uses)>,
    group: BTreeSet<Local>,
}

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    let mut users = Users { regions: Vec::new(), group: BTreeSet::new() };
    for (step, around) in on.all() {
        if let Some(Condition::Once(value)) = step.condition() {
            users.group.extend(on.condition(value).variables);
        }
        match step {
            Step::Once(shared) => {
                shared
                    .body
                    .iter()
                    .for_each(|statement| users.group.extend(on.statement(statement).variables));
            }
            Step::Lanes(region) => users.regions.push((*region, around, on.region(*region))),
            _ => {}
        }
    }
    on.function.local_variables.iter().try_for_each(|(variable, _)| self::variable(on, variable, &users))
}

fn variable(on: &Evaluated<'_, '_>, variable: Local, users: &Users) -> Verdict {
    let storage = &on.schedule.storage;
    let in_regions: Vec<_> =
        users.regions.iter().filter(|(_, _, uses)| uses.variables.contains(&variable)).collect();
    let by_group = users.group.contains(&variable);
    let location = storage.variable(variable);
    let right = |holds: bool| ensure!(holds, "{variable:?} is used away from {location:?}");
    match location {
        Storage::Nowhere => right(in_regions.is_empty() && !by_group),
        Storage::Group => right(in_regions.iter().all(|(_, _, uses)| !uses.written.contains(&variable))),
        Storage::Body(body) => {
            right(!by_group && in_regions.iter().all(|(region, _, _)| *region == body))?;
            let repeats = in_regions.iter().any(|(_, around, _)| around.looped);
            let body = &on.schedule.steps.regions[body];
            let assigned = !repeats || assigned_first(on, &body.body, variable) == Some(true);
            let left =
                body.uniform_values.iter().any(|&value| on.condition(value).variables.contains(&variable));
            ensure!(
                assigned || (!repeats && left),
                "{variable:?} does not outlive a round of the loop around its region"
            )
        }
        Storage::Lanes | Storage::LanesInPlace => {
            right(!by_group)?;
            let initialised: Vec<_> = in_regions
                .iter()
                .enumerate()
                .filter(|(_, (region, _, _))| storage.initialised[*region].contains(&variable))
                .collect();
            let once = match initialised[..] {
                [] => storage.early.contains(&variable),
                // The first of all users, which always runs.
                [(0, (_, around, _))] => around.depth == 0 && location == Storage::Lanes,
                _ => false,
            };
            ensure!(once, "{variable:?} has no initial value")?;
            // Regions copy it in and out according to their recorded needs.
            in_regions.iter().try_for_each(|(region, _, uses)| {
                let needs = &storage.needs[*region];
                let recorded = needs.reads.contains(&variable) || needs.writes.contains(&variable);
                let written = !uses.written.contains(&variable) || needs.writes.contains(&variable);
                ensure!(recorded && written, "region {region} loses {variable:?}")
            })
        }
    }
}

/// Whether a block assigns a variable before reading it, on all paths; `None` if it does neither.
fn assigned_first(on: &Evaluated<'_, '_>, block: &Block, variable: Local) -> Option<bool> {
    for statement in block {
        let uses = on.statement(statement);
        if !uses.variables.contains(&variable) {
            continue;
        }
        match statement {
            Statement::Store { pointer, value } => {
                let whole = matches!(on.function.expressions[*pointer], Expression::LocalVariable(_));
                return Some(whole && !on.condition(*value).variables.contains(&variable));
            }
            Statement::Block(inner) => {
                if let Some(found) = assigned_first(on, inner, variable) {
                    return Some(found);
                }
            }
            Statement::If { condition, accept, reject } => {
                if on.condition(*condition).variables.contains(&variable) {
                    return Some(false);
                }
                match [accept, reject].map(|block| assigned_first(on, block, variable)) {
                    [Some(true), Some(true)] => return Some(true),
                    [Some(false), _] | [_, Some(false)] => return Some(false),
                    _ => {}
                }
            }
            _ => return Some(false),
        }
    }
    None
}
