//! Finds the code that runs once per work-group: uniform values, variables that only hold such, and control flow
//! by them.

use std::collections::BTreeMap;

use naga::{Block, Expression, FastHashSet, Function, Handle, Module, Statement};

use crate::analysis::proof::trip_count::loop_head;
use crate::analysis::uniformity::{Shape, Uniformity, pure_functions};
use crate::ir::blocks::{self, Skip, contains_barrier};
use crate::ir::operands::operands;
use crate::ir::variables::{Root, is_read_only, root};
use crate::ir::{Local, Value};
use crate::print::c::invocation::hoisted_checks::HoistedChecks;

/// The parts of an entry point that run once per work-group.
pub(crate) struct UniformCode<'a> {
    module: &'a Module,
    function: &'a Function,
    uniformity: &'a Uniformity,
    pure_functions: Vec<bool>,
    /// Loops that stay per invocation, by the condition at their head.
    contiguous: &'a BTreeMap<Value, HoistedChecks>,
    /// By variable: whether it belongs to the group, written by uniform code only.
    variables: Vec<bool>,
    /// By expression: whether it can be computed once, wherever it is used.
    values: Vec<bool>,
    /// Results of calls that run once.
    calls: FastHashSet<Value>,
    /// Whether control flow is per invocation unless a barrier is in it.
    is_plain: bool,
    has_barrier: bool,
}

impl<'a> UniformCode<'a> {
    /// Starts by assuming that all variables belong to the group, and removes those that an invocation writes
    /// until nothing changes. If `is_plain`, nothing runs once; without a barrier, each invocation runs the whole body.
    pub(crate) fn new(
        module: &'a Module,
        function: &'a Function,
        uniformity: &'a Uniformity,
        contiguous: &'a BTreeMap<Value, HoistedChecks>,
        is_plain: bool,
    ) -> Self {
        let mut code = Self {
            module,
            function,
            uniformity,
            pure_functions: pure_functions(module),
            contiguous,
            variables: vec![!is_plain; function.local_variables.len()],
            values: vec![false; function.expressions.len()],
            calls: FastHashSet::default(),
            is_plain,
            has_barrier: blocks::has_barrier(&function.body),
        };
        if is_plain {
            return code;
        }
        let mut calls = Vec::new();
        collect_calls(&function.body, &mut calls);
        loop {
            code.evaluate(&calls);
            let mut written = Vec::new();
            code.find_written(&function.body, true, &mut written);
            written.retain(|variable: &Local| code.variables[variable.index()]);
            if written.is_empty() {
                return code;
            }
            for variable in written {
                code.variables[variable.index()] = false;
            }
        }
    }

    pub(crate) fn is_once(&self, value: Value) -> bool {
        self.values[value.index()]
    }

    pub(crate) fn owns(&self, variable: Local) -> bool {
        self.variables[variable.index()]
    }

