//! Whether the loop over a row of invocations may be declared free of dependences.
//!
//! `#pragma GCC ivdep` and clang's `assume_safety` promise more than that iterations run in any order. GCC applies
//! them to *every* pair of accesses whose addresses it cannot relate, also to two of the same iteration: it moves
//! loads up and stores down across each other. Memory that is private to an iteration in the C text is also the same
//! memory for all iterations. So the pragma is emitted only if, for each object that the region writes:
//!
//! - it is not an array in the loop's body with an index known only at run time (with constant indices it becomes
//!   registers), and
//! - any two accesses of one invocation, one of them a write, are to the same place and spelled the same, or to
//!   provably different places, or the second stores a value computed from what the first loaded: data flow keeps
//!   them in order.
//!
//! That invocations do not touch each other's elements between barriers is WGSL's rule against data races.

use naga::{AddressSpace, BinaryOperator, Block, Expression, FastHashSet, ScalarKind, Statement, TypeInner};

use super::Analysis;
use super::row_facts::RowFacts;
use super::variable_storage::Storage;
use crate::analysis::proof::range;
use crate::analysis::uniformity::{Shape, constant};
use crate::ir::operands::operands;
use crate::ir::variables::{Root, is_read_only, root};
use crate::ir::{Value, blocks};

/// Accesses are compared in pairs; regions with more than this are not analysed.
const MAX_ACCESSES: usize = 512;

/// A load or store of one invocation.
#[derive(Clone, Copy, Debug)]
struct MemoryAccess {
    pointer: Value,
    /// The load expression, if it is a load.
    load: Option<Value>,
    /// The stored value, if it is a store.
    value: Option<Value>,
    /// Whether it is inside a loop of the region.
    looped: bool,
}

/// How two places in one object relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The same place, or part of the other, and spelled the same.
    Same,
    Disjoint,
    Unknown,
}

/// A step of an access chain, starting from the object.
#[derive(Clone, Copy, Debug)]
enum PathStep {
    Known(u32),
    Index { access: Value, index: Value },
}

/// An access with its access chain.
struct Chain {
    access: MemoryAccess,
    object: Root,
    parts: Vec<PathStep>,
}

impl Analysis<'_, '_> {
    /// Whether the loop over a row of a region may be declared free of dependences, given `row_facts`.
    pub(crate) fn is_independent(&self, index: usize, row_facts: &RowFacts) -> bool {
        let mut finder = Finder {
            analysis: self,
            region: index,
            accesses: Vec::new(),
            seen: FastHashSet::default(),
            vectorises: true,
        };
        let region = &self.steps.regions[index];
        finder.block(&region.body, false);
        region.uniform_values.iter().for_each(|&value| finder.value(value, false));
        // A call may access any memory.
        !self.storage.needs[index].atomics
            && finder.vectorises
            && finder.accesses.len() <= MAX_ACCESSES
            && self.are_independent(&finder.accesses, row_facts)
    }

    /// Takes one step from the comparison budget; `false` if it is exhausted.
    fn has_budget(&self) -> bool {
        let left = self.comparison_budget.get();
        self.comparison_budget.set(left.saturating_sub(1));
        left > 0
    }

    fn are_independent(&self, accesses: &[MemoryAccess], row_facts: &RowFacts) -> bool {
        let chain = |access: &MemoryAccess| Chain {
            access: *access,
            object: root(self.function, access.pointer),
            parts: self.parts(access.pointer),
        };
        let chains: Vec<_> = accesses.iter().map(chain).collect();
        chains.iter().enumerate().all(|(at, chain)| {
            let first = &chain.access;
            let in_place = first.value.is_some() && self.is_stored_in_place(chain.object, &chains);
            chains[at..].iter().enumerate().all(|(distance, other)| {
                let second = &other.access;
                let writes = first.value.is_some() || second.value.is_some();
                if !self.has_budget() {
                    return false;
                }
                if !writes || chain.object != other.object {
                    return true;
                }
                if distance == 0 {
                    // Another iteration may store to the same place again.
                    return !first.looped;
                }
                match self.relation(&chain.parts, &other.parts, row_facts) {
                    Relation::Disjoint | Relation::Same => !(first.looped || second.looped),
                    Relation::Unknown => in_place || self.is_ordered(first, second),
                }
            })
        })
    }

