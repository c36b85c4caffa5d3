//! Unrolling of loops in entry points, and the variables of known value that it depends on.

use naga::valid::GlobalUse;
use naga::{Block, Expression, FastHashSet, Function, Literal, Statement, TypeInner};

use super::Purpose;
use super::body::{Frame, Rebuild};
use crate::analysis::proof::constant;
use crate::analysis::proof::unrolling::copied_loop;
use crate::ir::operands::operands;
use crate::ir::variables::{assigned, loaded, root};
use crate::ir::{Local, Value, blocks};

/// Which loops are unrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unrolling {
    None,
    /// Short ones without barriers.
    Short,
    /// Those whose counter selects cooperative matrices of an array.
    OfMatrices,
}

impl Unrolling {
    pub(super) const fn of(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Speed => Self::Short,
            Purpose::MatricesInRegisters => Self::OfMatrices,
            Purpose::SpeedWithoutUnrolling | Purpose::Required | Purpose::AsWritten => Self::None,
        }
    }
}

/// A loop to unroll.
pub(super) struct UnrollPlan {
    pub(super) trips: u32,
    /// The position of the branch that leaves the loop.
    pub(super) exit: usize,
    pub(super) counter: Local,
}

impl Rebuild<'_> {
    /// The plan for a loop of the form `for (…; condition; variable = …)` with a known trip count; `None` if it
    /// should not be unrolled.
    pub(super) fn unroll_plan(
        &self,
        frame: &Frame<'_>,
        body: &Block,
        continuing: &Block,
    ) -> Option<UnrollPlan> {
        let known = |variable: Local| self.known.value(*frame.locals.get(variable.index())?);
        let barriers_are_allowed = match self.unrolling {
            Unrolling::None => return None,
            Unrolling::Short => false,
            Unrolling::OfMatrices => true,
        };
        let source = (self.module, frame.source);
        let (counted, trips) = copied_loop(source, &known, [body, continuing], barriers_are_allowed)?;
        if self.unrolling == Unrolling::OfMatrices && !self.selects_matrices(frame, body, counted.counter) {
            return None;
        }
        let counter = frame.locals[counted.counter.index()];
        Some(UnrollPlan { trips, exit: counted.exit, counter })
    }

    /// Whether an index of an array of matrices depends on `counter`.
    fn selects_matrices(&self, frame: &Frame<'_>, body: &Block, counter: Local) -> bool {
        let (types, source) = (&self.module.types, frame.source);
        let selects = |value: Value| match source.expressions[value] {
            Expression::Access { base, index } => {
                let array = match *frame.info[base].ty.inner_with(types) {
                    TypeInner::Pointer { base, .. } => &types[base].inner,
                    ref other => other,
                };
                matches!(*array, TypeInner::Array { base, .. }
                    if matches!(types[base].inner, TypeInner::CooperativeMatrix { .. }))
                    && depends_on(source, index, counter)
            }
            _ => false,
        };
        blocks::any(body, &mut |statement| match statement {
            Statement::Emit(range) => range.clone().any(selects),
            _ => false,
        })
    }

    /// The literal behind a new expression, if it is to be used.
    pub(super) fn literal(&self, new: Value) -> Option<Literal> {
        if self.as_written {
            return None;
        }
        constant::literal(self.module, &self.out.expressions, new)
    }

    /// Forgets the values of the variables that blocks of a function may assign, and of the private variables that
    /// the function or its callees assign anywhere: some of these became variables here only after the blocks were
    /// copied.
    pub(super) fn forget_assigned(&mut self, frame: &Frame<'_>, blocks: &[&Block]) {
        if self.known.is_empty() {
            return;
        }
        let mut changed = Vec::new();
        for block in blocks {
            assigned(frame.source, block, &mut |old| changed.extend(frame.locals.get(old.index())));
        }
        // Variables may also be assigned through pointer arguments.
        changed.extend(frame.arguments.iter().filter_map(|&argument| root(&self.out, argument).local()));
        let privates = self.privates.iter();
        changed.extend(
            privates
                .filter(|(global, _)| frame.info[**global].contains(GlobalUse::WRITE))
                .map(|(_, local)| local),
        );
        self.known.forget(&changed);
    }
}

/// Whether an expression is computed from the value of `variable`.
fn depends_on(function: &Function, value: Value, variable: Local) -> bool {
    let (mut seen, mut pending) = (FastHashSet::default(), vec![value]);
    while let Some(value) = pending.pop() {
        if loaded(function, value) == Some(variable) {
            return true;
        }
        if seen.insert(value) {
            pending.extend(operands(&function.expressions[value]));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use naga::Statement;

    use crate::ir::blocks;
    use crate::transform::inline::{Purpose, inline};
    use crate::{Program, Specialisation};

    /// The loops, and the stores of matrices, of an entry point whose loops over matrices are copied.
    fn loops_and_stores(loops: &str) -> (usize, usize) {
        let code = format!(
            "enable wgpu_cooperative_matrix; enable subgroups;
             @group(0) @binding(0) var<storage, read_write> c: array<f32>;
             @compute @workgroup_size(32) fn main() {{
                 var sums: array<coop_mat16x16<f32, C>, 4>;
                 {loops}
             }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let module = inline(&program.module, &program.info, Purpose::MatricesInRegisters).unwrap();
        let program = program.with(module).unwrap();
        let (mut loops, mut stores) = (0, 0);
        blocks::each(&program.module.entry_points[0].function.body, &mut |statement| {
            loops += usize::from(matches!(statement, Statement::Loop { .. }));
            stores += usize::from(matches!(statement, Statement::CooperativeStore { .. }));
        });
        (loops, stores)
    }

    #[test]
    fn loops_that_select_matrices_are_copied() {
        let each = |count: &str, index: &str| {
            format!(
                "for (var i = 0u; i < {count}; i++) {{ subgroupBarrier(); coopStoreT(sums[{index}], &c[i * 256], 16); }}"
            )
        };
        assert_eq!(loops_and_stores(&each("4u", "i")), (0, 4));
        assert_eq!(loops_and_stores(&each("2u", "(i + i) % 4 / 2 + i")), (0, 2));
        let nested = format!("for (var j = 0u; j < 3u; j++) {{ {} }}", each("4u", "i"));
        assert_eq!(loops_and_stores(&nested), (1, 4), "only the inner loop selects matrices");
        assert_eq!(loops_and_stores(&each("arrayLength(&c)", "i")), (1, 1), "not a constant number");
        assert_eq!(loops_and_stores(&each("4u", "0")), (1, 1), "one matrix only");
        let skipped = each("4u", "i").replace("subgroupBarrier", "if i == 2 { continue; } subgroupBarrier");
        assert_eq!(loops_and_stores(&skipped), (1, 1), "it may be continued in the middle");
        let changed = each("4u", "i").replace("subgroupBarrier", "i += 1; subgroupBarrier");
        assert_eq!(loops_and_stores(&changed), (1, 1), "the body changes the counter");
        let own = format!("var own = 0u; {}", each("4u", "own"));
        assert_eq!(loops_and_stores(&own), (1, 1), "the index does not depend on the counter");
    }
}