    /// Whether a statement without a block runs once, given that it is in uniform control flow.
    pub(crate) fn runs_once(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Store { pointer, value } => {
                let owns = |variable| self.owns(variable) && self.is_once(*pointer) && self.is_once(*value);
                root(self.function, *pointer).local().is_some_and(owns)
            }
            Statement::Call { result: Some(result), .. } => self.calls.contains(result),
            Statement::WorkGroupUniformLoad { pointer, .. } => self.is_once(*pointer),
            _ => false,
        }
    }

    /// Finds the expressions that can be computed once, given the group's variables.
    fn evaluate(&mut self, calls: &[Call]) {
        self.calls.clear();
        for (handle, expression) in self.function.expressions.iter() {
            let known = match *expression {
                Expression::Load { pointer } => self.is_once(pointer) && self.is_shared(pointer),
                Expression::CallResult(_) | Expression::WorkGroupUniformLoadResult { .. } => {
                    calls.iter().any(|(result, function, arguments)| {
                        *result == handle
                            && function.is_none_or(|function| self.pure_functions[function.index()])
                            && arguments.iter().all(|&argument| self.is_once(argument))
                    })
                }
                Expression::AtomicResult { .. }
                | Expression::SubgroupBallotResult
                | Expression::SubgroupOperationResult { .. } => false,
                ref other => operands(other).all(|operand| self.is_once(operand)),
            };
            let known = known && self.uniformity.shape(handle) == Shape::Uniform;
            self.values[handle.index()] = known;
            if known && matches!(expression, Expression::CallResult(_)) {
                self.calls.insert(handle);
            }
        }
    }

    /// Whether memory belongs to the group or is never written.
    fn is_shared(&self, pointer: Value) -> bool {
        match root(self.function, pointer) {
            Root::Local(variable) => self.owns(variable),
            Root::Global(variable) => is_read_only(self.module.global_variables[variable].space),
            Root::Argument => false,
        }
    }

    /// Collects the variables that invocations write; `group` if control flow is uniform here. Returns whether
    /// some invocations skip what follows.
    fn find_written(&self, block: &Block, mut group: bool, written: &mut Vec<Local>) -> bool {
        let mut skipped = false;
        for statement in block {
            let inner = group && (self.is_group_level(statement) || matches!(statement, Statement::Block(_)));
            self.find_written_by(statement, group, written);
            let within = blocks::inner(statement);
            let skips = within.fold(false, |skips, block| self.find_written(block, inner, written) | skips)
                && !matches!(statement, Statement::Loop { .. });
            skipped |= skips || (group && !inner && Skip::of(statement) != Skip::No);
            group &= !skipped;
        }
        skipped
    }

    fn find_written_by(&self, statement: &Statement, group: bool, written: &mut Vec<Local>) {
        let once = group && self.runs_once(statement);
        match statement {
            Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } if !once => {
                written.extend(root(self.function, *pointer).local());
            }
            Statement::Call { arguments, .. } => {
                written
                    .extend(arguments.iter().filter_map(|&argument| root(self.function, argument).local()));
            }
            _ => {}
        }
    }

    /// Whether a statement becomes uniform control flow at group level, given that it is in such.
    pub(crate) fn is_group_level(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Break | Statement::Continue | Statement::Return { .. } => true,
            _ if self.is_plain && !self.has_barrier => false,
            Statement::If { condition, accept, reject } => {
                self.uniformity.is_uniform(*condition)
                    && (contains_barrier(statement)
                        || self.leaves(accept, false)
                        || self.leaves(reject, false)
                        || (self.is_once(*condition) && self.pays_off_at_group_level(&[accept, reject])))
            }
            Statement::Switch { selector, cases } => {
                let bodies: Vec<&Block> = cases.iter().map(|case| &case.body).collect();
                let parted = bodies.iter().any(|body| self.uniformity.exits(body).breaks != Shape::Uniform);
                self.uniformity.is_uniform(*selector)
                    && (contains_barrier(statement)
                        || (!parted && self.is_once(*selector) && self.pays_off_at_group_level(&bodies)))
            }
            Statement::Loop { body, continuing, break_if } => {
                self.is_group_level_loop(body, continuing, *break_if)
            }
            _ => false,
        }
    }

    fn is_group_level_loop(&self, body: &Block, continuing: &Block, break_if: Option<Value>) -> bool {
        if has_barrier_in(body, continuing) {
            return true;
        }
        if self.is_plain {
            return false;
        }
        if loop_head(body).is_some_and(|(_, condition)| self.contiguous.contains_key(&condition)) {
            return false;
        }
        let exits = self.uniformity.exits(body);
        let uniform = exits.breaks == Shape::Uniform
            && exits.continues == Shape::Uniform
            && break_if.is_none_or(|condition| self.is_once(condition));
        let mut conditions = Vec::new();
        jump_conditions(body, &mut Vec::new(), false, &mut conditions);
        uniform && conditions.into_iter().all(|condition| self.is_once(condition))
    }

    /// Whether moving control flow without a barrier to group level pays off: it has uniform loops, leaves a loop
    /// or the kernel for all invocations, or has no per-invocation work.
    fn pays_off_at_group_level(&self, bodies: &[&Block]) -> bool {
        bodies.iter().any(|body| self.leaves(body, false) || self.has_group_level_loop(body))
            || bodies.iter().all(|body| self.is_all_once(body))
    }

    /// Whether a uniform `break`, `continue` or return occurs here.
    fn leaves(&self, block: &Block, in_switch: bool) -> bool {
        block.iter().any(|statement| match statement {
            Statement::Break => !in_switch,
            Statement::Continue | Statement::Return { .. } => true,
            Statement::Loop { .. } => false,
            other => {
                let in_switch = in_switch || matches!(other, Statement::Switch { .. });
                blocks::control(other).is_none_or(|condition| self.uniformity.is_uniform(condition))
                    && blocks::inner(other).any(|block| self.leaves(block, in_switch))
            }
        })
    }

    fn has_group_level_loop(&self, block: &Block) -> bool {
        block.iter().any(|statement| match statement {
            Statement::Loop { body, continuing, break_if } => {
                self.is_group_level_loop(body, continuing, *break_if)
            }
            other => {
                blocks::control(other).is_none_or(|condition| self.is_once(condition))
                    && blocks::inner(other).any(|block| self.has_group_level_loop(block))
            }
        })
    }

    fn is_all_once(&self, block: &Block) -> bool {
        block.iter().all(|statement| match statement {
            Statement::Emit(_) | Statement::Break => true,
            Statement::Block(block) => self.is_all_once(block),
            Statement::If { condition, accept, reject } => {
                self.is_once(*condition) && self.is_all_once(accept) && self.is_all_once(reject)
            }
            simple => self.runs_once(simple),
        })
    }
}

fn has_barrier_in(body: &Block, continuing: &Block) -> bool {
    blocks::has_barrier(body) || blocks::has_barrier(continuing)
}

/// The conditions under which a loop is left or continued: those of all branches around its jumps.
fn jump_conditions(block: &Block, path: &mut Vec<Value>, in_switch: bool, found: &mut Vec<Value>) {
    for statement in block {
        match statement {
            Statement::Break if !in_switch => found.extend_from_slice(path),
            Statement::Continue => found.extend_from_slice(path),
            Statement::Loop { .. } => {}
            other => {
                let (depth, in_switch) = (path.len(), in_switch || matches!(other, Statement::Switch { .. }));
                path.extend(blocks::control(other));
                blocks::inner(other).for_each(|block| jump_conditions(block, path, in_switch, found));
                path.truncate(depth);
            }
        }
    }
}

/// A result with its function and arguments; or a uniform load with its pointer.
type Call = (Value, Option<Handle<Function>>, Vec<Value>);

fn collect_calls(block: &Block, calls: &mut Vec<Call>) {
    blocks::each(block, &mut |statement| match statement {
        Statement::Call { function, arguments, result: Some(result) } => {
            calls.push((*result, Some(*function), arguments.clone()));
        }
        Statement::WorkGroupUniformLoad { pointer, result } => calls.push((*result, None, vec![*pointer])),
        _ => {}
    });
}
