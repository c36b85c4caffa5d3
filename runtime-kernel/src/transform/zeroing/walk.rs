//! Walks over the statements of an entry point to find variables that may be read before they are written.

use std::cell::Cell;
use std::ops::Range;

use naga::proc::IndexableLength;
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Barrier, Block, Expression, Function, Handle, Literal, Module, Statement, Type, TypeInner};

use super::activation::{Activations, Scope};
use super::column::{Column, Kind};
use super::constant_loops::Loop;
use super::memory::{FIRST, Memory};
use crate::ir::blocks::Skip;
use crate::ir::variables::{Root, array_of, assigned_by, root};
use crate::ir::{Global, Value};
use crate::program::Program;
use crate::transform::inline::return_elimination::returns_at_end;

/// Variables with more elements are not analysed.
const MAX_ELEMENTS: usize = 1 << 14;
/// Entry points with larger work-groups are not analysed.
const MAX_INVOCATIONS: u32 = 1 << 11;
/// Budget of evaluated values, about half a millisecond; what is left when it is exhausted is not analysed.
const BUDGET: u32 = 1 << 19;
/// No element of a variable: a read returns zero, and a write is skipped.
const OUTSIDE: u32 = u32::MAX;
/// Maximum call depth.
const MAX_CALL_DEPTH: u32 = 8;

/// The variables among `used` that an entry point may read before it writes them.
pub(super) fn read_first(program: &Program, entry: usize, used: &[Global]) -> Vec<Global> {
    let module = &program.module;
    let point = &module.entry_points[entry];
    let group_size = point.workgroup_size;
    let items = group_size.iter().try_fold(1u32, |items, &extent| items.checked_mul(extent));
    let Some(items) = items.filter(|items| *items > 0 && *items <= MAX_INVOCATIONS) else {
        return used.to_vec();
    };
    let tracked: Vec<_> = used
        .iter()
        .map(|&variable| {
            let (lengths, _) = dimensions(module, module.global_variables[variable].ty);
            Tracked { variable, lengths: lengths.iter().map(|&length| length as usize).collect() }
        })
        .collect();
    let memory = |tracked: &Tracked| {
        let all = tracked.lengths.iter().try_fold(1usize, |all, length| all.checked_mul(*length));
        all.filter(|all| *all > 0 && *all <= MAX_ELEMENTS).map(Memory::new)
    };
    let mut state: State = tracked.iter().map(memory).collect();
    let budget = Cell::new(BUDGET);
    let found = state.iter().map(Option::is_none).collect();
    let mut walk = Walk {
        module,
        info: &program.info,
        group_size,
        tracked: &tracked,
        found,
        next: FIRST + items,
        budget: &budget,
    };
    let active = Activations::of_items(items);
    let mut scope = Scope::new((module, &point.function), 0, group_size, &budget);
    walk.block(&mut scope, &point.function.body, &active, &mut state);
    let exhausted = budget.get() == 0;
    let all = tracked.iter().zip(&walk.found);
    all.filter(|(_, found)| exhausted || **found).map(|(tracked, _)| tracked.variable).collect()
}

/// The lengths of nested arrays, outermost first, and the element type; no lengths for other types.
pub(super) fn dimensions(module: &Module, mut ty: Handle<Type>) -> (Vec<u32>, Handle<Type>) {
    let mut lengths = Vec::new();
    while let TypeInner::Array { base, size, .. } = module.types[ty].inner {
        let Ok(IndexableLength::Known(length)) = size.resolve(module.to_ctx()) else { break };
        lengths.push(length);
        ty = base;
    }
    (lengths, ty)
}

/// A variable under analysis.
struct Tracked {
    variable: Global,
    lengths: Vec<usize>,
}

/// By tracked variable; `None` if it is too large.
type State = Vec<Option<Memory>>;

