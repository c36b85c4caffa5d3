//! Facts about a whole row of invocations, decided once before its loop.
//!
//! In a row, invocations differ in x only. The analysis finds 32-bit integers that are *linear* in x:
//! `e(x) = (e(0) + s * x) mod 2^32`, with a constant `s`. Two kinds of fact follow from `e(0)` alone, computed in 64
//! bits, where nothing wraps (`|s| <= 2^31`, `x < 2^31`):
//!
//! - An access: if `0 <= e(0) + s * x < length` at the first and the last x of an interval, then it holds in
//!   between, as the middle is monotonic in x; and being less than 2^32 (for a signed index: less than 2^31) it *is*
//!   `e(x)`. So the access needs no check there, and its address grows by `s` elements from one x to the next.
//! - A comparison `a(x) < b(x)`: if neither side leaves the range of its type at the first and the last x, the 64-bit
//!   values are exact in between, and a comparison of two linear functions that holds at both ends holds in between.
//!
//! A condition around the whole region is better than a fact: it shortens the loop. `e(x) < u` with slope one and an
//! `e` that does not wrap in the row holds exactly for `x < u - e(0)`.

use std::collections::{BTreeMap, BTreeSet};

use naga::{
    BinaryOperator as Op, Block, Expression, FastHashMap, ScalarKind, Statement, TypeInner, UnaryOperator,
};

use super::Analysis;
use super::variable_storage::Storage;
use crate::analysis::proof::range;
use crate::analysis::uniformity::Shape;
use crate::ir::blocks::Skip;
use crate::ir::operands::{is_result, operands};
use crate::ir::variables::Root;
use crate::ir::{Local, Value};

/// The facts that one copy of a region's loop relies on.
#[derive(Clone, Debug, Default)]
pub(crate) struct AssumedFacts {
    /// Conditions, with their value.
    pub(crate) conditions: FastHashMap<Value, &'static str>,
    /// Accesses that are in range, with their index in 64 bits.
    pub(crate) indices: FastHashMap<Value, String>,
    /// Their index at the first invocation of the row.
    pub(crate) first_indices: FastHashMap<Value, String>,
    /// Accesses that are redirected in this copy.
    pub(crate) redirected: FastHashMap<Value, String>,
}

/// A comparison of integers that are linear along x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) handle: Value,
    pub(crate) op: Op,
    pub(crate) left: Linear,
    pub(crate) right: Linear,
    /// Its value for invocations that go on.
    pub(crate) expected: bool,
}

/// A 32-bit integer that is linear along x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    pub(crate) value: Value,
    pub(crate) slope: i32,
    pub(crate) signed: bool,
}

/// The values that must be computed before the loop over the row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowInputs {
    pub(crate) values: BTreeSet<Value>,
    pub(crate) stored: BTreeSet<Value>,
    pub(crate) variables: BTreeSet<Local>,
    pub(crate) arguments: BTreeSet<u32>,
}

/// The facts about a row of a region.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFacts {
    pub(crate) known: RowInputs,
    /// Conditions around the whole region: they bound x.
    pub(crate) bounds: Vec<Comparison>,
    /// Whether invocations outside the bounds return.
    pub(crate) returns: bool,
    /// Conditions that must have their expected value for the whole row.
    pub(crate) facts: Vec<Comparison>,
    /// Accesses, by handle: the index.
    pub(crate) accesses: BTreeMap<Value, Linear>,
}

impl RowFacts {
    pub(crate) fn is_empty(&self) -> bool {
        self.bounds.is_empty() && self.facts.is_empty() && self.accesses.is_empty()
    }
}

/// Indices with more operations are not analysed.
const MAX_INDEX_OPERATIONS: usize = 64;

/// Maximum number of accesses and facts of a region; further ones are checked in place.
const MAX_FACTS: usize = 256;

impl Analysis<'_, '_> {
    /// Finds the facts about a row of a region.
    pub(crate) fn row_facts(&self, region: usize) -> RowFacts {
        let mut finder = Finder { analysis: self, region, row_facts: RowFacts::default() };
        let body = &self.steps.regions[region].body;
        let guard = finder.guard(body);
        finder.block(body, guard);
        finder.row_facts
    }
}

/// The position of the statement that bounds x for the region; skipped when looking for facts.
type Guard = Option<usize>;

struct Finder<'f, 'p, 'a> {
    analysis: &'f Analysis<'p, 'a>,
    region: usize,
    row_facts: RowFacts,
}