    /// Whether all accesses to an object are stores next to those of the neighbouring invocations. Compilers keep
    /// such stores in order: they merge only those at a constant distance within a stride.
    fn is_stored_in_place(&self, object: Root, chains: &[Chain]) -> bool {
        let mut others = chains.iter().filter(|other| other.object == object).map(|other| &other.access);
        others.all(|other| other.value.is_some() && !other.looped && self.is_consecutive(other.pointer))
    }

    /// Whether a pointer leads to a scalar array element, and to consecutive elements in consecutive invocations.
    fn is_consecutive(&self, pointer: Value) -> bool {
        let Expression::Access { base, index } = self.function.expressions[pointer] else { return false };
        let scalar = matches!(self.context.pointee(pointer), TypeInner::Scalar(_));
        let array = matches!(self.context.pointee(base), TypeInner::Array { .. });
        scalar && array && self.uniformity.shape(index) == Shape::Linear(1)
    }

    /// Whether the second access stores a value computed from the first.
    fn is_ordered(&self, first: &MemoryAccess, second: &MemoryAccess) -> bool {
        let (Some(load), Some(value)) = (first.load, second.value) else { return false };
        !first.looped && !second.looped && self.depends(value, load, &mut FastHashSet::default())
    }

    fn depends(&self, value: Value, on: Value, seen: &mut FastHashSet<Value>) -> bool {
        value == on
            || (self.has_budget()
                && seen.insert(value)
                && operands(&self.function.expressions[value]).any(|operand| self.depends(operand, on, seen)))
    }

    fn relation(&self, first: &[PathStep], second: &[PathStep], row_facts: &RowFacts) -> Relation {
        let mut relation = Relation::Same;
        for (&a, &b) in first.iter().zip(second) {
            relation = match (a, b) {
                (PathStep::Known(a), PathStep::Known(b)) if a != b => return Relation::Disjoint,
                (PathStep::Known(_), PathStep::Known(_)) => relation,
                (PathStep::Index { access: a, index: i }, PathStep::Index { access: b, index: j }) => {
                    let same_spelling =
                        row_facts.accesses.contains_key(&a) == row_facts.accesses.contains_key(&b);
                    match self.distance(i, j) {
                        Some(0) if same_spelling => relation,
                        Some(1..) => return Relation::Disjoint,
                        _ => Relation::Unknown,
                    }
                }
                _ => Relation::Unknown,
            };
        }
        relation
    }

    /// The access chain to a place; a place inside a vector counts as the whole vector unless the component is
    /// constant.
    fn parts(&self, mut pointer: Value) -> Vec<PathStep> {
        let mut parts = Vec::new();
        loop {
            let context = self.context;
            pointer = match self.function.expressions[pointer] {
                Expression::Access { base, index } => {
                    match range::constant_of(context, index) {
                        Some(known) => parts.push(PathStep::Known(u32::try_from(known).unwrap_or(u32::MAX))),
                        None if context.is_vector_pointer(base) => parts.clear(),
                        None => parts.push(PathStep::Index { access: pointer, index }),
                    }
                    base
                }
                Expression::AccessIndex { base, index } => {
                    parts.push(PathStep::Known(index));
                    base
                }
                _ => break,
            };
        }
        parts.reverse();
        parts
    }

    /// The difference of two 32-bit integers modulo 2^32, if it is constant.
    fn distance(&self, a: Value, b: Value) -> Option<u32> {
        let mut sum = Sum { analysis: self, terms: Vec::new() };
        sum.add(a, 1, 0)?;
        sum.add(b, u32::MAX, 0)?;
        match sum.terms[..] {
            [] => Some(0),
            [(None, constant)] => Some(constant),
            _ => None,
        }
    }

