//! Work-group memory that starts as zeros, as WGSL says: which variables an entry point may read before it writes them,
//! and the statements that fill those.
//!
//! The analysis runs an entry point for all items of a work-group at once. Values that follow from the item alone (its
//! place in the group, counters of loops with constant bounds) are computed; everything else is unknown. Per element of an
//! array it keeps whether the element is written for certain, and whether a barrier has made that visible to all:
//!
//! - A store counts if its index is known for all items that execute it. A branch by an unknown condition keeps what both
//!   sides write; a loop whose rounds are unknown keeps nothing, since it may have none.
//! - A barrier is reached by all items or by none (`crate::check::barriers`), so whoever passes it has executed every statement on
//!   the way: jumps by unknown conditions do not matter, except where items that parted meet again before a barrier, which is
//!   behind loops, switches and calls.
//! - A read is fine if the element is visible, or written before by the same item.
//!
//! | file | what is there |
//! | --- | --- |
//! | `walk` | the walk over statements |
//! | `rounds` | loops with constant bounds |
//! | `activation` | executions of statements by items, and the values of expressions in them |
//! | `column` | values of an expression for all items at once |
//! | `memory` | what is known of the elements |
//! | `fill` | the statements that fill memory with zeros |

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

use naga::{AddressSpace, GlobalVariable, Handle};
use runtime_core::Result;

use crate::program::Program;

/// The work-group variables of an entry point that it may read before they are written.
///
/// C for the host fills them whatever the author says: memory that was never written has no value there that could be
/// checked and used.
pub(crate) fn must_zero(program: &Program, entry: usize) -> Vec<Handle<GlobalVariable>> {
    let info = program.info.get_entry_point(entry);
    let variables = program.module.global_variables.iter();
    let used: Vec<_> = variables
        .filter(|(handle, variable)| variable.space == AddressSpace::WorkGroup && !info[*handle].is_empty())
        .map(|(handle, _)| handle)
        .collect();
    if used.is_empty() { used } else { walk::read_first(program, entry, &used) }
}

/// The program with statements that fill what must be zero; `None` if there is nothing of it, or its author wants none.
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
            fill::fill(module.get_or_insert_with(|| program.module.clone()), entry, &variables);
        }
    }
    let Some(module) = module else { return Ok(None) };
    Ok(Some(Program { zeroes: false, ..program.with(module)? }))
}
