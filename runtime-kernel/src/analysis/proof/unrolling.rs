//! Which loops to unroll, for all targets.
//!
//! | target | how | which loops, of at most 16 iterations |
//! | --- | --- | --- |
//! | CUDA C++, OpenCL C | `#pragma unroll` | [`Unroll`]`::All`; for processors [`Unroll`]`::Innermost` |
//! | SPIR-V | the loop-control bit | [`Unroll`]`::All` |
//! | SPIR-V | `transform::inline` copies the body | [`copied_loop`]: small ones that select cooperative matrices |
//! | host C | `transform::inline` copies the body | [`copied_loop`]: small ones without jumps |

use naga::{Barrier, Block, FastHashMap, Function, Literal, Module, Statement};

use super::constant::KnownValues;
use super::trip_count::CountedLoop;
use crate::ir::blocks::{self, Skip, has_barrier, has_return, is_barrier};
use crate::ir::variables::assigned;
use crate::ir::{Local, Value};

/// Maximum trip count of an unrolled loop.
const MAX_TRIPS: u32 = 16;

/// Maximum number of expressions of a loop and its inner loops once unrolled: drivers obey the hint, and take
/// minutes for a few times as many.
const MAX_SIZE: u64 = 8000;

/// Maximum number of expressions of all iterations of a copied loop.
const MAX_COPIED_SIZE: u32 = 800;

/// The cost of a call, in expressions.
const CALL: u32 = 12;

/// Which loops a writer asks compilers to unroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unroll {
    /// Those without work-group barriers.
    All,
    /// Those without barriers. Compilers for processors vectorise loops over the invocations of the body, so only the
    /// innermost of nested loops is unrolled.
    Innermost,
}

impl Unroll {
    fn allows(self, body: &Block) -> bool {
        !blocks::any(body, &mut |statement| match (self, statement) {
            // An array of matrices that such a loop indexes would stay in memory.
            (Self::All, Statement::ControlBarrier(barrier)) => *barrier != Barrier::SUB_GROUP,
            (Self::Innermost, Statement::Loop { .. }) => true,
            _ => is_barrier(statement),
        })
    }
}

/// A loop to be copied iteration by iteration, with its trip count; `known` gives the values of variables before it.
/// For the host, without barriers: each region between them becomes loops over the invocations, and many of those compile
/// and run slower than a few.
pub(crate) fn copied_loop(
    (module, function): (&Module, &Function),
    known: &dyn Fn(Local) -> Option<Literal>,
    [body, continuing]: [&Block; 2],
    barriers_are_allowed: bool,
) -> Option<(CountedLoop, u32)> {
    let counted = CountedLoop::of(function, [body, continuing])?;
    let jumps = |statement| Skip::of(statement) != Skip::No || has_return(statement);
    if (!barriers_are_allowed && has_barrier(body)) || body[counted.exit + 1..].iter().any(jumps) {
        return None;
    }
    let start = known(counted.counter)?;
    let trips = counted.trip_count((module, function), (known, start), MAX_TRIPS)?;
    (trips.saturating_mul(size(body)) <= MAX_COPIED_SIZE).then_some((counted, trips))
}

/// The number of expressions that a block evaluates; those in loops count twice.
fn size(block: &Block) -> u32 {
    let sizes = block.iter().map(|statement| {
        let within = blocks::inner(statement).map(size).fold(0, u32::saturating_add);
        match statement {
            Statement::Emit(range) => u32::try_from(range.index_range().len()).unwrap_or(u32::MAX),
            Statement::Loop { .. } => within.saturating_mul(2),
            Statement::Block(_) | Statement::If { .. } | Statement::Switch { .. } => within,
            Statement::Call { .. } => CALL,
            _ => 1,
        }
    });
    sizes.fold(0, u32::saturating_add)
}

/// The loops with small trip counts to unroll, as far as `unroll` allows, by the conditions at their
/// heads, with their trip counts. In an unrolled loop, reads of work-group memory have constant offsets from one
/// address, loads overlap, and small arrays become registers.
pub(crate) fn unrolled_loops(
    (module, function): (&Module, &Function),
    unroll: Unroll,
) -> FastHashMap<Value, u32> {
    let known = KnownValues::at_start(module, function);
    let mut walk = Walk { module, function, unroll, known, found: FastHashMap::default() };
    walk.block(&function.body);
    walk.found
}

/// The size of a statement, unless it has a loop.
fn size_without_loops(statement: &Statement) -> Option<u64> {
    let within = |block: &Block| block.iter().map(size_without_loops).sum::<Option<u64>>();
    match statement {
        Statement::Emit(range) => Some(range.index_range().len() as u64),
        Statement::Loop { .. } => None,
        Statement::Block(_) | Statement::If { .. } | Statement::Switch { .. } => {
            blocks::inner(statement).map(within).sum()
        }
        Statement::Call { .. } => Some(CALL.into()),
        _ => Some(1),
    }
}

