//! The storage of values and variables: per group, in one region's loop body, or per invocation.

use std::collections::BTreeSet;

use naga::{Expression, Function, MathFunction, Module, Statement, TypeInner};

use super::steps::{Condition, Step, Steps};
use super::uniform_code::UniformCode;
use super::uses::{Needs, Uses};
use crate::ir::operands::{operands, used_by};
use crate::ir::variables::Root;
use crate::ir::{Local, Value, blocks};

/// Where a variable is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// It is unused.
    Nowhere,
    /// Once per group.
    Group,
    /// In the body of one region's loops.
    Body(usize),
    /// In an array over the invocations, of which each region copies what it uses.
    Lanes,
    /// The same without copying: for large variables.
    LanesInPlace,
}

/// The storage of all values and variables of an entry point.
#[derive(Clone, Debug)]
pub(crate) struct VariableStorage {
    pub(crate) variables: Vec<Storage>,
    /// Values that are computed once per group.
    pub(crate) uniform: BTreeSet<Value>,
    /// Values stored per invocation for other regions.
    pub(crate) stored: BTreeSet<Value>,
    /// Uniform values that invocations compute for the group.
    pub(crate) from_regions: BTreeSet<Value>,
    /// By region: its inputs and outputs.
    pub(crate) needs: Vec<Needs>,
    /// By region: values that it recomputes, in order.
    pub(crate) recomputed: Vec<BTreeSet<Value>>,
    /// By region: variables whose initial value it sets.
    pub(crate) initialised: Vec<BTreeSet<Local>>,
    /// Variables whose initial values are set before all regions.
    pub(crate) early: BTreeSet<Local>,
    /// Whether regions must test which invocations have returned.
    pub(crate) masked: bool,
    /// Arguments of the entry point that are used at group level.
    pub(crate) arguments: BTreeSet<u32>,
}

/// Values with more operations are stored rather than recomputed.
const MAX_RECOMPUTED: usize = 24;

impl VariableStorage {
    pub(crate) fn new(
        module: &Module,
        function: &Function,
        uniform_code: &UniformCode<'_>,
        uses: &Uses<'_>,
        steps: &Steps,
        guarded: &BTreeSet<Value>,
    ) -> Self {
        let needs: Vec<Needs> = steps.regions.iter().map(|region| uses.of_region(region)).collect();
        let mut storage = Self {
            variables: vec![Storage::Nowhere; function.local_variables.len()],
            uniform: BTreeSet::new(),
            stored: BTreeSet::new(),
            from_regions: steps
                .regions
                .iter()
                .flat_map(|region| region.uniform_values.iter().copied())
                .collect(),
            recomputed: vec![BTreeSet::new(); needs.len()],
            initialised: vec![BTreeSet::new(); needs.len()],
            early: BTreeSet::new(),
            masked: returned_invocations_reenter(steps, &needs),
            arguments: BTreeSet::new(),
            needs,
        };
        storage.of_group(uses, &steps.steps);
        storage.of_variables(module, function, uniform_code, steps);
        storage.of_values(uses, uniform_code, guarded);
        storage
    }

    pub(crate) fn variable(&self, variable: Local) -> Storage {
        self.variables[variable.index()]
    }

    /// Records the values and arguments that are used at group level.
    fn of_group(&mut self, uses: &Uses<'_>, steps: &[Step]) {
        for step in steps {
            let mut needs = match step {
                Step::Once(shared) => uses.of_block(&shared.body),
                _ => Needs::default(),
            };
            if let Some(Condition::Once(value)) = step.condition() {
                uses.value(value, &mut needs);
            }
            self.uniform.extend(needs.defined);
            self.arguments.extend(needs.arguments);
            step.inner().for_each(|inner| self.of_group(uses, inner));
        }
    }

    fn of_variables(
        &mut self,
        module: &Module,
        function: &Function,
        uniform_code: &UniformCode<'_>,
        steps: &Steps,
    ) {
        let mut top = BTreeSet::new();
        for step in &steps.steps {
            match step {
                Step::Rows(rows) => top.extend(rows.steps.iter().filter_map(lanes)),
                other => top.extend(lanes(other)),
            }
        }
        for (variable, declared) in function.local_variables.iter() {
            if uniform_code.owns(variable) {
                self.variables[variable.index()] = Storage::Group;
                continue;
            }
            let accesses =
                |needs: &Needs| needs.reads.contains(&variable) || needs.writes.contains(&variable);
            let users: Vec<usize> = self
                .needs
                .iter()
                .enumerate()
                .filter(|(_, needs)| accesses(needs))
                .map(|(index, _)| index)
                .collect();
            let Some(&first) = users.first() else { continue };
            let alone = users.len() == 1
                && (!steps.regions[first].repeats
                    || is_assigned_first(function, &steps.regions[first].body, variable));
            self.variables[variable.index()] = match &module.types[declared.ty].inner {
                _ if alone => Storage::Body(first),
                TypeInner::Scalar(_) | TypeInner::Vector { .. } => Storage::Lanes,
                _ => Storage::LanesInPlace,
            };
            if alone {
                continue;
            }
            // Regions are numbered in text order, so the first user runs before the others.
            if top.contains(&first) && self.variables[variable.index()] == Storage::Lanes {
                self.initialised[first].insert(variable);
            } else {
                self.early.insert(variable);
            }
        }
    }

