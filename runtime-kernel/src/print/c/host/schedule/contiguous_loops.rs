//! Per-invocation loops over contiguous integers, such as `sum += a[row * n + k] * b[row * n + k]`.
//!
//! Compilers vectorise such a sum along the loop if nothing in it is conditional, so its range checks are hoisted.
//! The loop then stays inside the loop over the invocations even if it is uniform: as a group-level loop, each
//! iteration would gather one number from each invocation's part of memory. Sums of floats must keep their order,
//! and are left as they are.

use std::collections::{BTreeMap, BTreeSet};

use naga::{
    AddressSpace, BinaryOperator as Op, Block, Expression, FastHashMap, FastHashSet, Function, MathFunction,
    Module, Scalar, ScalarKind, Statement, TypeInner,
};

use crate::analysis::proof::FunctionContext;
use crate::analysis::proof::trip_count::{loop_head, loop_step};
use crate::analysis::uniformity::{Shape, Uniformity, constant};
use crate::ir::operands::operands;
use crate::ir::variables::{Root, loaded, root};
use crate::ir::{Local, Value, blocks};
use crate::print::c::invocation::hoisted_checks::{HoistedChecks, PackedSum};

/// The loops of a function that qualify, by the condition at their head.
pub(crate) fn contiguous_loops(
    context: FunctionContext<'_>,
    uniformity: &Uniformity,
    named: &dyn Fn(Value) -> bool,
) -> BTreeMap<Value, HoistedChecks> {
    let mut found = BTreeMap::new();
    blocks::each(&context.function.body, &mut |statement| {
        if let Statement::Loop { body, continuing, break_if: None } = statement
            && let Some((condition, finder)) = Finder::of(context, body, continuing)
            && let Some(checks) = finder.checks(condition, uniformity, named)
        {
            found.insert(condition, checks);
        }
    });
    found
}

/// A loop whose counter grows by one, and that only adds up integers.
struct Finder<'a> {
    module: &'a Module,
    function: &'a Function,
    context: FunctionContext<'a>,
    counter: Local,
    /// Expressions evaluated in an iteration.
    inside: BTreeSet<Value>,
    /// Variables that the loop assigns.
    assigned: FastHashSet<Local>,
    /// The values assigned to variables other than the counter.
    sums: Vec<(Local, Value)>,
    /// By value: its growth per iteration.
    slopes: FastHashMap<Value, u32>,
}

impl<'a> Finder<'a> {
    fn of(context: FunctionContext<'a>, body: &Block, continuing: &Block) -> Option<(Value, Self)> {
        let (module, function) = (context.module, context.function);
        let (exit, condition) = loop_head(body)?;
        let mut loads = Vec::new();
        let (counter, next) = loop_step(function, continuing, &mut loads)?;
        let Expression::Binary { op: Op::Add, left, right } = function.expressions[next] else { return None };
        let counts = loads.contains(&left)
            && loaded(function, left) == Some(counter)
            && constant(module, function, right) == Some(1);
        let assigned = FastHashSet::from_iter([counter]);
        let (inside, sums, slopes) = (BTreeSet::new(), Vec::new(), FastHashMap::default());
        let mut finder = Self { module, function, context, counter, inside, assigned, sums, slopes };
        let straight = counts && finder.block(&body[..exit]) && finder.block(&body[exit + 1..]);
        for value in finder.inside.clone() {
            // Operands precede their users.
            if let Some(slope) = finder.slope_of(value) {
                finder.slopes.insert(value, slope);
            }
        }
        (straight && finder.assigned.len() > 1).then_some((condition, finder))
    }

