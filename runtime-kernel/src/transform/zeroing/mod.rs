//! Zero-initialises work-group memory as WGSL requires, but only variables that an entry point may read before it
//! writes them.
//!
//! The analysis runs an entry point for all invocations of a work-group at once. Values that depend on the
//! invocation alone (its position in the group, counters of loops with constant bounds) are computed; everything
//! else is unknown. For each element of an array it tracks whether the element is certainly written, and whether a
//! barrier has made that visible to all:
//!
//! - A store counts if its index is known for all invocations that execute it. After a branch on an unknown
//!   condition, what both sides write counts; a loop with an unknown trip count contributes nothing, since it may
//!   not run.
//! - Barriers are uniform (`crate::check::barriers`), so an invocation that passes one has executed every statement
//!   on the way. Jumps on unknown conditions therefore do not matter, unless invocations that diverged reconverge
//!   before a barrier, which happens after loops, switches and calls.
//! - A read is fine if the element is visible, or was written earlier by the same invocation.
//!
//! | file | what is there |
//! | --- | --- |
//! | `walk` | the walk over statements |
//! | `constant_loops` | loops with constant bounds |
//! | `activation` | executions of statements by invocations, and the values of expressions in them |
//! | `column` | the values of an expression for all invocations at once |
//! | `memory` | the state of the elements |
//! | `fill` | the statements that zero memory |

mod activation;
#[cfg(test)]
mod brute_force;
mod column;
mod constant_loops;
mod fill;
mod memory;
#[cfg(test)]
mod tests;
mod walk;

use naga::AddressSpace;
use runtime_core::Result;

use crate::ir::Global;
use crate::program::Program;

/// The work-group variables that an entry point may read before they are written.
///
/// C for the host zeroes them even if the author opts out: reading indeterminate memory would be undefined
/// behaviour, so that a value might pass its check and then be used as another one.
pub(crate) fn must_zero(program: &Program, entry: usize) -> Vec<Global> {
    let info = program.info.get_entry_point(entry);
    let variables = program.module.global_variables.iter();
    let used: Vec<_> = variables
        .filter(|(handle, variable)| variable.space == AddressSpace::WorkGroup && !info[*handle].is_empty())
        .map(|(handle, _)| handle)
        .collect();
    if used.is_empty() { used } else { walk::read_first(program, entry, &used) }
}

/// The program with statements that zero what must be zero; `None` if nothing must be, or its author opted out.
///
/// # Errors
/// `Internal` if the new module is not valid.
pub(crate) fn zeroed(program: &Program) -> Result<Option<Program>> {
    if !program.zeroes {
        return Ok(None);
    }
    let mut module = None;
    for entry in 0..program.module.entry_points.len() {
        let variables = must_zero(program, entry);
        if !variables.is_empty() {
            fill::fill(module.get_or_insert_with(|| program.module.clone()), entry, &variables)?;
        }
    }
    let Some(module) = module else { return Ok(None) };
    Ok(Some(Program { zeroes: false, ..program.with(module)? }))
}
