//! Executes statements, for all active work-items.

use naga::{
    AtomicFunction, Barrier, Block, BuiltIn, Expression, Function, Handle, Statement, SwitchValue, Type,
    TypeInner,
};
use runtime_kernel::naga;

use super::expression::{Frame, Pointer, Types, Values};
use super::memory::{Access, Memory};
use super::scalar::{binary, integer};
use super::{Interpreter, Invalid};

/// The maximum number of evaluated expressions, over all work-items, before a kernel counts as endless.
const MAX_STEPS: u64 = 6_000_000;

/// The work-items after a statement, by where they continue.
#[derive(Debug, Default)]
struct Flow {
    on: Vec<u32>,
    broke: Vec<u32>,
    continued: Vec<u32>,
}

impl<'a> Interpreter<'a> {
    /// Runs an entry point for a group.
    pub(super) fn entry(&mut self, index: usize) -> Result<(), Invalid> {
        let (module, info) = (self.module, self.info);
        let function = &module.entry_points[index].function;
        let mut arguments = Vec::new();
        for argument in &function.arguments {
            let column = match (&argument.binding, self.inner(argument.ty)) {
                (Some(naga::Binding::BuiltIn(builtin)), _) => self.builtin(*builtin)?,
                (None, TypeInner::Struct { members, .. }) => {
                    let builtins = members.iter().map(|member| match member.binding {
                        Some(naga::Binding::BuiltIn(builtin)) => self.builtin(builtin),
                        _ => Err(Invalid::unknown("an argument of this kind")),
                    });
                    concatenated(&builtins.collect::<Result<Vec<_>, _>>()?, self.lanes)
                }
                _ => return Err(Invalid::unknown("an argument of this kind")),
            };
            arguments.push(column);
        }
        let frame =
            Frame::new(&function.expressions, Types::Function(info.get_entry_point(index)), arguments);
        let all: Vec<u32> = (0..self.lanes as u32).collect();
        self.call(function, frame, &all)?;
        Ok(())
    }

    fn builtin(&self, builtin: BuiltIn) -> Result<Values, Invalid> {
        let at = |lane: usize| {
            let [x, y, _] = self.size.map(|size| size as usize);
            [lane % x, lane / x % y, lane / (x * y)].map(|at| at as u64)
        };
        let group = {
            let ([x, y, _], group) = (self.groups, self.group);
            [group % x, group / x % y, group / (x * y)].map(u64::from)
        };
        let wide = |words: [u32; 3]| words.map(u64::from).to_vec();
        Ok(match builtin {
            BuiltIn::WorkGroupId => Values::Same(group.to_vec()),
            BuiltIn::WorkGroupSize => Values::Same(wide(self.size)),
            BuiltIn::NumWorkGroups => Values::Same(wide(self.groups)),
            BuiltIn::LocalInvocationIndex => Values::Words(1, (0..self.lanes as u64).collect()),
            BuiltIn::LocalInvocationId => Values::Words(3, (0..self.lanes).flat_map(at).collect()),
            BuiltIn::GlobalInvocationId => {
                let of = |lane| {
                    let local = at(lane);
                    [0, 1, 2].map(|axis| group[axis] * u64::from(self.size[axis]) + local[axis])
                };
                Values::Words(3, (0..self.lanes).flat_map(of).collect())
            }
            _ => return Err(Invalid::unknown(&format!("{builtin:?}"))),
        })
    }

