//! The walk over statements: propagates the shapes of variables through control flow.

use naga::{Block, CollectiveOperation, Expression, GatherMode, Statement};

use super::{Analysis, Rules, Shape};
use crate::ir::operands::operands;
use crate::ir::variables::{Root, assigned_by, is_read_only, root};
use crate::ir::{Local, Value, blocks};

/// The shapes of local variables at a program point; `None` if control never gets there.
type State = Option<Vec<Shape>>;

/// The least regular shape of the conditions under which a loop is left, and under which an iteration is cut
/// short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exits {
    pub(crate) breaks: Shape,
    pub(crate) continues: Shape,
}

/// The conditions by which some invocations have left the current switch case, or the current iteration.
#[derive(Clone, Copy)]
struct Divergence {
    case: Shape,
    iteration: Shape,
}

impl Exits {
    pub(super) fn of(shapes: &[Shape], body: &Block) -> Self {
        let mut exits = Self { breaks: Shape::Uniform, continues: Shape::Uniform };
        exits.scan((shapes, &mut |_| {}), body, Shape::Uniform, false);
        exits
    }

    /// The shape of the conditions under which a case of a switch is left before its end, and the statements that not all
    /// invocations in it reach.
    fn of_case<'b>(shapes: &[Shape], body: &'b Block) -> (Shape, Vec<&'b Statement>) {
        let mut exits = Self { breaks: Shape::Uniform, continues: Shape::Uniform };
        let mut missed = Vec::new();
        let divergence =
            exits.scan((shapes, &mut |statement| missed.push(statement)), body, Shape::Uniform, true);
        (divergence.case, missed)
    }

    /// `context` is the shape of the conditions under which control reaches the block; statements that only some invocations
    /// reach are passed to `missed`.
    fn scan<'b>(
        &mut self,
        (shapes, missed): (&[Shape], &mut dyn FnMut(&'b Statement)),
        block: &'b Block,
        mut context: Shape,
        in_switch: bool,
    ) -> Divergence {
        let mut divergence = Divergence { case: Shape::Uniform, iteration: Shape::Uniform };
        for statement in block {
            if context != Shape::Uniform {
                missed(statement);
            }
            match statement {
                Statement::Break if in_switch => divergence.case = divergence.case.with(context),
                Statement::Break => {
                    self.breaks = self.breaks.with(context);
                    divergence.iteration = divergence.iteration.with(context);
                }
                Statement::Continue => {
                    self.continues = self.continues.with(context);
                    divergence.iteration = divergence.iteration.with(context);
                }
                Statement::Block(block) => {
                    divergence.add(self.scan((shapes, missed), block, context, in_switch));
                }
                Statement::If { condition, accept, reject } => {
                    let context = context.with(shapes[condition.index()]);
                    divergence.add(self.scan((shapes, missed), accept, context, in_switch));
                    divergence.add(self.scan((shapes, missed), reject, context, in_switch));
                }
                Statement::Switch { selector, cases } => {
                    let context = context.with(shapes[selector.index()]);
                    for case in cases {
                        let of_case = self.scan((shapes, missed), &case.body, context, true);
                        divergence.iteration = divergence.iteration.with(of_case.iteration);
                    }
                }
                _ => {}
            }
            // What follows is reached only by the invocations that did not jump.
            context = context.with(divergence.case).with(divergence.iteration);
        }
        divergence
    }
}

impl Divergence {
    fn add(&mut self, other: Self) {
        self.case = self.case.with(other.case);
        self.iteration = self.iteration.with(other.iteration);
    }
}

/// The targets of `break` and `continue`, with the joined states that reach them.
struct Frame {
    is_loop: bool,
    breaks: State,
    continues: State,
}

pub(super) fn walk(analysis: &mut Analysis<'_>) {
    let function = analysis.function;
    let locals = vec![Shape::Uniform; function.local_variables.len()];
    Walk { analysis, frames: Vec::new() }.block(&function.body, Some(locals));
}

struct Walk<'w, 'a> {
    analysis: &'w mut Analysis<'a>,
    frames: Vec<Frame>,
}

impl Walk<'_, '_> {
    fn block(&mut self, block: &Block, mut state: State) -> State {
        for statement in block {
            state = self.statement(statement, state?);
        }
        state
    }

