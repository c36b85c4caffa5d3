//! Runs whose code is refused become shorter runs.

use std::cell::Cell;

use runtime_core::lowering::FusionPlan;
use runtime_core::{Error, Result};

use super::List;
use crate::program::Program;

const SCALE: &str = "if i < s.n { y[i] = 2.0 * x[i]; }";

fn runs(plan: &FusionPlan) -> Vec<std::ops::Range<usize>> {
    plan.kernels.iter().map(|kernel| kernel.launches.clone()).collect()
}

/// Refuses kernels with more than five tensors.
fn at_most_five(program: &Program) -> Result<()> {
    match program.interfaces()[0].tensors.len() {
        0..=5 => Ok(()),
        _ => Err(Error::unsupported("it has too many tensors")),
    }
}

fn list(launches: usize) -> List {
    let mut list = List::new();
    list.tensors = vec![list.tensors[0].clone(); launches + 1];
    (0..launches).fold(list, |list, step| list.then("step", SCALE, [step, step + 1]))
}

#[test]
fn a_run_that_is_refused_ends_as_late_as_possible() {
    let plan = list(10).plan_if(&at_most_five);
    assert_eq!(runs(&plan), [0..4, 4..8, 8..10]);
    assert!(plan.kernels.iter().all(|kernel| kernel.code.is_some()));
    let open: Vec<_> = plan.seams.iter().map(|seam| !seam.fused).collect();
    let expected: Vec<_> = (1..10).map(|launch| launch % 4 == 0).collect();
    assert_eq!(open, expected);
    assert_eq!(plan.seams[3].reason, "it has too many tensors");
}

#[test]
fn the_rest_of_a_refused_run_is_planned_again() {
    let total = "tile[l.x] = x[i]; workgroupBarrier(); if l.x == 0 { y[g.x] = tile[0] + tile[63]; }";
    let mut list = list(4).then("total", total, [4, 5]).then("spread", "y[i] = x[g.x];", [5, 6]);
    list.tensors.resize(7, list.tensors[0].clone());
    let plan = list.plan_if(&at_most_five);
    assert_eq!(runs(&plan), [0..4, 4..6]);
    assert_eq!(plan.kernels[1].code.as_ref().unwrap().barriers, 1);
    assert_eq!(plan.seams[4].reason, "with a barrier between them");
}

#[test]
fn refusals_of_everything_leave_the_launches_as_they_are() {
    let tries = Cell::new(0);
    let plan = list(16).plan_if(&|_| {
        tries.set(tries.get() + 1);
        Err(Error::unsupported("never"))
    });
    assert!(plan.kernels.len() == 16 && plan.kernels.iter().all(|kernel| kernel.code.is_none()));
    assert!(plan.seams.iter().all(|seam| !seam.fused && seam.reason == "never"));
    assert!(tries.get() <= 16 * 5, "{}", tries.get());
}