struct Walk<'a> {
    module: &'a Module,
    function: &'a Function,
    unroll: Unroll,
    known: KnownValues,
    found: FastHashMap<Value, u32>,
}

impl Walk<'_> {
    /// Returns the size of a block, counting the loops to unroll as unrolled.
    fn block(&mut self, block: &Block) -> u64 {
        block.iter().map(|statement| self.statement(statement)).sum()
    }

    fn statement(&mut self, statement: &Statement) -> u64 {
        match statement {
            Statement::Emit(range) => range.index_range().len() as u64,
            Statement::Block(block) => self.block(block),
            Statement::If { .. } | Statement::Switch { .. } => {
                let size = size_without_loops(statement).unwrap_or_else(|| self.branches(statement));
                self.forget_changed(statement);
                size
            }
            Statement::Loop { body, continuing, break_if } => {
                let counted =
                    CountedLoop::of(self.function, [body, continuing]).filter(|_| break_if.is_none());
                let trips = counted.and_then(|counted| Some((counted.condition, self.trips(&counted)?)));
                self.forget_changed(statement);
                let once = self.block(body) + self.block(continuing);
                self.forget_changed(statement);
                let Some((condition, trips)) = trips else { return once };
                let all = once.saturating_mul(trips.into());
                if all > MAX_SIZE || !self.unroll.allows(body) {
                    return once;
                }
                self.found.insert(condition, trips);
                all
            }
            simple => {
                self.known.note((self.module, self.function), simple);
                if matches!(simple, Statement::Call { .. }) { CALL.into() } else { 1 }
            }
        }
    }

    /// The same for a branch; what its blocks assign is forgotten again.
    fn branches(&mut self, statement: &Statement) -> u64 {
        let before = self.known.clone();
        let mut size = 0;
        for block in blocks::inner(statement) {
            self.known.clone_from(&before);
            size += self.block(block);
        }
        self.known = before;
        size
    }

    /// Forgets the variables that the blocks of a statement may assign.
    fn forget_changed(&mut self, statement: &Statement) {
        let blocks = if self.known.is_empty() { None } else { Some(blocks::inner(statement)) };
        for block in blocks.into_iter().flatten() {
            assigned(self.function, block, &mut |variable| self.known.set(variable, None));
        }
    }

    fn trips(&self, counted: &CountedLoop) -> Option<u32> {
        let source = (self.module, self.function);
        let start = self.known.value(counted.counter).or_else(|| counted.worst_start(source))?;
        counted.trip_count(source, (&|variable| self.known.value(variable), start), MAX_TRIPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Specialisation};

    /// The number of loops that are unrolled.
    fn found(code: &str, unroll: Unroll) -> usize {
        let code = format!(
            "enable subgroups; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(256) fn main() {{ var a = y[0]; {code} y[1] = a; }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        unrolled_loops((&program.module, &program.module.entry_points[0].function), unroll).len()
    }

    #[test]
    fn nested_loops_count_with_their_unrolled_size() {
        let nest = |depth: usize| {
            let begins = ["i", "j", "k", "l"]
                .map(|name| format!("for (var {name} = 1u; {name} < 40000u; {name} *= 2u) {{"));
            format!("{} a += y[a]; {}", begins[..depth].concat(), "}".repeat(depth))
        };
        assert_eq!([1, 2, 3, 4].map(|depth| found(&nest(depth), Unroll::All)), [1, 2, 2, 2]);
        let branches =
            format!("for (var i = 0u; i < 16u; i++) {{ if a == 5u {{ {} }} }}", "a += y[a]; ".repeat(99));
        assert_eq!(found(&branches, Unroll::All), 0);
        assert_eq!([1, 2, 3, 4].map(|depth| found(&nest(depth), Unroll::Innermost)), [1, 1, 1, 1]);
    }

    #[test]
    fn barriers_of_subgroups_do_not_keep_gpus_from_unrolling() {
        let with = |barrier: &str| format!("for (var i = 0u; i < 4u; i++) {{ {barrier} a += y[i]; }}");
        let both = |code: &str| [Unroll::All, Unroll::Innermost].map(|unroll| found(code, unroll));
        assert_eq!(both(&with("")), [1, 1]);
        assert_eq!(both(&with("subgroupBarrier();")), [1, 0]);
        assert_eq!(both(&with("workgroupBarrier();")), [0, 0]);
    }
}