    /// Calls a function; returns its result.
    fn call(
        &mut self,
        function: &'a Function,
        mut frame: Frame<'a>,
        active: &[u32],
    ) -> Result<Option<Values>, Invalid> {
        let kept = self.memories.len();
        for (_, local) in function.local_variables.iter() {
            let width = self.width(self.inner(local.ty))?;
            frame.locals.push(self.memories.len());
            self.memories.push(Memory::private(vec![0; width * self.lanes], width));
            self.is_workgroup.push(false);
        }
        for (handle, expression) in function.expressions.iter() {
            if is_available_at_entry(expression) {
                self.evaluate(&mut frame, handle, active)?;
            }
        }
        for (handle, local) in function.local_variables.iter() {
            let Some(init) = local.init else { continue };
            self.evaluate_tree(&mut frame, init, active)?;
            for lane in active {
                let words = frame.words(init, *lane as usize)?;
                let memory = &mut self.memories[frame.locals[handle.index()]];
                let at = memory.slot(*lane as usize, 0);
                memory.words[at..at + words.len()].copy_from_slice(words);
            }
        }
        if let Some(result) = &function.result {
            let width = self.width(self.inner(result.ty))?;
            frame.result = Some(Values::Words(width, vec![0; width * self.lanes]));
        }
        let block: &'a Block = &function.body;
        self.block(&mut frame, block, active.to_vec())?;
        self.memories.truncate(kept);
        self.is_workgroup.truncate(kept);
        Ok(frame.result)
    }

    /// Evaluates a constant initialiser and its operands.
    fn evaluate_tree(
        &mut self,
        frame: &mut Frame<'_>,
        root: Handle<Expression>,
        active: &[u32],
    ) -> Result<(), Invalid> {
        let expressions = frame.expressions;
        for (handle, expression) in expressions.iter() {
            let constant = matches!(
                expression,
                Expression::Compose { .. }
                    | Expression::Splat { .. }
                    | Expression::Swizzle { .. }
                    | Expression::Unary { .. }
                    | Expression::Binary { .. }
                    | Expression::As { .. }
                    | Expression::Math { .. }
                    | Expression::Relational { .. }
                    | Expression::Select { .. }
            );
            if handle.index() > root.index() {
                break;
            }
            if constant
                && frame.values[handle.index()].is_none()
                && (handle == root || self.is_ready(frame, handle))
            {
                self.evaluate(frame, handle, active)?;
            }
        }
        Ok(())
    }

    /// Whether the operands of an initialiser have values.
    fn is_ready(&self, frame: &Frame<'_>, handle: Handle<Expression>) -> bool {
        let has = |handle: &Handle<Expression>| frame.words(*handle, 0).is_ok();
        match &frame.expressions[handle] {
            Expression::Compose { components, .. } => components.iter().all(has),
            Expression::Splat { value, .. } => has(value),
            Expression::Swizzle { vector, .. } => has(vector),
            Expression::Unary { expr, .. } | Expression::As { expr, .. } => has(expr),
            Expression::Binary { left, right, .. } => has(left) && has(right),
            Expression::Math { arg, arg1, arg2, arg3, .. } => {
                has(arg) && [arg1, arg2, arg3].into_iter().flatten().all(has)
            }
            Expression::Relational { argument, .. } => has(argument),
            Expression::Select { condition, accept, reject } => has(condition) && has(accept) && has(reject),
            _ => false,
        }
    }

    fn block(&mut self, frame: &mut Frame<'a>, block: &'a Block, active: Vec<u32>) -> Result<Flow, Invalid> {
        let mut flow = Flow { on: active, ..Flow::default() };
        for statement in block.iter() {
            if flow.on.is_empty() {
                break;
            }
            let active = std::mem::take(&mut flow.on);
            self.count_step()?;
            let next = self.statement(frame, statement, active)?;
            flow.on = next.on;
            flow.broke.extend(next.broke);
            flow.continued.extend(next.continued);
        }
        Ok(flow)
    }

    /// Counts a statement or a loop iteration.
    fn count_step(&mut self) -> Result<(), Invalid> {
        self.steps += 1;
        // Checks and zeroing take steps, too.
        let most = if self.rules.is_transformed { 8 * MAX_STEPS } else { MAX_STEPS };
        if self.steps > most { Err(Invalid::StepLimit) } else { Ok(()) }
    }