    fn statement(&mut self, statement: &Statement, mut state: Vec<Shape>) -> State {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    let shape = self.expression(handle, &state);
                    self.analysis.shapes[handle.index()] = shape;
                    self.analysis.reached[handle.index()] = true;
                }
            }
            Statement::Store { pointer, value } => {
                self.store(&mut state, *pointer, self.analysis.shape(*value));
            }
            Statement::Call { function, arguments, result } => {
                self.call(&mut state, function.index(), arguments, *result);
            }
            Statement::Atomic { pointer, result, .. } => {
                self.store(&mut state, *pointer, Shape::Varying);
                self.set(*result, Shape::Varying);
            }
            Statement::WorkGroupUniformLoad { result, .. } => self.set(Some(*result), Shape::Uniform),
            Statement::SubgroupBallot { result, .. }
            | Statement::SubgroupGather { result, .. }
            | Statement::SubgroupCollectiveOperation { result, .. } => {
                self.set(Some(*result), self.subgroup_operation(statement));
            }
            Statement::Block(block) => return self.block(block, Some(state)),
            Statement::If { condition, accept, reject } => {
                return self.branch(self.analysis.shape(*condition), accept, reject, state);
            }
            Statement::Switch { selector, cases } => {
                return self.switch(self.analysis.shape(*selector), cases, &state);
            }
            Statement::Loop { body, continuing, break_if } => {
                return self.loop_statement(body, continuing, *break_if, state);
            }
            Statement::Break => return self.leave(state, |_| true, |frame| &mut frame.breaks),
            Statement::Continue => {
                return self.leave(state, |frame| frame.is_loop, |frame| &mut frame.continues);
            }
            Statement::Return { .. } | Statement::Kill => return None,
            _ => {}
        }
        Some(state)
    }

    /// The shape of the result of an operation. For WGSL, an operation with one result for the whole subgroup is like any other
    /// function: its result is uniform if its arguments are.
    fn subgroup_operation(&self, statement: &Statement) -> Shape {
        let argument = match *statement {
            Statement::SubgroupBallot { predicate, .. } => predicate,
            Statement::SubgroupGather {
                mode: GatherMode::Broadcast(_) | GatherMode::BroadcastFirst,
                argument,
                ..
            }
            | Statement::SubgroupCollectiveOperation {
                collective_op: CollectiveOperation::Reduce,
                argument,
                ..
            } => Some(argument),
            _ => return Shape::Varying,
        };
        match self.analysis.rules {
            Rules::Sharp | Rules::WorkGroup => Shape::Varying,
            Rules::Subgroup => argument.map_or(Shape::Uniform, |argument| self.analysis.shape(argument)),
        }
    }

    fn set(&mut self, expression: Option<Value>, shape: Shape) {
        if let Some(expression) = expression {
            self.analysis.shapes[expression.index()] = shape;
            self.analysis.reached[expression.index()] = true;
        }
    }

    fn leave(
        &mut self,
        state: Vec<Shape>,
        which: fn(&Frame) -> bool,
        at: fn(&mut Frame) -> &mut State,
    ) -> State {
        if let Some(frame) = self.frames.iter_mut().rev().find(|frame| which(frame)) {
            let states = at(frame);
            *states = join(states.take(), Some(state));
        }
        None
    }

    fn branch(&mut self, choice: Shape, accept: &Block, reject: &Block, state: Vec<Shape>) -> State {
        let accepted = self.block(accept, Some(state.clone()));
        let rejected = self.block(reject, Some(state));
        match (accepted, rejected) {
            (Some(a), Some(b)) => Some(self.widen(join(Some(a), Some(b))?, &[accept, reject], choice)),
            // The invocations of the other side have left: the remaining ones agree as before.
            (one, other) => one.or(other),
        }
    }

    fn switch(&mut self, choice: Shape, cases: &[naga::SwitchCase], state: &[Shape]) -> State {
        self.frames.push(Frame { is_loop: false, breaks: None, continues: None });
        let mut fallen = None;
        for case in cases {
            let end = self.block(&case.body, join(Some(state.to_vec()), fallen.take()));
            if case.fall_through {
                fallen = end;
            } else if let Some(end) = end {
                self.leave(end, |_| true, |frame| &mut frame.breaks);
            }
        }
        let after = self.frames.pop().and_then(|frame| frame.breaks)?;
        let bodies: Vec<&Block> = cases.iter().map(|case| &case.body).collect();
        let mut after = self.widen(after, &bodies, choice);
        for case in cases {
            let (choice, missed) = Exits::of_case(&self.analysis.shapes, &case.body);
            for statement in missed.into_iter().filter(|_| choice != Shape::Uniform) {
                self.widen_by(&mut after, statement, choice);
            }
        }
        Some(after)
    }

    fn loop_statement(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Option<Value>,
        state: Vec<Shape>,
    ) -> State {
        let mut entry = state;
        loop {
            self.frames.push(Frame { is_loop: true, breaks: None, continues: None });
            let end = self.block(body, Some(entry.clone()));
            let continued = self.frames.last_mut().and_then(|frame| frame.continues.take());
            let exits = Exits::of(&self.analysis.shapes, body);
            let middle = join(end, continued).map(|state| self.widen(state, &[body], exits.continues));
            let end = self.block(continuing, middle);
            let mut after = self.frames.pop().and_then(|frame| frame.breaks);
            let mut leaving = exits.breaks;
            if let Some(condition) = break_if {
                leaving = leaving.with(self.analysis.shape(condition));
                after = join(after, end.clone());
            }
            let next = join(Some(entry.clone()), end)?;
            if next == entry {
                return after.map(|state| self.widen(state, &[body, continuing], leaving));
            }
            entry = next;
        }
    }

    /// The state after invocations chose by a condition of shape `choice` whether to run these blocks.
    fn widen(&self, mut state: Vec<Shape>, blocks: &[&Block], choice: Shape) -> Vec<Shape> {
        // A choice of the whole group changes nothing.
        let blocks = if choice == Shape::Uniform { &[] } else { blocks };
        for statement in blocks.iter().flat_map(|block| block.iter()) {
            self.widen_by(&mut state, statement, choice);
        }
        state
    }

    fn widen_by(&self, state: &mut [Shape], statement: &Statement, choice: Shape) {
        let function = self.analysis.function;
        blocks::within(statement, &mut |inner| {
            assigned_by(function, inner, &mut |variable: Local| {
                let slot = &mut state[variable.index()];
                *slot = slot.chosen_by(choice);
            });
            false
        });
    }

    fn store(&self, state: &mut [Shape], pointer: Value, value: Shape) {
        let Root::Local(variable) = root(self.analysis.function, pointer) else { return };
        let slot = &mut state[variable.index()];
        *slot = match self.analysis.function.expressions[pointer] {
            Expression::LocalVariable(_) => value,
            _ => slot.with(value).with(self.analysis.shape(pointer)),
        };
    }

    fn call(&mut self, state: &mut [Shape], function: usize, arguments: &[Value], result: Option<Value>) {
        let pure_functions = self.analysis.pure_functions[function];
        let shape =
            arguments.iter().map(|&argument| self.analysis.shape(argument)).fold(Shape::Uniform, Shape::with);
        self.set(result, if pure_functions { shape } else { Shape::Varying });
        for &argument in arguments {
            let inner = self.analysis.types[argument].ty.inner_with(&self.analysis.module.types);
            if inner.pointer_space().is_some() {
                self.store(state, argument, Shape::Varying);
            }
        }
    }

    fn expression(&self, handle: Value, state: &[Shape]) -> Shape {
        let analysis = &*self.analysis;
        let is_word = || analysis.is_word(handle);
        match analysis.function.expressions[handle] {
            Expression::Load { pointer } => self.load(pointer, state),
            Expression::Access { base, index } => analysis.shape(base).with(analysis.shape(index)),
            Expression::AccessIndex { base, index } => match analysis.shape(base) {
                Shape::Varying => part(analysis, base, index as usize),
                shape => shape,
            },
            Expression::Binary { op, left, right } if is_word() => {
                analysis.binary(op, (left, analysis.shape(left)), (right, analysis.shape(right)))
            }
            Expression::Unary { op: naga::UnaryOperator::Negate, expr } if is_word() => {
                analysis.shape(expr).times(u32::MAX)
            }
            Expression::As { expr, convert: Some(4) | None, .. } if is_word() && analysis.is_word(expr) => {
                analysis.shape(expr)
            }
            Expression::Select { condition, accept, reject } => {
                analysis.shape(accept).join(analysis.shape(reject)).chosen_by(analysis.shape(condition))
            }
            ref other => {
                operands(other).map(|operand| analysis.shape(operand)).fold(Shape::Uniform, Shape::with)
            }
        }
    }

    fn load(&self, pointer: Value, state: &[Shape]) -> Shape {
        let analysis = &*self.analysis;
        let place = analysis.shape(pointer);
        match root(analysis.function, pointer) {
            Root::Local(variable) => match analysis.function.expressions[pointer] {
                Expression::LocalVariable(_) => state[variable.index()],
                _ => state[variable.index()].with(place),
            },
            Root::Global(variable) if is_read_only(analysis.module.global_variables[variable].space) => place,
            _ => Shape::Varying,
        }
    }
}

/// A component of a vector, or a member of a struct of built-in values.
fn part(analysis: &Analysis<'_>, base: Value, index: usize) -> Shape {
    if analysis.rules != Rules::Sharp {
        return Shape::Varying;
    }
    match analysis.types[base].ty.inner_with(&analysis.module.types) {
        naga::TypeInner::Vector { .. } => analysis.component(base, index, 8),
        naga::TypeInner::Struct { .. } => match analysis.function.expressions[base] {
            Expression::FunctionArgument(argument) => analysis.argument(argument as usize, Some(index)),
            _ => Shape::Varying,
        },
        _ => Shape::Varying,
    }
}

fn join(a: State, b: State) -> State {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = a.join(b));
            Some(a)
        }
        (one, other) => one.or(other),
    }
}
