//! Finds the stores that write whole rows of a tensor which the kernel never reads, so that they may bypass the caches.

use std::collections::BTreeMap;

use naga::{
    BinaryOperator as Op, Block, Expression, FastHashMap, Scalar, Statement, TypeInner, UnaryOperator,
};

use super::Analysis;
use super::row_facts::RowFacts;
use crate::ir::blocks::Skip;
use crate::ir::variables::root;
use crate::ir::{Global, Value};

/// A row must consist of whole cache lines.
pub(crate) const LINE_BYTES: u32 = 64;

/// Entry points with more expressions get no such copy.
const MAX_EXPRESSIONS: usize = 1000;

/// A store by every invocation of a row, to consecutive elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NontemporalStore {
    pub(crate) access: Value,
    pub(crate) variable: Global,
    pub(crate) scalar: Scalar,
}

/// The context of the search for such stores.
struct Scan<'c> {
    /// The conditions among the row facts, with their values.
    known: FastHashMap<Value, bool>,
    width: u32,
    row_facts: &'c RowFacts,
}

/// By variable: its only such store; `None` if there are others.
type Found = BTreeMap<Global, Option<NontemporalStore>>;

impl Analysis<'_, '_> {
    /// The stores of a region that write whole rows, given the row facts.
    pub(crate) fn nontemporal_stores(
        &self,
        index: usize,
        width: u32,
        row_facts: &RowFacts,
    ) -> Vec<NontemporalStore> {
        let region = &self.steps.regions[index];
        let mut known = FastHashMap::default();
        known
            .extend(row_facts.bounds.iter().chain(&row_facts.facts).map(|fact| (fact.handle, fact.expected)));
        let scan = Scan { known, width, row_facts };
        let mut found = Found::new();
        let straight = region.skips == Skip::No
            && self.function.expressions.len() <= MAX_EXPRESSIONS
            && self.scan(&region.body, true, &scan, &mut found);
        if straight { found.into_values().flatten().collect() } else { Vec::new() }
    }

    /// Finds stores; `certain` if every invocation reaches the block. Returns `false` if some may not reach its
    /// end.
    fn scan(&self, block: &Block, certain: bool, scan: &Scan<'_>, found: &mut Found) -> bool {
        block.iter().all(|statement| match statement {
            Statement::Store { pointer, .. } => {
                if let Some(variable) = self.written(*pointer) {
                    let stream =
                        if certain { self.nontemporal_store(*pointer, variable, scan) } else { None };
                    found.entry(variable).and_modify(|other| *other = None).or_insert(stream);
                }
                true
            }
            Statement::Block(inner) => self.scan(inner, certain, scan, found),
            Statement::If { condition, accept, reject } => {
                if self.is_certain(*condition, true, scan) {
                    self.scan(accept, certain, scan, found)
                } else if self.is_certain(*condition, false, scan) {
                    self.scan(reject, certain, scan, found)
                } else {
                    self.scan(accept, false, scan, found) && self.scan(reject, false, scan, found)
                }
            }
            Statement::Loop { body, continuing, .. } => {
                self.scan(body, false, scan, found) && self.scan(continuing, false, scan, found)
            }
            Statement::Switch { cases, .. } => {
                cases.iter().all(|case| self.scan(&case.body, false, scan, found))
            }
            Statement::Break | Statement::Continue => !certain,
            Statement::Return { .. }
            | Statement::Kill
            | Statement::Call { .. }
            | Statement::Atomic { .. } => false,
            _ => true,
        })
    }

    /// Whether the row facts imply a condition's value for all invocations.
    fn is_certain(&self, condition: Value, holds: bool, scan: &Scan<'_>) -> bool {
        match self.function.expressions[condition] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => self.is_certain(expr, !holds, scan),
            Expression::Binary { op, left, right }
                if (op == Op::LogicalAnd && holds) || (op == Op::LogicalOr && !holds) =>
            {
                self.is_certain(left, holds, scan) && self.is_certain(right, holds, scan)
            }
            _ => scan.known.get(&condition) == Some(&holds),
        }
    }

    /// The storage buffer that a pointer leads into.
    fn written(&self, pointer: Value) -> Option<Global> {
        let root = root(self.function, pointer);
        root.global().filter(|_| root.is_buffer(self.module))
    }

    fn nontemporal_store(
        &self,
        access: Value,
        variable: Global,
        scan: &Scan<'_>,
    ) -> Option<NontemporalStore> {
        let Expression::Access { base, .. } = self.function.expressions[access] else { return None };
        let TypeInner::Array { base: element, .. } =
            self.module.types[self.module.global_variables[variable].ty].inner
        else {
            return None;
        };
        let TypeInner::Scalar(scalar) = self.module.types[element].inner else { return None };
        let only_written = self.only_written.contains(&variable);
        let beside = scan.row_facts.accesses.get(&access).is_some_and(|index| index.slope == 1);
        let direct = matches!(self.function.expressions[base], Expression::GlobalVariable(_));
        let lines = (scan.width * u32::from(scalar.width)).is_multiple_of(LINE_BYTES);
        (only_written && beside && direct && lines).then_some(NontemporalStore { access, variable, scalar })
    }
}