    /// Whether two expressions have the same value throughout the region.
    fn is_same(&self, a: Value, b: Value, depth: u32) -> bool {
        if a == b {
            return true;
        }
        let same = |a, b| depth < 8 && self.has_budget() && self.is_same(a, b, depth + 1);
        match (&self.function.expressions[a], &self.function.expressions[b]) {
            (Expression::Literal(a), Expression::Literal(b)) => a == b,
            (Expression::Constant(a), Expression::Constant(b)) => a == b,
            (Expression::FunctionArgument(a), Expression::FunctionArgument(b)) => a == b,
            (
                &Expression::AccessIndex { base: a, index: i },
                &Expression::AccessIndex { base: b, index: j },
            ) => i == j && same(a, b),
            (
                &Expression::Binary { op, left, right },
                &Expression::Binary { op: other, left: a, right: b },
            ) => op == other && same(left, a) && same(right, b),
            (
                &Expression::As { expr: a, kind, convert },
                &Expression::As { expr: b, kind: other, convert: width },
            ) => kind == other && convert == width && same(a, b),
            (&Expression::Load { pointer: a }, &Expression::Load { pointer: b }) => self.is_same_load(a, b),
            _ => false,
        }
    }

    /// Whether two loads read the same place, which the region does not write.
    fn is_same_load(&self, a: Value, b: Value) -> bool {
        match (&self.function.expressions[a], &self.function.expressions[b]) {
            (
                &Expression::AccessIndex { base: a, index: i },
                &Expression::AccessIndex { base: b, index: j },
            ) => i == j && self.is_same_load(a, b),
            (Expression::GlobalVariable(a), Expression::GlobalVariable(b)) => {
                a == b && is_read_only(self.module.global_variables[*a].space)
            }
            (Expression::LocalVariable(a), Expression::LocalVariable(b)) => {
                a == b && self.storage.needs.iter().all(|needs| !needs.writes.contains(a))
            }
            _ => false,
        }
    }
}

/// A linear combination of values modulo 2^32; the term `None` is the constant one.
struct Sum<'f, 'p, 'a> {
    analysis: &'f Analysis<'p, 'a>,
    terms: Vec<(Option<Value>, u32)>,
}

impl Sum<'_, '_, '_> {
    /// Adds a multiple of a value; `None` if there are too many terms.
    fn add(&mut self, value: Value, factor: u32, depth: u32) -> Option<()> {
        if !self.analysis.has_budget() {
            return None;
        }
        let function = self.analysis.function;
        let word = constant(self.analysis.module, function, value);
        if let Some(word) = word {
            return self.term(None, factor.wrapping_mul(word));
        }
        let is_word = || {
            self.analysis.context.inner(value).scalar().is_some_and(|scalar| {
                scalar.width == 4 && matches!(scalar.kind, ScalarKind::Sint | ScalarKind::Uint)
            })
        };
        match function.expressions[value] {
            Expression::Binary { op: BinaryOperator::Add, left, right } if depth < 16 && is_word() => {
                self.add(left, factor, depth + 1)?;
                self.add(right, factor, depth + 1)
            }
            Expression::Binary { op: BinaryOperator::Subtract, left, right } if depth < 16 && is_word() => {
                self.add(left, factor, depth + 1)?;
                self.add(right, factor.wrapping_neg(), depth + 1)
            }
            Expression::Binary { op: BinaryOperator::Multiply, left, right } if depth < 16 && is_word() => {
                let of = |value| constant(self.analysis.module, function, value);
                let (rest, times) = match of(left) {
                    Some(times) => (right, Some(times)),
                    None => (left, of(right)),
                };
                match times {
                    Some(times) => self.add(rest, factor.wrapping_mul(times), depth + 1),
                    None => self.term(Some(value), factor),
                }
            }
            _ => self.term(Some(value), factor),
        }
    }

    fn term(&mut self, value: Option<Value>, factor: u32) -> Option<()> {
        let analysis = self.analysis;
        let same = |other: &Option<Value>| match (value, *other) {
            (None, None) => true,
            (Some(a), Some(b)) => analysis.is_same(a, b, 0),
            _ => false,
        };
        match self.terms.iter().position(|(other, _)| same(other)) {
            Some(at) => self.terms[at].1 = self.terms[at].1.wrapping_add(factor),
            None => self.terms.push((value, factor)),
        }
        self.terms.retain(|(_, factor)| *factor != 0);
        (self.terms.len() <= 16).then_some(())
    }
}

