//! Walks over a body with what is known of its values, and lists its accesses to tensors.

mod arithmetic;
mod counter;
mod evaluate;
mod statement;
mod value;

use std::rc::Rc;

use naga::proc::Layouter;
use naga::{BuiltIn, Expression, Function, GlobalVariable, Handle};
use runtime_core::lowering::{FusionArg, FusionLaunch, FusionTensor};

use self::value::Value;
use super::kernel::Body;
use super::linear::{Fact, Integer, Knowledge, Linear, Variable};
use crate::ir::Local;

/// An access to a tensor.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The argument.
    pub(super) argument: usize,
    /// Where it goes; `None` for a called function.
    pub(super) pointer: Option<Handle<Expression>>,
    pub(super) is_write: bool,
    /// Bytes from the tensor's first element; `None` if they are unknown.
    pub(super) offset: Option<Integer>,
    /// Bytes from there to the end of the access.
    pub(super) bytes: i128,
    /// What is known where it happens.
    pub(super) knowledge: Rc<Knowledge>,
    /// When it happens.
    pub(super) path: Path,
    /// What it is of the tensor.
    pub(super) part: Part,
}

impl Access {
    /// Whether it may be anywhere, because its index is read from memory.
    pub(super) fn depends_on_data(&self) -> bool {
        let is_any = |variable: Variable| {
            let max = self.knowledge.maximum(variable).map(|(max, _)| max);
            matches!(variable, Variable::Unknown(_)) && max == Some(u32::MAX.into())
        };
        self.offset.iter().flat_map(|offset| &offset.terms).any(|(variable, _)| is_any(*variable))
    }
}

/// Which part of a tensor is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A whole element of an array.
    Element,
    /// Part of an element of an array.
    OfElement,
    /// Anything else.
    Other,
}

/// When a statement is reached.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// The conditions under which it is reached, if `is_known`.
    pub(super) facts: Vec<Fact>,
    /// Whether it is reached exactly once in each iteration under these conditions, and otherwise never.
    pub(super) is_known: bool,
    /// The iterations of the loops that it is in, if `is_known`.
    pub(super) loops: Vec<Variable>,
}

/// The counter of a loop that adds a constant to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopCounter {
    /// The number of the iteration.
    pub(super) iteration: Variable,
    pub(super) local: Local,
    /// What the loop adds.
    pub(super) step: u32,
}

/// What a body does with its tensors.
#[derive(Debug)]
pub(super) struct Accesses {
    pub(super) list: Vec<Access>,
    pub(super) counters: Vec<LoopCounter>,
    /// By argument: whether the number of its elements is used.
    pub(super) lengths: Vec<bool>,
}

/// How a launch runs within a fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) group_size: [u32; 3],
    /// At least the number of groups.
    pub(super) groups: [u32; 3],
    /// The number of groups, where a plan may rely on it.
    pub(super) known_groups: [Option<u32>; 3],
}

/// Lists the accesses of a launch. `variables` is the number of variables that were made before.
pub(super) fn accesses(
    body: Body<'_>,
    (launch, tensors): (&FusionLaunch<'_>, &[FusionTensor]),
    shape: Shape,
    variables: &mut u32,
) -> Option<Accesses> {
    let mut layouts = Layouter::default();
    layouts.update(body.program.module.to_ctx()).ok()?;
    let function = body.function();
    let mut walk = Walk {
        body,
        function,
        layouts,
        arguments: launch.args,
        tensors,
        shape,
        values: vec![Value::Unknown; function.expressions.len()],
        locals: vec![Value::Unknown; function.local_variables.len()],
        knowledge: Knowledge::default(),
        shared: None,
        path: Path { is_known: true, ..Path::default() },
        variables,
        quotients: Vec::new(),
        found: Accesses { list: Vec::new(), counters: Vec::new(), lengths: vec![false; launch.args.len()] },
    };
    walk.begin();
    walk.block(&function.body);
    Some(walk.found)
}

struct Walk<'a> {
    body: Body<'a>,
    function: &'a Function,
    layouts: Layouter,
    arguments: &'a [FusionArg],
    tensors: &'a [FusionTensor],
    shape: Shape,
    values: Vec<Value>,
    locals: Vec<Value>,
    knowledge: Knowledge,
    /// A copy of `knowledge` for the accesses, until it changes.
    shared: Option<Rc<Knowledge>>,
    path: Path,
    variables: &'a mut u32,
    quotients: Vec<Quotient>,
    found: Accesses,
}