    fn statement(
        &mut self,
        frame: &mut Frame<'a>,
        statement: &'a Statement,
        active: Vec<u32>,
    ) -> Result<Flow, Invalid> {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    self.evaluate(frame, handle, &active)?;
                }
            }
            Statement::Block(block) => return self.block(frame, block, active),
            Statement::If { condition, accept, reject } => {
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                for lane in active {
                    let holds = frame.word(*condition, lane as usize)? != 0;
                    if holds { yes.push(lane) } else { no.push(lane) }
                }
                let (yes, no) = (self.block(frame, accept, yes)?, self.block(frame, reject, no)?);
                return Ok(joined([yes, no]));
            }
            Statement::Switch { .. } => return self.switch(frame, statement, active),
            Statement::Loop { body, continuing, break_if } => {
                return self.run_loop(frame, (body, continuing, *break_if), active);
            }
            Statement::Break => return Ok(Flow { broke: active, ..Flow::default() }),
            Statement::Continue => return Ok(Flow { continued: active, ..Flow::default() }),
            Statement::Return { value } => {
                if let Some(value) = value {
                    let mut result = frame.result.take();
                    if let Some(Values::Words(width, words)) = &mut result {
                        for lane in active.iter().map(|lane| *lane as usize) {
                            words[lane * *width..(lane + 1) * *width]
                                .copy_from_slice(frame.words(*value, lane)?);
                        }
                    }
                    frame.result = result;
                }
                return Ok(Flow::default());
            }
            Statement::ControlBarrier(barrier) => self.barrier(*barrier, &active)?,
            Statement::Store { pointer, value } => self.store(frame, *pointer, *value, &active)?,
            Statement::Atomic { .. } => self.atomic(frame, statement, &active)?,
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.uniform_load(frame, *pointer, *result, &active)?;
            }
            Statement::Call { .. } => self.call_statement(frame, statement, &active)?,
            other => return Err(Invalid::unknown(&format!("statement {other:?}"))),
        }
        Ok(Flow { on: active, ..Flow::default() })
    }

    /// Executes a call statement.
    fn call_statement(
        &mut self,
        frame: &mut Frame<'a>,
        statement: &'a Statement,
        active: &[u32],
    ) -> Result<(), Invalid> {
        let Statement::Call { function, arguments, result } = statement else { return Ok(()) };
        let (module, info) = (self.module, self.info);
        let columns = arguments.iter().map(|handle| frame.values[handle.index()].clone());
        let columns: Option<Vec<_>> = columns.collect();
        let mut columns = columns.ok_or(Invalid::unknown("an argument"))?;
        let callee = &module.functions[*function];
        let kept = self.memories.len();
        for (column, declared) in columns.iter_mut().zip(&callee.arguments) {
            self.replace_lost(column, declared.ty)?;
        }
        let inner = Frame::new(&callee.expressions, Types::Function(&info[*function]), columns);
        let value = self.call(callee, inner, active)?;
        self.memories.truncate(kept);
        if let (Some(result), Some(value)) = (result, value) {
            self.set_values(frame, *result, &value, active);
        }
        Ok(())
    }

    /// Replaces out-of-range pointers in an argument with pointers to fresh zeros, which the callee may write.
    fn replace_lost(&mut self, column: &mut Values, ty: Handle<Type>) -> Result<(), Invalid> {
        let &TypeInner::Pointer { base, .. } = self.inner(ty) else { return Ok(()) };
        let Values::Pointers(pointers) = column else { return Ok(()) };
        if pointers.iter().all(|pointer| !pointer.lost) {
            return Ok(());
        }
        self.out_of_range()?;
        let width = self.width(self.inner(base))?;
        let memory = self.memories.len();
        self.memories.push(Memory::private(vec![0; width * self.lanes], width));
        let lost = pointers.iter_mut().filter(|pointer| pointer.lost);
        lost.for_each(|pointer| *pointer = Pointer { memory, ..Pointer::default() });
        Ok(())
    }

    fn store(
        &mut self,
        frame: &Frame<'_>,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
        active: &[u32],
    ) -> Result<(), Invalid> {
        for lane in active.iter().map(|lane| *lane as usize) {
            let to = frame.pointer(pointer, lane)?;
            if to.lost {
                self.out_of_range()?;
                continue;
            }
            let accessor = self.accessor(lane, to.memory);
            let memory = &mut self.memories[to.memory];
            for (index, word) in frame.words(value, lane)?.iter().enumerate() {
                let slot = memory.slot(lane, to.offset + index);
                memory.record(slot, accessor, Access::Write)?;
                memory.words[slot] = *word;
            }
        }
        Ok(())
    }

    /// `workgroupUniformLoad`: a load between two barriers.
    fn uniform_load(
        &mut self,
        frame: &mut Frame<'_>,
        pointer: Handle<Expression>,
        result: Handle<Expression>,
        active: &[u32],
    ) -> Result<(), Invalid> {
        self.barrier(Barrier::WORK_GROUP, active)?;
        let width = self.width(self.type_of(frame, result))?;
        let mut words = vec![0; width * self.lanes];
        for lane in active.iter().map(|lane| *lane as usize) {
            let out = &mut words[lane * width..(lane + 1) * width];
            self.load(frame.pointer(pointer, lane)?, lane, out)?;
        }
        frame.values[result.index()] = Some(Values::Words(width, words));
        self.barrier(Barrier::WORK_GROUP, active)
    }

    /// Sets the values of the active work-items.
    fn set_values(&self, frame: &mut Frame<'_>, handle: Handle<Expression>, value: &Values, active: &[u32]) {
        let Values::Words(width, from) = value else { return };
        let mut words = match frame.values[handle.index()].take() {
            Some(Values::Words(_, words)) => words,
            _ => vec![0; width * self.lanes],
        };
        for lane in active.iter().map(|lane| *lane as usize) {
            let range = lane * width..(lane + 1) * width;
            words[range.clone()].copy_from_slice(&from[range]);
        }
        frame.values[handle.index()] = Some(Values::Words(*width, words));
    }

    fn barrier(&mut self, barrier: Barrier, active: &[u32]) -> Result<(), Invalid> {
        if active.len() != self.lanes {
            return Err(Invalid::Divergent);
        }
        self.epochs[0] += u32::from(barrier.contains(Barrier::WORK_GROUP));
        self.epochs[1] += u32::from(barrier.contains(Barrier::STORAGE));
        Ok(())
    }

    fn switch(
        &mut self,
        frame: &mut Frame<'a>,
        statement: &'a Statement,
        active: Vec<u32>,
    ) -> Result<Flow, Invalid> {
        let Statement::Switch { selector, cases } = statement else { return Ok(Flow::default()) };
        let mut chosen: Vec<Vec<u32>> = vec![Vec::new(); cases.len()];
        for lane in active {
            let word = frame.word(*selector, lane as usize)?;
            let is = |value: &SwitchValue| match value {
                SwitchValue::I32(value) => u64::from(*value as u32) == word,
                SwitchValue::U32(value) => u64::from(*value) == word,
                SwitchValue::Default => false,
            };
            let default = || cases.iter().position(|case| case.value == SwitchValue::Default);
            if let Some(at) = cases.iter().position(|case| is(&case.value)).or_else(default) {
                chosen[at].push(lane);
            }
        }
        let mut whole = Flow::default();
        let mut falling = Vec::new();
        for (case, chosen) in cases.iter().zip(chosen) {
            let mut active = std::mem::take(&mut falling);
            active.extend(chosen);
            active.sort_unstable();
            let mut flow = self.block(frame, &case.body, active)?;
            if case.fall_through {
                falling = std::mem::take(&mut flow.on);
            }
            whole = joined([whole, flow]);
        }
        whole.on.append(&mut whole.broke);
        whole.on.sort_unstable();
        Ok(whole)
    }

    fn run_loop(
        &mut self,
        frame: &mut Frame<'a>,
        (body, continuing, break_if): (&'a Block, &'a Block, Option<Handle<Expression>>),
        mut active: Vec<u32>,
    ) -> Result<Flow, Invalid> {
        let mut left = Vec::new();
        while !active.is_empty() {
            // Count iterations, because both blocks may be empty.
            self.count_step()?;
            let mut flow = self.block(frame, body, active)?;
            left.append(&mut flow.broke);
            flow.on.append(&mut flow.continued);
            flow.on.sort_unstable();
            let mut flow = self.block(frame, continuing, flow.on)?;
            left.append(&mut flow.broke);
            active = flow.on;
            if let Some(condition) = break_if {
                let (mut out, mut on) = (Vec::new(), Vec::new());
                for lane in active {
                    let ends = frame.word(condition, lane as usize)? != 0;
                    if ends { out.push(lane) } else { on.push(lane) }
                }
                left.append(&mut out);
                active = on;
            }
        }
        left.sort_unstable();
        Ok(Flow { on: left, ..Flow::default() })
    }

    fn atomic(
        &mut self,
        frame: &mut Frame<'_>,
        statement: &Statement,
        active: &[u32],
    ) -> Result<(), Invalid> {
        let Statement::Atomic { pointer, fun, value, result } = statement else { return Ok(()) };
        let observed = !self.rules.is_transformed && result.is_some_and(|result| self.is_used(frame, result));
        let scalar = self.type_of(frame, *value).scalar().ok_or(Invalid::unknown("an atomic"))?;
        let compares = matches!(fun, AtomicFunction::Exchange { compare: Some(_) });
        let width = if compares { 2 } else { 1 };
        let mut olds = vec![0; width * self.lanes];
        for lane in active.iter().map(|lane| *lane as usize) {
            let to = frame.pointer(*pointer, lane)?;
            if to.lost {
                self.out_of_range()?;
                continue;
            }
            let operand = frame.word(*value, lane)?;
            let accessor = self.accessor(lane, to.memory);
            let memory = &mut self.memories[to.memory];
            let slot = memory.slot(lane, to.offset);
            let old = memory.words[slot];
            let (class, new) = match fun {
                AtomicFunction::Add => (0, binary(naga::BinaryOperator::Add, scalar, old, operand)?),
                AtomicFunction::Subtract => {
                    (0, binary(naga::BinaryOperator::Subtract, scalar, old, operand)?)
                }
                AtomicFunction::And => (1, old & operand),
                AtomicFunction::InclusiveOr => (2, old | operand),
                AtomicFunction::ExclusiveOr => (3, old ^ operand),
                AtomicFunction::Min if integer(scalar, operand) < integer(scalar, old) => (4, operand),
                AtomicFunction::Max if integer(scalar, operand) > integer(scalar, old) => (5, operand),
                AtomicFunction::Min => (4, old),
                AtomicFunction::Max => (5, old),
                AtomicFunction::Exchange { compare: None } => (6, operand),
                AtomicFunction::Exchange { compare: Some(compare) } => {
                    let equal = frame.word(*compare, lane)? == old;
                    olds[lane * width + 1] = u64::from(equal);
                    (6, if equal { operand } else { old })
                }
            };
            let what = if observed || class == 6 { Access::Write } else { Access::Commutes(class) };
            memory.record(slot, accessor, what)?;
            memory.words[slot] = new;
            olds[lane * width] = old;
        }
        if let Some(result) = result {
            self.set_values(frame, *result, &Values::Words(width, olds), active);
        }
        Ok(())
    }

    /// Whether a result is used.
    fn is_used(&self, frame: &Frame<'_>, handle: Handle<Expression>) -> bool {
        frame.references(handle) > 0
    }
}

/// Whether an expression has a value before the first statement.
fn is_available_at_entry(expression: &Expression) -> bool {
    matches!(
        expression,
        Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::Override(_)
            | Expression::ZeroValue(_)
            | Expression::FunctionArgument(_)
            | Expression::GlobalVariable(_)
            | Expression::LocalVariable(_)
    )
}

fn joined(flows: [Flow; 2]) -> Flow {
    let mut whole = Flow::default();
    for flow in flows {
        whole.on.extend(flow.on);
        whole.broke.extend(flow.broke);
        whole.continued.extend(flow.continued);
    }
    whole.on.sort_unstable();
    whole
}

/// Concatenates values.
fn concatenated(columns: &[Values], lanes: usize) -> Values {
    let mut words = Vec::new();
    for lane in 0..lanes {
        for column in columns {
            match column {
                Values::Words(width, column) => words.extend(&column[lane * width..(lane + 1) * width]),
                Values::Same(column) => words.extend(column),
                Values::Pointers(_) => {}
            }
        }
    }
    Values::Words(words.len() / lanes.max(1), words)
}
