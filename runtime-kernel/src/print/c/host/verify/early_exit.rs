//! Verifies that invocations which have returned, or jumped ahead by `break` or `continue`, execute nothing of
//! what they left.

use naga::{Block, Statement};

use super::super::schedule::steps::Step;
use super::Verdict;
use super::evaluated::Evaluated;
use crate::ir::blocks::Skip;

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    let (storage, regions) = (&on.schedule.storage, &on.schedule.steps.regions);
    on.all().into_iter().try_for_each(|(step, around)| {
        let Step::Lanes(region) = step else { return Ok(()) };
        let returns = on.region(*region).returns;
        let comes_back = around.looped || regions.len() > 1;
        let recorded = storage.needs[*region].returns == returns;
        let stays_away = storage.masked || !returns || !comes_back;
        ensure!(recorded && stays_away, "items that returned from region {region} come back")
    })?;
    steps(on, &on.schedule.steps.steps, Skip::No, false).map(|_| ())
}

/// Walks over steps that some invocations skip as far as `skip`; returns how far some skip afterwards.
fn steps(on: &Evaluated<'_, '_>, all: &[Step], mut skip: Skip, in_switch: bool) -> Result<Skip, String> {
    for step in all {
        let nobody = |what: &str| ensure!(skip == Skip::No, "{what} for items that have skipped it");
        match step {
            Step::Lanes(region) => {
                nobody("a region")?;
                let region = &on.schedule.steps.regions[*region];
                skip = skipped(&region.body);
                let closed = skip == Skip::No || region.skips != Skip::No;
                ensure!(closed, "a region that items cannot leave")?;
                ensure!(skip != Skip::Break || in_switch, "some items leave a loop of the group")?;
            }
            Step::Rows(rows) => skip = steps(on, &rows.steps, skip, in_switch)?,
            Step::Once(shared) => {
                let stores = shared.body.iter().any(|statement| matches!(statement, Statement::Store { .. }));
                if stores {
                    nobody("an assignment")?;
                }
            }
            Step::If { accept, reject, .. } => {
                let accepted = steps(on, accept, skip, in_switch)?;
                skip = accepted.max(steps(on, reject, skip, in_switch)?);
            }
            Step::Switch { cases, .. } => {
                nobody("a switch")?;
                for (_, falls, case) in cases {
                    let after = steps(on, case, Skip::No, true)?;
                    ensure!(after == Skip::No || !falls, "a case that falls through")?;
                    skip = if after == Skip::Continue { after } else { skip };
                }
            }
            Step::Loop { body, continuing, .. } => {
                nobody("a loop")?;
                steps(on, body, Skip::No, false)?;
                steps(on, continuing, Skip::No, false)?;
            }
            Step::Barrier => nobody("a barrier")?,
            // Invocations that jumped ahead have arrived.
            Step::Break if in_switch && skip == Skip::Break => {}
            Step::Continue if skip == Skip::Continue => {}
            Step::Break | Step::Continue | Step::Return => nobody("a jump of the group")?,
        }
    }
    Ok(skip)
}

/// How far invocations may jump past the end of a region.
fn skipped(block: &Block) -> Skip {
    let all = |blocks: &mut dyn Iterator<Item = &Block>| blocks.map(skipped).max().unwrap_or_default();
    let of = |statement: &Statement| match statement {
        Statement::Break => Skip::Break,
        Statement::Continue => Skip::Continue,
        Statement::Block(block) => skipped(block),
        Statement::If { accept, reject, .. } => skipped(accept).max(skipped(reject)),
        Statement::Switch { cases, .. } => match all(&mut cases.iter().map(|case| &case.body)) {
            Skip::Continue => Skip::Continue,
            _ => Skip::No,
        },
        _ => Skip::No,
    };
    block.iter().map(of).max().unwrap_or_default()
}
