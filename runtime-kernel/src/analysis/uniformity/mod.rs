//! Uniformity analysis: which values are equal in all invocations of a work-group, and which grow by a constant from
//! one invocation to the next. Or as WGSL has it (§uniformity): which are equal in a work-group, or in a subgroup.
//!
//! An abstract interpretation of an entry point or function: it walks the body in order with the shape of every
//! local variable, and repeats loops up to a fixed point. A shape describes only the invocations that *compute* the
//! value: those that returned earlier do not count, so values computed after an early return may still be uniform.
//! Whether *control flow* is uniform is decided by [`crate::check::barriers`].

mod flow;
mod shape;

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{BuiltIn, Expression, Function, Handle, Module, ScalarKind, Statement, TypeInner};

pub(crate) use flow::Exits;
pub(crate) use shape::Shape;

use crate::analysis::proof::constant::literal;
use crate::ir::variables::is_read_only;
use crate::ir::{Value, blocks};

/// The invocations whose values are compared, and what counts as equal. By the rules of WGSL, composites are uniform as a whole
/// or not at all, and built-in values vary whatever the size of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Those of a work-group, by all that can be shown: for generated code.
    Sharp,
    /// Those of a work-group, by the rules of WGSL and no others.
    WorkGroup,
    /// Those of a subgroup, by the rules of WGSL and no others.
    Subgroup,
}

/// The shape of every expression of an entry point or function.
pub(crate) struct Uniformity {
    shapes: Vec<Shape>,
    reached: Vec<bool>,
}

impl Uniformity {
    /// Analyses the entry point with this index for the code that is made of it. Private variables of the module count as varying.
    pub(crate) fn of(module: &Module, info: &ModuleInfo, entry: usize) -> Self {
        Self::of_entry(module, info, entry, Rules::Sharp)
    }

    /// Analyses the entry point with this index.
    pub(crate) fn of_entry(module: &Module, info: &ModuleInfo, entry: usize, rules: Rules) -> Self {
        let point = &module.entry_points[entry];
        Self::analyse(module, (&point.function, info.get_entry_point(entry)), point.workgroup_size, rules)
    }

    /// Analyses a function independently of its callers: its arguments count as varying.
    pub(crate) fn of_function(
        module: &Module,
        info: &ModuleInfo,
        function: Handle<Function>,
        rules: Rules,
    ) -> Self {
        // Only built-in values depend on the group size, and a function has none.
        Self::analyse(module, (&module.functions[function], &info[function]), [1; 3], rules)
    }

    fn analyse(
        module: &Module,
        (function, types): (&Function, &FunctionInfo),
        group_size: [u32; 3],
        rules: Rules,
    ) -> Self {
        let shapes = vec![Shape::Uniform; function.expressions.len()];
        let pure_functions = pure_functions(module);
        let reached = vec![false; function.expressions.len()];
        let mut analysis =
            Analysis { module, group_size, rules, function, types, pure_functions, shapes, reached };
        for (handle, expression) in function.expressions.iter() {
            if expression.needs_pre_emit() {
                analysis.reached[handle.index()] = true;
                analysis.shapes[handle.index()] = analysis.constant_shape(expression);
            }
        }
        flow::walk(&mut analysis);
        Self { shapes: analysis.shapes, reached: analysis.reached }
    }

    /// Whether control may reach the evaluation of an expression; if not, its shape is meaningless.
    pub(crate) fn is_reached(&self, expression: Value) -> bool {
        self.reached[expression.index()]
    }

    pub(crate) fn shape(&self, expression: Value) -> Shape {
        self.shapes[expression.index()]
    }

    pub(crate) fn is_uniform(&self, expression: Value) -> bool {
        self.shape(expression) == Shape::Uniform
    }

    /// The conditions under which a loop with this body is left or continued.
    pub(crate) fn exits(&self, body: &naga::Block) -> Exits {
        Exits::of(&self.shapes, body)
    }
}