impl Finder<'_, '_, '_> {
    /// Finds a condition around the whole region: its first statement, if it returns, or its only one.
    fn guard(&mut self, body: &Block) -> Guard {
        let place = body.iter().position(|statement| !matches!(statement, Statement::Emit(_)))?;
        let Statement::If { condition, accept, reject } = &body[place] else { return None };
        let returning = |block: &Block| matches!(block[..], [Statement::Return { .. }]);
        let (goes_on, returns) = match (&accept[..], &reject[..]) {
            (_, []) if returning(accept) => (false, true),
            ([], _) if returning(reject) => (true, true),
            (_, []) if self.is_only_effect(body) => (true, false),
            _ => return None,
        };
        let mut bounds = Vec::new();
        self.comparisons(*condition, goes_on, &mut bounds);
        bounds.retain(Comparison::is_bound);
        if bounds.is_empty() {
            return None;
        }
        for bound in &bounds {
            let (left, right) = (bound.left.value, bound.right.value);
            self.require(left);
            self.require(right);
        }
        self.row_facts.bounds = bounds;
        self.row_facts.returns = returns;
        Some(place)
    }

    /// Whether a region has one statement and affects others only through it.
    fn is_only_effect(&self, body: &Block) -> bool {
        let storage = self.analysis.storage;
        let region = &self.analysis.steps.regions[self.region];
        let statements = body.iter().filter(|statement| !matches!(statement, Statement::Emit(_))).count();
        let stored = body.iter().any(|statement| match statement {
            Statement::Emit(range) => range.clone().any(|handle| storage.stored.contains(&handle)),
            _ => false,
        });
        statements == 1
            && !stored
            && region.uniform_values.is_empty()
            && region.skips == Skip::No
            && storage.initialised[self.region].is_empty()
    }

    /// The comparisons of linear integers that must all hold for the condition to be `expected`.
    fn comparisons(&mut self, condition: Value, expected: bool, found: &mut Vec<Comparison>) {
        match self.analysis.function.expressions[condition] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => {
                self.comparisons(expr, !expected, found);
            }
            Expression::Binary { op: Op::LogicalAnd, left, right } if expected => {
                self.comparisons(left, expected, found);
                self.comparisons(right, expected, found);
            }
            Expression::Binary { op: Op::LogicalOr, left, right } if !expected => {
                self.comparisons(left, expected, found);
                self.comparisons(right, expected, found);
            }
            Expression::Binary {
                op:
                    op @ (Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual | Op::Equal | Op::NotEqual),
                left,
                right,
            } => {
                if let (Some(left), Some(right)) = (self.linear(left), self.linear(right)) {
                    found.push(Comparison { handle: condition, op, left, right, expected });
                }
            }
            _ => {}
        }
    }

    /// A value as an integer that is linear in x and computable before the row.
    fn linear(&self, value: Value) -> Option<Linear> {
        let TypeInner::Scalar(naga::Scalar { kind, width: 4 }) = *self.analysis.context.inner(value) else {
            return None;
        };
        let signed = match kind {
            ScalarKind::Sint => true,
            ScalarKind::Uint => false,
            _ => return None,
        };
        // The analysis says nothing about unreachable values.
        if !self.analysis.uniformity.is_reached(value) {
            return None;
        }
        let slope = match self.analysis.uniformity.shape(value) {
            Shape::Uniform => 0,
            Shape::Linear(slope) => slope.cast_signed(),
            Shape::Varying => return None,
        };
        self.is_known(value, &mut RowInputs::default(), &mut 0).then_some(Linear { value, slope, signed })
    }

    /// Records what must be computed beforehand for a value.
    fn require(&mut self, value: Value) {
        let mut known = std::mem::take(&mut self.row_facts.known);
        self.is_known(value, &mut known, &mut 0);
        self.row_facts.known = known;
    }

    /// Whether a value can be computed before the row, for its first invocation.
    fn is_known(&self, value: Value, known: &mut RowInputs, count: &mut usize) -> bool {
        let (analysis, storage) = (self.analysis, self.analysis.storage);
        *count += 1;
        if *count > MAX_INDEX_OPERATIONS {
            return false;
        }
        if analysis.uses.is_named(value) {
            if storage.uniform.contains(&value) || known.values.contains(&value) {
                return true;
            }
            let needs = &storage.needs[self.region];
            if storage.stored.contains(&value) && !needs.defined.contains(&value) {
                known.stored.insert(value);
                return true;
            }
        }
        let fine = match analysis.function.expressions[value] {
            Expression::FunctionArgument(index) => {
                known.arguments.insert(index);
                true
            }
            Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => true,
            Expression::Load { pointer } => self.is_known_load(value, pointer, known),
            Expression::ArrayLength(_) => true,
            ref result if is_result(result) => false,
            ref other => operands(other).all(|operand| self.is_known(operand, known, count)),
        };
        if fine && analysis.uses.is_named(value) {
            known.values.insert(value);
        }
        fine
    }

    /// Whether a load reads a variable that the region does not write, or constant memory at a uniform place.
    fn is_known_load(&self, value: Value, pointer: Value, known: &mut RowInputs) -> bool {
        let (analysis, storage) = (self.analysis, self.analysis.storage);
        if analysis.uniform_code.is_once(value) {
            // Without checks, memory is read only where the program reads it.
            let is_buffer = analysis.uses.root(pointer).is_buffer(analysis.module);
            let checked = !is_buffer || analysis.checks.are_made();
            let safe = checked && !range::is_proven_by_conditions(analysis.context, pointer);
            // An unnamed load names the operands of its index where it is printed.
            return safe && !analysis.uses.is_named(value) && operands_known(self, pointer, known);
        }
        match analysis.function.expressions[pointer] {
            Expression::LocalVariable(variable) => {
                let stored = storage.variable(variable) == Storage::Lanes
                    && !storage.needs[self.region].writes.contains(&variable)
                    && !storage.initialised[self.region].contains(&variable);
                if stored {
                    known.variables.insert(variable);
                }
                stored
            }
            _ => false,
        }
    }

    /// Finds facts and accesses in code that the whole row executes; `guard` is the statement that bounds the row.
    fn block(&mut self, block: &Block, guard: Guard) {
        for (place, statement) in block.iter().enumerate() {
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone().filter(|&handle| self.analysis.uses.is_named(handle)) {
                        self.operands(handle);
                    }
                }
                Statement::Block(inner) => self.block(inner, None),
                Statement::If { condition, accept, reject } => {
                    self.value(*condition);
                    if guard == Some(place) {
                        self.block(accept, None);
                        self.block(reject, None);
                        continue;
                    }
                    let leaves = accept.iter().any(is_jump);
                    let mut facts = Vec::new();
                    self.comparisons(*condition, !leaves, &mut facts);
                    facts.retain(Comparison::is_fact);
                    if facts.is_empty() || self.row_facts.facts.len() > MAX_FACTS {
                        continue;
                    }
                    for fact in &facts {
                        self.require(fact.left.value);
                        self.require(fact.right.value);
                    }
                    self.row_facts.facts.extend(facts);
                    self.block(if leaves { reject } else { accept }, None);
                }
                Statement::Loop { body, continuing, .. } => {
                    self.block(body, None);
                    self.block(continuing, None);
                }
                Statement::Store { pointer, value } => {
                    self.value(*pointer);
                    self.value(*value);
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, value: Value) {
        if !self.analysis.uses.is_named(value) {
            self.operands(value);
        }
    }

    fn operands(&mut self, value: Value) {
        if let Expression::Access { base, index } = self.analysis.function.expressions[value]
            && self.analysis.context.is_pointer(base)
            && matches!(self.analysis.context.pointee(base), TypeInner::Array { .. })
            && self.row_facts.accesses.len() < MAX_FACTS
            && let Some(linear) = self.linear(index)
        {
            self.require(index);
            self.row_facts.accesses.insert(value, linear);
        }
        for operand in operands(&self.analysis.function.expressions[value]) {
            self.value(operand);
        }
    }
}