    /// Values that one region computes and another needs are recomputed if that is cheap, otherwise stored.
    fn of_values(&mut self, uses: &Uses<'_>, uniform_code: &UniformCode<'_>, guarded: &BTreeSet<Value>) {
        for region in 0..self.needs.len() {
            let needs = &self.needs[region];
            let foreign: Vec<_> = needs
                .values
                .iter()
                .copied()
                .filter(|v| !needs.defined.contains(v) && !self.uniform.contains(v))
                .collect();
            for value in foreign {
                let mut chain = BTreeSet::new();
                // A value that is in range only because of its position is not recomputed elsewhere.
                let stays = |value: &Value| uses.of_value(*value).is_disjoint(guarded);
                if is_cheap(uses, uniform_code, value, &mut chain, &mut 0) && chain.iter().all(stays) {
                    chain.retain(|value| {
                        !self.needs[region].defined.contains(value) && !self.uniform.contains(value)
                    });
                    self.recomputed[region].extend(chain);
                } else {
                    self.stored.insert(value);
                }
            }
        }
        // Recomputed values use arguments as well.
        for region in 0..self.needs.len() {
            let block: naga::Block = self.recomputed[region]
                .iter()
                .map(|&value| Statement::Emit(naga::Range::new_from_bounds(value, value)))
                .collect::<Vec<_>>()
                .into();
            let more = uses.of_block(&block);
            self.needs[region].arguments.extend(more.arguments);
        }
    }
}

/// Whether invocations that have returned reach a region again: another one, or the same in a loop.
fn returned_invocations_reenter(steps: &Steps, needs: &[Needs]) -> bool {
    let recomputed = |region: usize| needs.len() > 1 || steps.regions[region].repeats;
    needs.iter().enumerate().any(|(region, needs)| needs.returns && recomputed(region))
}

/// The region of a leaf step.
fn lanes(step: &Step) -> Option<usize> {
    match step {
        Step::Lanes(region) => Some(*region),
        _ => None,
    }
}

/// Whether a value follows by a few cheap operations from built-in values, constants and group values; `chain`
/// collects the named values involved.
pub(crate) fn is_cheap(
    uses: &Uses<'_>,
    uniform_code: &UniformCode<'_>,
    value: Value,
    chain: &mut BTreeSet<Value>,
    count: &mut usize,
) -> bool {
    if uses.is_named(value) {
        if uniform_code.is_once(value) || chain.contains(&value) {
            return true;
        }
        chain.insert(value);
    }
    *count += 1;
    let function = uses.function;
    *count <= MAX_RECOMPUTED
        && match function.expressions[value] {
            Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::ZeroValue(_)
            | Expression::FunctionArgument(_)
            | Expression::GlobalVariable(_) => true,
            Expression::Load { pointer } => {
                uniform_code.is_once(value)
                    && matches!(uses.root(pointer), Root::Global(_))
                    && indices(function, pointer)
                        .all(|index| is_cheap(uses, uniform_code, index, chain, count))
            }
            Expression::Binary {
                op: naga::BinaryOperator::Divide | naga::BinaryOperator::Modulo, ..
            } => false,
            Expression::Math {
                fun: MathFunction::Abs | MathFunction::Min | MathFunction::Max | MathFunction::Clamp,
                ..
            }
            | Expression::Binary { .. }
            | Expression::Unary { .. }
            | Expression::AccessIndex { .. }
            | Expression::As { .. }
            | Expression::Splat { .. }
            | Expression::Swizzle { .. }
            | Expression::Compose { .. }
            | Expression::Select { .. }
            | Expression::ArrayLength(_) => operands(&function.expressions[value])
                .all(|operand| is_cheap(uses, uniform_code, operand, chain, count)),
            _ => false,
        }
}

/// The indices of an access chain.
fn indices(function: &Function, pointer: Value) -> impl Iterator<Item = Value> {
    let mut next = Some(pointer);
    let chain = std::iter::from_fn(move || {
        let (base, index) = match function.expressions[next?] {
            Expression::Access { base, index } => (Some(base), Some(index)),
            Expression::AccessIndex { base, .. } => (Some(base), None),
            _ => (None, None),
        };
        next = base;
        base.map(|_| index)
    });
    chain.flatten()
}

/// Whether a block assigns a variable before anything reads it.
fn is_assigned_first(function: &Function, block: &naga::Block, variable: Local) -> bool {
    for statement in block {
        match statement {
            Statement::Store { pointer, value } => {
                if uses_variable(function, *value, variable) {
                    return false;
                }
                if matches!(function.expressions[*pointer], Expression::LocalVariable(v) if v == variable) {
                    return true;
                }
                if uses_variable(function, *pointer, variable) {
                    return false;
                }
            }
            Statement::Emit(range) => {
                // An unnamed load is printed later, but reads the current value.
                let read = range.clone().any(|handle| {
                    matches!(function.expressions[handle], Expression::Load { .. })
                        && uses_variable(function, handle, variable)
                });
                if read {
                    return false;
                }
            }
            Statement::Block(inner) if mentions(function, statement, variable) => {
                return is_assigned_first(function, inner, variable);
            }
            Statement::If { condition, accept, reject } if mentions(function, statement, variable) => {
                return !uses_variable(function, *condition, variable)
                    && is_assigned_first(function, accept, variable)
                    && is_assigned_first(function, reject, variable);
            }
            other if mentions(function, other, variable) => return false,
            _ => {}
        }
    }
    false
}

fn uses_variable(function: &Function, expression: Value, variable: Local) -> bool {
    match function.expressions[expression] {
        Expression::LocalVariable(found) => found == variable,
        ref other => operands(other).any(|operand| uses_variable(function, operand, variable)),
    }
}

/// Whether a statement uses a variable. Operands of named values are followed too: this may only err towards storing
/// the variable.
fn mentions(function: &Function, statement: &Statement, variable: Local) -> bool {
    blocks::within(statement, &mut |statement| {
        used_by(statement).0.into_iter().any(|value| uses_variable(function, value, variable))
    })
}