/// The value of a constant 32-bit integer, as bits.
pub(crate) fn constant(module: &Module, function: &Function, expression: Value) -> Option<u32> {
    match literal(module, &function.expressions, expression)? {
        naga::Literal::U32(value) => Some(value),
        naga::Literal::I32(value) => Some(value.cast_unsigned()),
        _ => None,
    }
}

/// For every function, whether it is pure: its result follows from its arguments alone, and it has no side
/// effects.
pub(crate) fn pure_functions(module: &Module) -> Vec<bool> {
    let mut known: Vec<bool> = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        let pointers = function.arguments.iter().any(|a| module.types[a.ty].inner.pointer_space().is_some());
        let memory = function.expressions.iter().any(|(_, expression)| match *expression {
            Expression::GlobalVariable(variable) => !is_read_only(module.global_variables[variable].space),
            _ => false,
        });
        let is_pure = is_pure(&function.body, &known);
        known.push(is_pure && !pointers && !memory);
    }
    known
}

/// Whether a body has only control flow, values, and calls of pure functions.
fn is_pure(body: &naga::Block, known: &[bool]) -> bool {
    !blocks::any(body, &mut |statement| match statement {
        Statement::Emit(_)
        | Statement::Break
        | Statement::Continue
        | Statement::Return { .. }
        | Statement::Store { .. }
        | Statement::Block(_)
        | Statement::If { .. }
        | Statement::Loop { .. }
        | Statement::Switch { .. } => false,
        Statement::Call { function, .. } => known.get(function.index()) != Some(&true),
        _ => true,
    })
}

/// The analysis in progress. Shapes only ever become less regular.
struct Analysis<'a> {
    module: &'a Module,
    group_size: [u32; 3],
    rules: Rules,
    function: &'a Function,
    types: &'a FunctionInfo,
    pure_functions: Vec<bool>,
    shapes: Vec<Shape>,
    /// Expressions that control may reach.
    reached: Vec<bool>,
}