/// A quotient and its remainder, which have variables.
struct Quotient {
    dividend: Integer,
    divisor: i128,
    quotient: Variable,
    remainder: Variable,
}

impl Walk<'_> {
    /// Sets what is known at the start.
    fn begin(&mut self) {
        for axis in 0..3u8 {
            let place = usize::from(axis);
            let (groups, size) = (self.shape.groups[place], self.shape.group_size[place]);
            let maximum = |count: u32| i128::from(count) - 1;
            self.knowledge.maxima.push((Variable::Group(axis), maximum(groups), 0));
            self.knowledge.maxima.push((Variable::Local(axis), maximum(size), 0));
            self.knowledge.maxima.push((Variable::Groups(axis), groups.into(), 0));
        }
        for (handle, expression) in self.function.expressions.iter() {
            if expression.needs_pre_emit() {
                self.values[handle.index()] = self.evaluate(handle);
            }
        }
        for (place, (_, local)) in self.function.local_variables.iter().enumerate() {
            let init = local.init.map(|init| self.values[init.index()].clone());
            self.locals[place] = init.unwrap_or_else(|| self.zero(local.ty));
        }
    }

    fn known(&mut self) -> Rc<Knowledge> {
        let known = self.shared.get_or_insert_with(|| Rc::new(self.knowledge.clone()));
        Rc::clone(known)
    }

    /// The index of a group or item along an axis.
    fn index(&self, axis: u8, of_group: bool) -> Linear {
        let place = usize::from(axis);
        let (count, variable) = match of_group {
            true => (self.shape.groups[place], Variable::Group(axis)),
            false => (self.shape.group_size[place], Variable::Local(axis)),
        };
        if count == 1 { Linear::default() } else { Linear::variable(variable, 1) }
    }

    fn built_in(&self, built_in: BuiltIn) -> Value {
        let size = self.shape.group_size;
        let local = |axis| self.index(axis, false);
        let all =
            |of: &dyn Fn(u8) -> Linear| Value::Parts([0, 1, 2].map(|axis| Value::Number(of(axis))).into());
        match built_in {
            BuiltIn::WorkGroupId => all(&|axis| self.index(axis, true)),
            BuiltIn::LocalInvocationId => all(&local),
            BuiltIn::GlobalInvocationId => {
                all(&|axis| local(axis).plus_times(&self.index(axis, true), size[usize::from(axis)]))
            }
            BuiltIn::LocalInvocationIndex => {
                let rows = local(1).plus_times(&local(2), size[1]);
                Value::Number(local(0).plus_times(&rows, size[0]))
            }
            BuiltIn::NumWorkGroups => all(&|axis| match self.shape.known_groups[usize::from(axis)] {
                Some(groups) => Linear::constant(groups),
                None => Linear::variable(Variable::Groups(axis), 1),
            }),
            BuiltIn::WorkGroupSize => {
                Value::Parts(size.map(|size| Value::Number(Linear::constant(size))).into())
            }
            _ => Value::Unknown,
        }
    }

    /// The argument of a tensor's variable.
    fn argument(&self, variable: Handle<GlobalVariable>) -> Option<usize> {
        self.body.interface().tensors.iter().position(|tensor| tensor.variable == variable)
    }

    /// The size of a tensor in bytes.
    fn tensor_bytes(&self, argument: usize) -> Option<u64> {
        match self.arguments.get(argument)? {
            FusionArg::Tensor(tensor) => self.tensors.get(*tensor).map(|tensor| tensor.bytes),
            FusionArg::Scalar { .. } => None,
        }
    }
}