struct Walk<'a> {
    module: &'a Module,
    info: &'a ModuleInfo,
    group_size: [u32; 3],
    tracked: &'a [Tracked],
    /// By tracked variable: whether it may be read before it is written.
    found: Vec<bool>,
    /// The number of the next activation.
    next: u32,
    budget: &'a Cell<u32>,
}

/// The elements that a pointer leads to: `count` of them from each place on.
struct Elements {
    places: Places,
    count: usize,
}

/// The first element, by activation.
enum Places {
    Same(u32),
    Each(Vec<u32>),
}

impl<'a> Walk<'a> {
    fn block(&mut self, scope: &mut Scope<'a>, block: &'a Block, active: &Activations, state: &mut State) {
        for (place, statement) in block.iter().enumerate() {
            if state.iter().zip(&self.found).all(|(memory, found)| *found || is_whole(memory)) {
                return;
            }
            if let Statement::Loop { body, continuing, break_if } = statement {
                let parts = Loop { before: &block[..place], body, continuing, break_if: *break_if };
                self.loop_statement(scope, parts, active, state);
            } else {
                self.statement(scope, statement, active, state);
            }
        }
    }

    fn statement(
        &mut self,
        scope: &mut Scope<'a>,
        statement: &'a Statement,
        active: &Activations,
        state: &mut State,
    ) {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    scope.emit(handle);
                    match scope.function.expressions[handle] {
                        Expression::Load { pointer } => self.read(scope, pointer, active, state),
                        Expression::CooperativeLoad { data, .. } => {
                            self.read(scope, array_of(scope.function, data.pointer), active, state);
                        }
                        _ => {}
                    }
                }
            }
            Statement::Store { pointer, value } => {
                assigned_by(scope.function, statement, &mut |variable| {
                    scope.current.remove(&variable);
                });
                if let Expression::LocalVariable(variable) = scope.function.expressions[*pointer] {
                    scope.current.insert(variable, *value);
                }
                self.write(scope, *pointer, active, state);
            }
            Statement::Atomic { pointer, .. } => self.read(scope, *pointer, active, state),
            Statement::WorkGroupUniformLoad { pointer, .. } => {
                publish(state);
                self.read(scope, *pointer, active, state);
            }
            Statement::ControlBarrier(barrier) if barrier.contains(Barrier::WORK_GROUP) => publish(state),
            Statement::Block(inner) => self.block(scope, inner, active, state),
            Statement::If { condition, accept, reject } => {
                self.branch(scope, *condition, [accept, reject], active, state);
            }
            // Invocations that diverge here reconverge after it.
            Statement::Switch { cases, .. } => {
                let blocks: Vec<_> = cases.iter().map(|case| &case.body).collect();
                for block in &blocks {
                    scope.forget(&blocks);
                    let mut inner = self.copy(scope, state);
                    self.block(scope, block, active, &mut inner);
                }
                scope.forget(&blocks);
            }
            Statement::Call { function, arguments, .. } => {
                self.call(scope, *function, arguments, active, state);
                assigned_by(scope.function, statement, &mut |variable| {
                    scope.current.remove(&variable);
                });
            }
            _ => {}
        }
    }

    /// A copy of the state. If the budget is exhausted, all variables count as found.
    fn copy(&mut self, scope: &Scope<'a>, state: &State) -> State {
        let elements = state.iter().flatten().map(Memory::len).sum::<usize>();
        if !scope.spend(elements / 4) {
            self.found.fill(true);
        }
        state.clone()
    }

    fn branch(
        &mut self,
        scope: &mut Scope<'a>,
        condition: Value,
        [accept, reject]: [&'a Block; 2],
        active: &Activations,
        state: &mut State,
    ) {
        if accept.iter().chain(reject.iter()).all(is_jump) {
            return;
        }
        let before = scope.current.clone();
        let sides = match scope.value(active, condition) {
            Some(Column::Same(Literal::Bool(true))) => Some([Some(active.clone()), None]),
            Some(Column::Same(Literal::Bool(false))) => Some([None, Some(active.clone())]),
            Some(Column::Each(Kind::Bool, truths)) => {
                Some([true, false].map(|wanted| active.keep(&truths, wanted)))
            }
            _ => None,
        };
        if let Some(sides) = sides {
            for (block, those) in [accept, reject].into_iter().zip(sides) {
                if let Some(those) = those {
                    scope.current.clone_from(&before);
                    self.block(scope, block, &those, state);
                }
            }
            scope.current = before;
            scope.forget(&[accept, reject]);
            return;
        }
        let mut other = self.copy(scope, state);
        self.block(scope, accept, active, state);
        scope.current.clone_from(&before);
        self.block(scope, reject, active, &mut other);
        scope.current = before;
        scope.forget(&[accept, reject]);
        for (mine, theirs) in state.iter_mut().zip(&other) {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                mine.meet(theirs);
            }
        }
    }

    fn loop_statement(
        &mut self,
        scope: &mut Scope<'a>,
        parts: Loop<'a>,
        active: &Activations,
        state: &mut State,
    ) {
        let blocks = [parts.body, parts.continuing];
        let iterations = parts.iterations(scope, active, &mut self.next);
        scope.forget(&blocks);
        if let Some(iterations) = iterations {
            if let Some(iterations) = iterations {
                self.block(scope, parts.body, &iterations, state);
                self.block(scope, parts.continuing, &iterations, state);
            }
        } else {
            let mut first = self.copy(scope, state);
            self.block(scope, parts.body, active, &mut first);
            if Skip::of_block(parts.body) == Skip::Continue {
                first = self.copy(scope, state);
                scope.forget(&[parts.body]);
            }
            self.block(scope, parts.continuing, active, &mut first);
        }
        scope.forget(&blocks);
    }

    fn call(
        &mut self,
        scope: &mut Scope<'a>,
        called: Handle<Function>,
        arguments: &'a [Value],
        active: &Activations,
        state: &mut State,
    ) {
        let info: &FunctionInfo = &self.info[called];
        let function = &self.module.functions[called];
        for (number, tracked) in self.tracked.iter().enumerate() {
            let mut passed = arguments.iter().map(|&argument| root(scope.function, argument));
            let is_passed = passed.any(|root| root == Root::Global(tracked.variable));
            let is_used = !info[tracked.variable].is_empty() && scope.depth >= MAX_CALL_DEPTH;
            self.found[number] |= (is_passed || is_used) && !is_whole(&state[number]);
        }
        // Most functions do not use the variables; missing a barrier in one of those only loses precision.
        let matters = self.tracked.iter().any(|tracked| !info[tracked.variable].is_empty());
        if scope.depth >= MAX_CALL_DEPTH || !matters {
            return;
        }
        let before = (!returns_at_end(&function.body)).then(|| self.copy(scope, state));
        let active = scope.entered(active, arguments);
        let mut inner = Scope::new((self.module, function), scope.depth + 1, self.group_size, self.budget);
        self.block(&mut inner, &function.body, &active, state);
        if let Some(before) = before {
            *state = before;
        }
    }

    /// The tracked variable that a pointer leads into, and the accesses on the way, outermost first.
    fn chain(&self, function: &Function, mut pointer: Value) -> Option<(usize, Vec<Value>)> {
        let Root::Global(variable) = root(function, pointer) else { return None };
        let number = self.tracked.iter().position(|tracked| tracked.variable == variable)?;
        let mut accesses = Vec::new();
        while let Expression::Access { base, .. } | Expression::AccessIndex { base, .. } =
            function.expressions[pointer]
        {
            accesses.push(pointer);
            pointer = base;
        }
        accesses.reverse();
        Some((number, accesses))
    }

    /// The elements that a pointer leads to, if all are known.
    fn elements(
        &self,
        scope: &Scope<'a>,
        active: &Activations,
        (number, accesses): (usize, &[Value]),
    ) -> Option<Elements> {
        let lengths = &self.tracked[number].lengths;
        let mut count = lengths.iter().product::<usize>();
        let mut places = Places::Same(0);
        for (&access, &length) in accesses.iter().zip(lengths) {
            let index = match scope.function.expressions[access] {
                Expression::AccessIndex { index, .. } => Column::number(index),
                Expression::Access { index, .. } => scope.value(active, index)?,
                _ => return None,
            };
            if index.kind() == Some(Kind::Bool) {
                return None;
            }
            count /= length;
            places = places.within(&index, u32::try_from(length).ok()?, u32::try_from(count).ok()?)?;
        }
        let work = match &places {
            Places::Same(_) => count,
            Places::Each(places) => places.len().saturating_mul(count),
        };
        scope.spend(work).then_some(Elements { places, count })
    }

    fn read(&mut self, scope: &Scope<'a>, pointer: Value, active: &Activations, state: &mut State) {
        let Some((number, accesses)) = self.chain(scope.function, pointer) else { return };
        let Some(memory) = state[number].as_ref().filter(|memory| !memory.is_whole()) else { return };
        if self.found[number] {
            return;
        }
        let Some(elements) = self.elements(scope, active, (number, &accesses)) else {
            self.found[number] = true;
            return;
        };
        let fine = match elements.places {
            Places::Same(OUTSIDE) => true,
            Places::Same(place) => match active.ids[..] {
                [id] => memory.may_read(elements.from(place), id),
                _ => memory.is_visible(elements.from(place)),
            },
            Places::Each(ref places) => memory.may_each_read(places, elements.count, &active.ids),
        };
        self.found[number] = !fine;
    }

    fn write(&mut self, scope: &Scope<'a>, pointer: Value, active: &Activations, state: &mut State) {
        let Some((number, accesses)) = self.chain(scope.function, pointer) else { return };
        let is_part = accesses.len() > self.tracked[number].lengths.len();
        let Some(memory) = state[number].as_mut().filter(|memory| !memory.is_whole()) else { return };
        if is_part || self.found[number] {
            return;
        }
        let Some(elements) = self.elements(scope, active, (number, &accesses)) else { return };
        match elements.places {
            // All write the same element: attribute it to the last.
            Places::Same(place) => {
                if let Some(&id) = active.ids.last().filter(|_| place != OUTSIDE) {
                    memory.write(elements.from(place), id);
                }
            }
            Places::Each(ref places) => memory.write_each(places, elements.count, &active.ids),
        }
    }
}

