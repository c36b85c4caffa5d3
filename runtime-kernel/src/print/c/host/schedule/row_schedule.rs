//! Which steps run row by row, and how wide a row is.
//!
//! Invocations do not wait for each other between barriers. So uniform loops without a barrier go inside the loops
//! over the rows: loop-carried values of an invocation then stay in vector registers, provided that a row is not too
//! wide.

use std::collections::BTreeSet;

use naga::{Function, Statement};

use super::steps::{Rows, Step};
use super::variable_storage::{Storage, VariableStorage};
use crate::ir::Local;
use crate::ir::variables::root;

/// Puts runs of steps without barriers and uniform returns into [`Step::Rows`].
pub(crate) fn rows(steps: Vec<Step>) -> Vec<Step> {
    let mut out = Vec::with_capacity(steps.len());
    let mut run: Vec<Step> = Vec::new();
    for mut step in steps {
        if is_rowable(&step) {
            let single = matches!(step, Step::Once(_)) || !has_lanes(&step);
            if run.is_empty() && single {
                out.push(step);
            } else {
                run.push(step);
            }
            continue;
        }
        end(&mut run, &mut out);
        step.inner_mut().for_each(|inner| *inner = rows(std::mem::take(inner)));
        out.push(step);
    }
    end(&mut run, &mut out);
    out
}

/// Ends a run: trailing steps that do nothing per invocation stay at group level.
fn end(run: &mut Vec<Step>, out: &mut Vec<Step>) {
    let length = run.iter().rposition(has_lanes).map_or(0, |last| last + 1);
    let rest = run.split_off(length);
    if !run.is_empty() {
        let steps = std::mem::take(run);
        out.push(Step::Rows(Rows { steps, ..Rows::default() }));
    }
    out.extend(rest);
}

/// Decides which variables a row carries and how wide it is, for rows of `size` invocations.
pub(crate) fn lay_out(steps: &mut [Step], function: &Function, storage: &VariableStorage, size: u32) {
    for step in steps {
        match step {
            Step::Rows(rows) => {
                rows.written = written(&rows.steps, function);
                rows.carried = carried(&rows.steps, storage);
                rows.width = width(rows.carried.len(), size);
            }
            other => other.inner_mut().for_each(|inner| lay_out(inner, function, storage, size)),
        }
    }
}

fn is_rowable(step: &Step) -> bool {
    inner(step, false).is_some_and(|all| all)
}

/// Whether a step can be in a row: it has no barrier and no return, and does not jump out of itself. `None` for
/// steps that never can.
fn inner(step: &Step, in_loop: bool) -> Option<bool> {
    let all = |steps: &[Step], in_loop| steps.iter().all(|step| inner(step, in_loop) == Some(true));
    Some(match step {
        Step::Once(_) | Step::Lanes(_) => true,
        Step::Barrier | Step::Return | Step::Rows(_) => return None,
        Step::Break | Step::Continue => in_loop,
        Step::If { accept, reject, .. } => all(accept, in_loop) && all(reject, in_loop),
        // A `break` in it is its own; a `continue` belongs to the loop around it.
        Step::Switch { cases, .. } => cases
            .iter()
            .all(|(_, _, steps)| all(steps, true) && (in_loop || !steps.iter().any(Step::continues))),
        Step::Loop { body, continuing, .. } => all(body, true) && all(continuing, true),
    })
}

fn has_lanes(step: &Step) -> bool {
    let mut found = Vec::new();
    leaves(std::slice::from_ref(step), &mut found);
    !found.is_empty()
}

/// Collects the regions in steps.
pub(crate) fn leaves(steps: &[Step], found: &mut Vec<usize>) {
    for step in steps {
        if let Step::Lanes(region) = step {
            found.push(*region);
        }
        step.inner().for_each(|inner| leaves(inner, found));
    }
}

/// The group variables that steps write.
fn written(steps: &[Step], function: &Function) -> BTreeSet<Local> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&Step> = steps.iter().collect();
    while let Some(step) = pending.pop() {
        if let Step::Once(shared) = step {
            found.extend(shared.body.iter().filter_map(|statement| match statement {
                Statement::Store { pointer, .. } => root(function, *pointer).local(),
                _ => None,
            }));
        }
        pending.extend(step.inner().flatten());
    }
    found
}

/// The per-invocation variables that uniform loops in the rows write.
fn carried(steps: &[Step], storage: &VariableStorage) -> BTreeSet<Local> {
    let mut looped = Vec::new();
    for step in steps {
        if matches!(step, Step::Loop { .. }) {
            leaves(std::slice::from_ref(step), &mut looped);
        }
    }
    let written = looped.iter().flat_map(|&region| &storage.needs[region].writes);
    written.filter(|&&variable| storage.variable(variable) == Storage::Lanes).copied().collect()
}

/// The row width: the width of the group, unless a loop carries values between iterations; then narrow enough to
/// keep these in about sixteen registers of sixteen numbers.
const fn width(carried: usize, size: u32) -> u32 {
    let wanted = match carried {
        0 => return size,
        1..=4 => 64,
        5..=8 => 32,
        _ => 16,
    };
    if size > wanted && size.is_multiple_of(wanted) { wanted } else { size }
}
