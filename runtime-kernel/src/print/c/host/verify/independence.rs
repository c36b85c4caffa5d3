//! Verifies that a loop is declared free of dependences only if any two accesses of an invocation provably do not
//! overlap, or are spelled the same.
//!
//! Indices are compared numerically: each is computed from arbitrary numbers for what it depends on. Sums and
//! products modulo 2^32 that differ by the same number in several trials always differ by it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use naga::{
    AddressSpace, BinaryOperator as Op, Binding, Block, BuiltIn, Expression, FastHashMap, Literal, Statement,
    TypeInner,
};

use super::super::schedule::row_facts::RowFacts;
use super::super::schedule::variable_storage::Storage;
use super::Verdict;
use super::evaluated::{Evaluated, Uses};
use crate::ir::operands::{is_result, operands};
use crate::ir::variables::{Root, root};
use crate::ir::{Value, blocks};

const TRIALS: u64 = 6;

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    on.schedule.rows.iter().enumerate().try_for_each(|(region, row)| {
        let copies =
            [(row.general_is_independent, &RowFacts::default()), (row.fast_is_independent, &row.row_facts)];
        copies.into_iter().filter(|(declared, _)| *declared).try_for_each(|(_, row_facts)| {
            let (numbers, identities, slopes) = <_>::default();
            Region { on, uses: on.region(region), row_facts, numbers, identities, slopes }.verify(region)
        })
    })
}

struct Region<'r, 'v, 'a> {
    on: &'r Evaluated<'v, 'a>,
    uses: Uses,
    row_facts: &'r RowFacts,
    /// Memo tables. By value and trial: its number. By value: its identity hash, and its slope.
    numbers: RefCell<FastHashMap<(Value, u64), u32>>,
    identities: RefCell<FastHashMap<Value, u64>>,
    slopes: RefCell<FastHashMap<Value, Option<u32>>>,
}

/// An access to memory that several expressions of the C text may reach.
#[derive(Clone, Copy)]
struct Access {
    pointer: Value,
    load: Option<Value>,
    stored: Option<Value>,
}