    /// Records what statements evaluate and assign; returns whether they do nothing else.
    fn block(&mut self, statements: &[Statement]) -> bool {
        statements.iter().all(|statement| match statement {
            Statement::Emit(range) => {
                self.inside.extend(range.clone());
                true
            }
            Statement::Block(inner) => self.block(inner),
            Statement::Store { pointer, value } => match self.function.expressions[*pointer] {
                Expression::LocalVariable(variable) if variable != self.counter => {
                    self.assigned.insert(variable);
                    self.sums.push((variable, *value));
                    self.is_sum(variable, *value)
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Whether a value is an integer variable plus something, by an operation whose order does not matter.
    fn is_sum(&self, variable: Local, value: Value) -> bool {
        let own = |operand| loaded(self.function, operand) == Some(variable);
        let any_order = match self.function.expressions[value] {
            Expression::Binary { op: Op::Add | Op::And | Op::InclusiveOr | Op::ExclusiveOr, left, right } => {
                own(left) || own(right)
            }
            Expression::Math {
                fun: MathFunction::Min | MathFunction::Max, arg, arg1: Some(arg1), ..
            } => own(arg) || own(arg1),
            _ => false,
        };
        any_order && self.is_integer(value)
    }

    fn is_integer(&self, value: Value) -> bool {
        let inner = self.context.inner(value);
        matches!(inner, TypeInner::Scalar(Scalar { kind: ScalarKind::Sint | ScalarKind::Uint, width: 4 }))
    }

    fn checks(
        self,
        condition: Value,
        uniformity: &Uniformity,
        named: &dyn Fn(Value) -> bool,
    ) -> Option<HoistedChecks> {
        let Expression::Binary { op: Op::Less, left, right: limit } = self.function.expressions[condition]
        else {
            return None;
        };
        let counted = self.inside.contains(&left) && loaded(self.function, left) == Some(self.counter);
        if !counted || self.slope(limit)? != 0 {
            return None;
        }
        let mut accesses = BTreeMap::new();
        for &value in &self.inside {
            if let Expression::Load { pointer } = self.function.expressions[value] {
                self.load(pointer, &mut accesses)?;
            }
        }
        // If neighbouring invocations read the same or adjacent numbers, a group-level loop is as good.
        let far =
            |index| !matches!(uniformity.shape(index), Shape::Uniform | Shape::Linear(0 | 1 | u32::MAX));
        if !accesses.values().any(|&index| far(index)) {
            return None;
        }
        let (mut values, mut pending) = (BTreeSet::new(), Vec::from_iter(accesses.values().copied()));
        pending.push(limit);
        while let Some(value) = pending.pop() {
            if self.inside.contains(&value) && values.insert(value) {
                pending.extend(operands(&self.function.expressions[value]));
            }
        }
        values.retain(|&value| named(value));
        let packed = self.packed_sum(&accesses);
        Some(HoistedChecks { counter: self.counter, limit, accesses, values, packed })
    }

    /// The sum of dot products of packed bytes that the loop computes, if it does nothing else.
    fn packed_sum(&self, accesses: &BTreeMap<Value, Value>) -> Option<PackedSum> {
        let [(variable, value)] = self.sums[..] else { return None };
        let Expression::Binary { op: Op::Add, left, right } = self.function.expressions[value] else {
            return None;
        };
        let added = if loaded(self.function, left) == Some(variable) { right } else { left };
        let Expression::Math { fun, arg, arg1: Some(other), .. } = self.function.expressions[added] else {
            return None;
        };
        let word = |value: Value| match self.function.expressions[value] {
            Expression::Load { pointer } if accesses.contains_key(&pointer) => Some(pointer),
            _ => None,
        };
        let operands = [word(arg)?, word(other)?];
        matches!(fun, MathFunction::Dot4I8Packed | MathFunction::Dot4U8Packed).then_some(PackedSum {
            variable,
            function: fun,
            operands,
        })
    }

    /// Records an access of the loop whose check can be hoisted; `None` for an access that rules the loop out.
    fn load(&self, mut pointer: Value, accesses: &mut BTreeMap<Value, Value>) -> Option<()> {
        let place = root(self.function, pointer);
        loop {
            match self.function.expressions[pointer] {
                Expression::LocalVariable(_) | Expression::GlobalVariable(_) => return Some(()),
                Expression::AccessIndex { base, .. } => pointer = base,
                Expression::Access { base, index } => {
                    let Root::Global(variable) = place else { return None };
                    let storage =
                        matches!(self.module.global_variables[variable].space, AddressSpace::Storage { .. });
                    match self.slope(index)? {
                        0 => {}
                        1 if storage && matches!(self.context.pointee(base), TypeInner::Array { .. }) => {
                            accesses.insert(pointer, index);
                        }
                        _ => return None,
                    }
                    pointer = base;
                }
                _ => return None,
            }
        }
    }

    /// The growth of a value per iteration, if it is constant and the value can be computed before the loop.
    fn slope(&self, value: Value) -> Option<u32> {
        if self.inside.contains(&value) { self.slopes.get(&value).copied() } else { Some(0) }
    }

    /// The slope of a value whose operands' slopes are known.
    fn slope_of(&self, value: Value) -> Option<u32> {
        let integer = |value| self.slope(value).filter(|_| self.is_integer(value));
        match self.function.expressions[value] {
            Expression::Load { pointer } => match self.function.expressions[pointer] {
                Expression::LocalVariable(variable) if variable == self.counter => Some(1),
                Expression::LocalVariable(variable) => (!self.assigned.contains(&variable)).then_some(0),
                _ => self.is_fixed(pointer).then_some(0),
            },
            Expression::AccessIndex { base, .. } if !self.context.is_pointer(base) => {
                self.slope(base).filter(|slope| *slope == 0)
            }
            Expression::As { expr, kind: ScalarKind::Sint | ScalarKind::Uint, convert: Some(4) | None } => {
                integer(expr)
            }
            Expression::Binary { op: Op::Add, left, right } => {
                Some(integer(left)?.wrapping_add(integer(right)?))
            }
            Expression::Binary { op: Op::Subtract, left, right } => {
                Some(integer(left)?.wrapping_sub(integer(right)?))
            }
            Expression::Binary { op: Op::Multiply, left, right } => match (integer(left)?, integer(right)?) {
                (0, 0) => Some(0),
                (0, slope) => Some(slope.wrapping_mul(constant(self.module, self.function, left)?)),
                (slope, 0) => Some(slope.wrapping_mul(constant(self.module, self.function, right)?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a pointer leads to a scalar argument of the kernel.
    fn is_fixed(&self, pointer: Value) -> bool {
        match self.function.expressions[pointer] {
            Expression::AccessIndex { base, .. } => self.is_fixed(base),
            Expression::GlobalVariable(variable) => {
                self.module.global_variables[variable].space == AddressSpace::Immediate
            }
            _ => false,
        }
    }
}