impl Analysis<'_> {
    fn shape(&self, expression: Value) -> Shape {
        self.shapes[expression.index()]
    }

    /// The shape of an expression that no statement evaluates.
    fn constant_shape(&self, expression: &Expression) -> Shape {
        match *expression {
            Expression::FunctionArgument(index) => self.argument(index as usize, None),
            _ => Shape::Uniform,
        }
    }

    /// An argument of the entry point, or one component or member of it.
    fn argument(&self, index: usize, part: Option<usize>) -> Shape {
        let argument = &self.function.arguments[index];
        match (&argument.binding, &self.module.types[argument.ty].inner, part) {
            (Some(binding), _, part) => self.built_in(binding, part),
            (None, TypeInner::Struct { members, .. }, Some(part)) => members
                .get(part)
                .and_then(|member| member.binding.as_ref())
                .map_or(Shape::Varying, |b| self.built_in(b, None)),
            (None, TypeInner::Struct { members, .. }, None) if self.rules != Rules::Sharp => {
                let built_ins = members.iter().map(|member| member.binding.as_ref());
                built_ins
                    .map(|binding| binding.map_or(Shape::Varying, |binding| self.built_in(binding, None)))
                    .fold(Shape::Uniform, Shape::with)
            }
            _ => Shape::Varying,
        }
    }

    fn built_in(&self, binding: &naga::Binding, part: Option<usize>) -> Shape {
        let [x, y, z] = self.group_size;
        let along = |axis: usize| match axis {
            0 if x > 1 => Shape::Linear(1),
            1 if y > 1 => Shape::ROW,
            2 if z > 1 => Shape::ROW,
            _ => Shape::Uniform,
        };
        match (binding, part) {
            (
                naga::Binding::BuiltIn(
                    BuiltIn::WorkGroupId
                    | BuiltIn::NumWorkGroups
                    | BuiltIn::WorkGroupSize
                    | BuiltIn::SubgroupSize
                    | BuiltIn::NumSubgroups,
                ),
                _,
            ) => Shape::Uniform,
            (naga::Binding::BuiltIn(BuiltIn::SubgroupId), _) if self.rules == Rules::Subgroup => {
                Shape::Uniform
            }
            _ if self.rules != Rules::Sharp => Shape::Varying,
            (
                naga::Binding::BuiltIn(BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId),
                Some(axis),
            ) => along(axis),
            (naga::Binding::BuiltIn(BuiltIn::LocalInvocationId | BuiltIn::GlobalInvocationId), None) => {
                [0, 1, 2].map(along).into_iter().map(Shape::composite).fold(Shape::Uniform, Shape::join)
            }
            (naga::Binding::BuiltIn(BuiltIn::LocalInvocationIndex), _) => match [x > 1, y > 1 || z > 1] {
                [true, _] => Shape::Linear(1),
                [false, true] => Shape::ROW,
                [false, false] => Shape::Uniform,
            },
            _ => Shape::Varying,
        }
    }

    /// Whether an expression is a 32-bit integer, whose arithmetic wraps.
    fn is_word(&self, expression: Value) -> bool {
        matches!(
            *self.types[expression].ty.inner_with(&self.module.types),
            TypeInner::Scalar(naga::Scalar { kind: ScalarKind::Sint | ScalarKind::Uint, width: 4 })
        )
    }

    /// The shape of one component of a vector, or of the whole if components are not tracked.
    fn component(&self, expression: Value, part: usize, depth: u8) -> Shape {
        let whole = self.shape(expression);
        if whole != Shape::Varying || depth == 0 {
            return whole;
        }
        match self.function.expressions[expression] {
            Expression::FunctionArgument(index) => self.argument(index as usize, Some(part)),
            // A component of a built-in vector inside a struct argument.
            Expression::AccessIndex { base, index } => match self.function.expressions[base] {
                Expression::FunctionArgument(argument) => {
                    self.member(argument as usize, index as usize, part)
                }
                _ => whole,
            },
            Expression::Swizzle { vector, pattern, .. } => {
                self.component(vector, pattern[part] as usize, depth - 1)
            }
            Expression::Splat { value, .. } => self.shape(value),
            Expression::Compose { ty, ref components } => match self.module.types[ty].inner {
                TypeInner::Vector { size, .. } if components.len() == size as usize => {
                    self.shape(components[part])
                }
                _ => whole,
            },
            Expression::Binary { op, left, right } => {
                let (a, b) = (self.component(left, part, depth - 1), self.component(right, part, depth - 1));
                self.vector_word(expression).map_or(whole, |()| self.binary(op, (left, a), (right, b)))
            }
            Expression::As { expr, convert: Some(4) | None, .. } => {
                let known = self.vector_word(expression).and(self.vector_word(expr));
                known.map_or(whole, |()| self.component(expr, part, depth - 1))
            }
            _ => whole,
        }
    }

    fn vector_word(&self, expression: Value) -> Option<()> {
        let scalar = self.types[expression].ty.inner_with(&self.module.types).scalar()?;
        (scalar.width == 4 && matches!(scalar.kind, ScalarKind::Sint | ScalarKind::Uint)).then_some(())
    }

    fn member(&self, argument: usize, member: usize, part: usize) -> Shape {
        match &self.module.types[self.function.arguments[argument].ty].inner {
            TypeInner::Struct { members, .. } => members[member]
                .binding
                .as_ref()
                .map_or(Shape::Varying, |binding| self.built_in(binding, Some(part))),
            _ => Shape::Varying,
        }
    }

    /// A binary operation on 32-bit integers, for one component.
    fn binary(
        &self,
        op: naga::BinaryOperator,
        (left, a): (Value, Shape),
        (right, b): (Value, Shape),
    ) -> Shape {
        use naga::BinaryOperator as Op;
        let constant = |expression| constant(self.module, self.function, expression);
        match op {
            Op::Add => a.plus(b),
            Op::Subtract => a.plus(b.times(u32::MAX)),
            Op::Multiply => match (constant(left), constant(right)) {
                (_, Some(factor)) => a.times(factor),
                (Some(factor), _) => b.times(factor),
                _ => a.with(b),
            },
            Op::ShiftLeft => match constant(right) {
                Some(amount) => a.times(1 << (amount & 31)),
                None => a.with(b),
            },
            _ => a.with(b),
        }
    }
}