impl Elements {
    fn from(&self, place: u32) -> Range<usize> {
        place as usize..place as usize + self.count
    }
}

impl Places {
    /// The places of sub-arrays: `length` parts of `count` elements each.
    fn within(self, index: &Column, length: u32, count: u32) -> Option<Self> {
        let within = |place: u32, index: u32| if index < length { place + index * count } else { OUTSIDE };
        let part = |place, index| if place == OUTSIDE { OUTSIDE } else { within(place, index) };
        Some(match (self, index) {
            (Self::Same(OUTSIDE), _) => Self::Same(OUTSIDE),
            (Self::Same(place), Column::Same(_)) => Self::Same(within(place, index.bits(0)?)),
            (Self::Same(place), Column::Each(_, bits)) => {
                Self::Each(bits.iter().map(|&index| within(place, index)).collect())
            }
            (Self::Each(mut places), _) => {
                for (at, place) in places.iter_mut().enumerate() {
                    *place = part(*place, index.bits(at)?);
                }
                Self::Each(places)
            }
        })
    }
}

fn is_whole(memory: &Option<Memory>) -> bool {
    memory.as_ref().is_some_and(Memory::is_whole)
}

fn publish(state: &mut State) {
    state.iter_mut().flatten().for_each(Memory::publish);
}

fn is_jump(statement: &Statement) -> bool {
    matches!(statement, Statement::Break | Statement::Continue | Statement::Return { .. } | Statement::Kill)
}