/// Whether all operands of a pointer's indices can be computed before the row.
fn operands_known(finder: &Finder<'_, '_, '_>, pointer: Value, known: &mut RowInputs) -> bool {
    let function = finder.analysis.function;
    match function.expressions[pointer] {
        Expression::Access { base, index } => {
            operands_known(finder, base, known) && finder.is_known(index, known, &mut 0)
        }
        Expression::AccessIndex { base, .. } => operands_known(finder, base, known),
        Expression::LocalVariable(_) | Expression::GlobalVariable(_) => {
            !matches!(finder.analysis.uses.root(pointer), Root::Argument)
        }
        _ => false,
    }
}

/// Whether a statement ends the region for the invocation.
fn is_jump(statement: &Statement) -> bool {
    matches!(statement, Statement::Return { .. } | Statement::Continue | Statement::Break)
}

impl Comparison {
    /// Whether it bounds x: one side grows by one and the other is the same for the row, or neither depends on x.
    fn is_bound(&self) -> bool {
        let equal = match (self.op, self.expected) {
            (Op::Equal, false) | (Op::NotEqual, true) => self.left.slope == 0 && self.right.slope == 0,
            _ => true,
        };
        equal && matches!((self.left.slope, self.right.slope), (0 | 1, 0) | (0, 1))
    }

    /// Whether checking it at both ends of a row suffices.
    fn is_fact(&self) -> bool {
        let along = self.left.slope == 0 && self.right.slope == 0;
        along || !matches!(self.op, Op::Equal | Op::NotEqual)
    }

    /// The operator that holds for invocations that go on.
    pub(crate) fn holding(&self) -> Op {
        match (self.expected, self.op) {
            (true, op) => op,
            (false, Op::Less) => Op::GreaterEqual,
            (false, Op::LessEqual) => Op::Greater,
            (false, Op::Greater) => Op::LessEqual,
            (false, Op::GreaterEqual) => Op::Less,
            (false, Op::Equal) => Op::NotEqual,
            (false, _) => Op::Equal,
        }
    }
}