struct Finder<'f, 'p, 'a> {
    analysis: &'f Analysis<'p, 'a>,
    region: usize,
    accesses: Vec<MemoryAccess>,
    seen: FastHashSet<Value>,
    /// Whether no array in the loop's body prevents the pragma.
    vectorises: bool,
}

impl Finder<'_, '_, '_> {
    fn block(&mut self, block: &Block, looped: bool) {
        for statement in block {
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone().filter(|&handle| self.analysis.uses.is_named(handle)) {
                        self.expression(handle, looped);
                    }
                }
                Statement::Store { pointer, value } => {
                    self.value(*value, looped);
                    self.chain(*pointer, looped);
                    self.access(MemoryAccess { pointer: *pointer, load: None, value: Some(*value), looped });
                }
                Statement::Call { arguments, .. } => {
                    for &argument in arguments {
                        self.value(argument, looped);
                        self.vectorises &= !self.analysis.context.is_pointer(argument);
                    }
                }
                Statement::Atomic { .. } => self.vectorises = false,
                other => {
                    let looped = looped || matches!(other, Statement::Loop { .. });
                    blocks::control(other).into_iter().for_each(|value| self.value(value, looped));
                    blocks::inner(other).for_each(|block| self.block(block, looped));
                }
            }
        }
    }

    fn value(&mut self, value: Value, looped: bool) {
        if !self.analysis.uses.is_named(value) {
            self.expression(value, looped);
        }
    }

    fn expression(&mut self, value: Value, looped: bool) {
        if !self.seen.insert(value) {
            return;
        }
        match self.analysis.function.expressions[value] {
            Expression::Load { pointer } => {
                self.chain(pointer, looped);
                self.access(MemoryAccess { pointer, load: Some(value), value: None, looped });
            }
            Expression::Access { base, .. } if self.is_array_of_the_body(base) => self.vectorises = false,
            ref other => operands(other).for_each(|operand| self.value(operand, looped)),
        }
    }

    /// The indices of an access chain are evaluated as well.
    fn chain(&mut self, pointer: Value, looped: bool) {
        match self.analysis.function.expressions[pointer] {
            Expression::Access { base, index } => {
                self.value(index, looped);
                self.chain(base, looped);
            }
            Expression::AccessIndex { base, .. } => self.chain(base, looped),
            _ => {}
        }
    }

    /// Whether the element of an array value is read through memory in the loop's body.
    fn is_array_of_the_body(&self, mut base: Value) -> bool {
        let analysis = self.analysis;
        if analysis.context.is_pointer(base)
            || matches!(analysis.context.inner(base), TypeInner::Vector { .. })
        {
            return false;
        }
        while let Expression::Access { base: outer, .. } | Expression::AccessIndex { base: outer, .. } =
            analysis.function.expressions[base]
        {
            base = outer;
        }
        let fixed =
            matches!(analysis.function.expressions[base], Expression::Constant(_) | Expression::ZeroValue(_));
        !fixed && !analysis.storage.uniform.contains(&base)
    }

    /// Records an access to memory, unless it is a register or nothing writes the object.
    fn access(&mut self, access: MemoryAccess) {
        let analysis = self.analysis;
        match root(analysis.function, access.pointer) {
            Root::Local(variable) => match analysis.storage.variable(variable) {
                Storage::LanesInPlace => self.accesses.push(access),
                Storage::Body(_) if self.is_indexed(access.pointer) => {
                    let written = analysis.storage.needs[self.region].writes.contains(&variable);
                    self.vectorises &= !written;
                }
                _ => {}
            },
            Root::Global(variable) => match analysis.module.global_variables[variable].space {
                AddressSpace::WorkGroup | AddressSpace::Storage { .. } => self.accesses.push(access),
                _ => {}
            },
            Root::Argument => self.vectorises = false,
        }
    }

    /// Whether the element that a chain leads to is known only at run time.
    fn is_indexed(&self, pointer: Value) -> bool {
        self.analysis.parts(pointer).iter().any(|part| matches!(part, PathStep::Index { .. }))
    }
}