impl Region<'_, '_, '_> {
    fn verify(&self, region: usize) -> Verdict {
        let body = &self.on.schedule.steps.regions[region].body;
        let wrong = |what: &str| Err(format!("region {region}: {what}"));
        if self.uses.calls {
            return wrong("a function or an atomic operation may touch anything");
        }
        let stores = stores(body);
        for &part in &self.uses.evaluated {
            if let Expression::Access { base, index } = self.on.function.expressions[part]
                && !self.is_constant(index)
                && self.is_own_array(base)
            {
                return wrong("an array in the body of the loop");
            }
        }
        let loads = self.uses.evaluated.iter().filter_map(|&load| match self.on.function.expressions[load] {
            Expression::Load { pointer } => Some(Access { pointer, load: Some(load), stored: None }),
            _ => None,
        });
        let written =
            stores.iter().map(|&(pointer, value)| Access { pointer, load: None, stored: Some(value) });
        let all: Vec<Access> = loads.chain(written).filter(|access| self.is_memory(access.pointer)).collect();
        let looped = looped_stores(body, false).into_iter().any(|pointer| self.is_memory(pointer));
        if looped {
            return wrong("a store in a loop of the items");
        }
        for (place, a) in all.iter().enumerate() {
            for b in &all[place + 1..] {
                let writes = a.stored.is_some() || b.stored.is_some();
                if writes
                    && root(self.on.function, a.pointer) == root(self.on.function, b.pointer)
                    && !self.are_apart(*a, *b, &all)
                {
                    return wrong("two accesses that may meet");
                }
            }
        }
        Ok(())
    }

    /// Whether a value is read through memory that the loop's body declares.
    fn is_own_array(&self, mut base: Value) -> bool {
        let on = self.on;
        if on.context.is_pointer(base) {
            let Some(variable) = on.variable(base) else { return false };
            let constant = self.path(base).iter().all(|step| matches!(step, PathStep::Known(_)));
            let vector = matches!(on.context.pointee(base), TypeInner::Vector { .. });
            let body = matches!(on.schedule.storage.variable(variable), Storage::Body(_));
            return body && self.uses.written.contains(&variable) && !(constant && vector);
        }
        if matches!(on.context.inner(base), TypeInner::Vector { .. }) {
            return false;
        }
        while let Expression::Access { base: outer, .. } | Expression::AccessIndex { base: outer, .. } =
            on.function.expressions[base]
        {
            base = outer;
        }
        !matches!(on.function.expressions[base], Expression::Constant(_) | Expression::ZeroValue(_))
            && !on.schedule.storage.uniform.contains(&base)
    }

    /// Whether a pointer leads to memory other than registers and read-only memory.
    fn is_memory(&self, pointer: Value) -> bool {
        match root(self.on.function, pointer) {
            Root::Local(variable) => self.on.schedule.storage.variable(variable) == Storage::LanesInPlace,
            Root::Global(variable) => matches!(
                self.on.module.global_variables[variable].space,
                AddressSpace::WorkGroup | AddressSpace::Storage { .. }
            ),
            Root::Argument => true,
        }
    }

    fn are_apart(&self, a: Access, b: Access, all: &[Access]) -> bool {
        let (first, second) = (self.path(a.pointer), self.path(b.pointer));
        let mut alike = true;
        for pair in first.iter().zip(&second) {
            match pair {
                (PathStep::Known(a), PathStep::Known(b)) if a != b => return true,
                (PathStep::Known(_), PathStep::Known(_)) => {}
                (PathStep::Index(a, i), PathStep::Index(b, j)) => {
                    let distance = self.distance(*i, *j);
                    if distance.is_some_and(|distance| distance != 0) {
                        return true;
                    }
                    let spelled =
                        self.row_facts.accesses.contains_key(a) == self.row_facts.accesses.contains_key(b);
                    alike &= distance == Some(0) && spelled;
                }
                _ => alike = false,
            }
        }
        alike
            || self.follows(a, b)
            || self.follows(b, a)
            || self.are_side_by_side(root(self.on.function, a.pointer), all)
    }

    /// Whether `b` stores a value computed from what `a` loads.
    fn follows(&self, a: Access, b: Access) -> bool {
        let (Some(load), Some(stored)) = (a.load, b.stored) else { return false };
        let (mut seen, mut pending) = (BTreeSet::new(), vec![stored]);
        while let Some(value) = pending.pop() {
            if value == load {
                return true;
            }
            if seen.insert(value) {
                pending.extend(operands(&self.on.function.expressions[value]));
            }
        }
        false
    }

    /// Whether all accesses to an object are stores of single array elements.
    fn are_side_by_side(&self, written: Root, all: &[Access]) -> bool {
        all.iter().filter(|access| root(self.on.function, access.pointer) == written).all(|access| {
            let element = matches!(self.on.context.pointee(access.pointer), TypeInner::Scalar(_));
            let index = match self.on.function.expressions[access.pointer] {
                Expression::Access { index, .. } => self.slope(index, 0),
                _ => None,
            };
            access.stored.is_some() && element && index == Some(1)
        })
    }

    /// The growth of a value per invocation of a row; `None` if it is not constant, or unknown.
    fn slope(&self, value: Value, depth: u32) -> Option<u32> {
        if let Some(&known) = self.slopes.borrow().get(&value) {
            return known;
        }
        let slope = self.grow(value, depth);
        self.slopes.borrow_mut().insert(value, slope);
        slope
    }

    fn grow(&self, value: Value, depth: u32) -> Option<u32> {
        let on = self.on;
        let of = |value| self.slope(value, depth + 1);
        let places = |binding: &Option<Binding>, axis| match binding {
            Some(Binding::BuiltIn(BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId)) => {
                Some(u32::from(axis == Some(0)))
            }
            Some(Binding::BuiltIn(BuiltIn::LocalInvocationIndex)) => Some(1),
            Some(Binding::BuiltIn(BuiltIn::WorkGroupId | BuiltIn::NumWorkGroups)) => Some(0),
            _ => None,
        };
        match on.function.expressions[value] {
            _ if depth > 32 => None,
            Expression::FunctionArgument(index) => {
                places(&on.function.arguments[index as usize].binding, None)
            }
            Expression::AccessIndex { base, index } => match on.function.expressions[base] {
                Expression::FunctionArgument(argument) => {
                    places(&on.function.arguments[argument as usize].binding, Some(index))
                }
                _ => of(base).filter(|slope| *slope == 0),
            },
            Expression::Binary { op: Op::Add, left, right } => Some(of(left)?.wrapping_add(of(right)?)),
            Expression::Binary { op: Op::Subtract, left, right } => Some(of(left)?.wrapping_sub(of(right)?)),
            Expression::Binary { op: Op::Multiply, left, right } => match (of(left)?, of(right)?) {
                (0, 0) => Some(0),
                (slope, 0) => self.word(right).map(|times| slope.wrapping_mul(times)),
                (0, slope) => self.word(left).map(|times| slope.wrapping_mul(times)),
                _ => None,
            },
            Expression::Load { pointer } => {
                let group = match root(on.function, pointer) {
                    Root::Local(variable) => on.schedule.storage.variable(variable) == Storage::Group,
                    _ => super::values::is_read_only(on, pointer),
                };
                group
                    .then_some(0)
                    .filter(|_| self.path(pointer).iter().all(|step| matches!(step, PathStep::Known(_))))
            }
            ref other if is_computed(other) => {
                operands(other).all(|operand| of(operand) == Some(0)).then_some(0)
            }
            _ => None,
        }
    }

    /// The value of a 32-bit constant.
    fn word(&self, value: Value) -> Option<u32> {
        matches!(self.on.function.expressions[value], Expression::Literal(_) | Expression::Constant(_))
            .then(|| self.number(value, 0, 0))
    }

    /// The difference of two indices modulo 2^32, if it is always the same.
    fn distance(&self, a: Value, b: Value) -> Option<u32> {
        let mut found = None;
        for trial in 0..TRIALS {
            let distance = self.number(a, trial, 0).wrapping_sub(self.number(b, trial, 0));
            if *found.get_or_insert(distance) != distance {
                return None;
            }
        }
        found
    }

    /// A number for a value; provably equal values get equal numbers.
    fn number(&self, value: Value, trial: u64, depth: u32) -> u32 {
        if let Some(&known) = self.numbers.borrow().get(&(value, trial)) {
            return known;
        }
        let number = self.compute(value, trial, depth);
        self.numbers.borrow_mut().insert((value, trial), number);
        number
    }

    fn compute(&self, value: Value, trial: u64, depth: u32) -> u32 {
        let on = self.on;
        let of = |value| self.number(value, trial, depth + 1);
        let word = matches!(on.context.inner(value), TypeInner::Scalar(scalar)
            if scalar.width == 4 && matches!(scalar.kind, naga::ScalarKind::Sint | naga::ScalarKind::Uint));
        if depth < 32 && word {
            match on.function.expressions[value] {
                Expression::Literal(Literal::U32(word)) => return word,
                Expression::Literal(Literal::I32(word)) => return word.cast_unsigned(),
                Expression::Constant(constant) => {
                    match on.module.global_expressions[on.module.constants[constant].init] {
                        Expression::Literal(Literal::U32(word)) => return word,
                        Expression::Literal(Literal::I32(word)) => return word.cast_unsigned(),
                        _ => {}
                    }
                }
                Expression::Binary { op: Op::Add, left, right } => return of(left).wrapping_add(of(right)),
                Expression::Binary { op: Op::Subtract, left, right } => {
                    return of(left).wrapping_sub(of(right));
                }
                Expression::Binary { op: Op::Multiply, left, right } => {
                    return of(left).wrapping_mul(of(right));
                }
                _ => {}
            }
        }
        let mut hasher = DefaultHasher::new();
        (trial, self.identity(value, 0)).hash(&mut hasher);
        #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
        let number = hasher.finish() as u32;
        number
    }

    /// A hash of the expression tree of a value: equal hashes mean equal values.
    fn identity(&self, value: Value, depth: u32) -> u64 {
        if let Some(&known) = self.identities.borrow().get(&value) {
            return known;
        }
        let mut hasher = DefaultHasher::new();
        self.identify(value, &mut hasher, depth);
        let identity = hasher.finish();
        self.identities.borrow_mut().insert(value, identity);
        identity
    }

    fn identify(&self, value: Value, hasher: &mut DefaultHasher, depth: u32) {
        let on = self.on;
        let expression = &on.function.expressions[value];
        let fixed = match *expression {
            Expression::Load { pointer } => match root(on.function, pointer) {
                Root::Local(variable) => {
                    !on.schedule.storage.needs.iter().any(|needs| needs.writes.contains(&variable))
                }
                _ => super::values::is_read_only(on, pointer),
            },
            ref other => depth < 16 && !is_result(other),
        };
        if !fixed {
            return value.index().hash(hasher);
        }
        match *expression {
            // The operands' identities are hashed below, not their handles.
            Expression::Binary { op, .. } => format!("{op:?}").hash(hasher),
            Expression::AccessIndex { index, .. } => index.hash(hasher),
            Expression::As { kind, convert, .. } => format!("{kind:?}{convert:?}").hash(hasher),
            Expression::Load { .. } => "load".hash(hasher),
            ref other if operands(other).next().is_none() => format!("{other:?}").hash(hasher),
            _ => return value.index().hash(hasher),
        }
        operands(expression).for_each(|operand| self.identity(operand, depth + 1).hash(hasher));
    }

    /// Whether an index is a constant: out of range, or it would not be the index of an `Access`.
    fn is_constant(&self, index: Value) -> bool {
        matches!(self.on.function.expressions[index], Expression::Literal(_) | Expression::Constant(_))
    }

    /// The steps from an object to a place in it.
    fn path(&self, mut pointer: Value) -> Vec<PathStep> {
        let mut steps = Vec::new();
        loop {
            pointer = match self.on.function.expressions[pointer] {
                Expression::Access { base, index } => {
                    match self.is_constant(index) {
                        true => steps.push(PathStep::Known(self.number(index, 0, 0))),
                        // Any component counts as the vector.
                        false if self.on.context.is_vector_pointer(base) => steps.clear(),
                        false => steps.push(PathStep::Index(pointer, index)),
                    }
                    base
                }
                Expression::AccessIndex { base, index } => {
                    steps.push(PathStep::Known(index));
                    base
                }
                _ => break,
            };
        }
        steps.reverse();
        steps
    }
}

/// Whether an expression follows from its operands alone.
const fn is_computed(expression: &Expression) -> bool {
    !is_result(expression) && !matches!(expression, Expression::LocalVariable(_))
}

/// A step into an object.
enum PathStep {
    Known(u32),
    /// An access and its index.
    Index(Value, Value),
}

/// All stores of a block, as pairs of pointer and value.
fn stores(block: &Block) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    blocks::each(block, &mut |statement| {
        if let Statement::Store { pointer, value } = statement {
            found.push((*pointer, *value));
        }
    });
    found
}

/// The pointers of stores inside loops of a block.
fn looped_stores(block: &Block, looped: bool) -> Vec<Value> {
    let mut found = Vec::new();
    for statement in block {
        if let (Statement::Store { pointer, .. }, true) = (statement, looped) {
            found.push(*pointer);
        }
        let looped = looped || matches!(statement, Statement::Loop { .. });
        blocks::inner(statement).for_each(|block| found.extend(looped_stores(block, looped)));
    }
    found
}
