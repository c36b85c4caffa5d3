//! The variables behind pointers, and the assignments of statements.

use naga::{AddressSpace, Block, Expression, Function, Literal, Module, Statement, StorageAccess};

use super::blocks;
use crate::ir::{Global, Local, Value};

/// The object that a pointer leads into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Local(Local),
    Global(Global),
    Argument,
}

/// The root of an access chain.
pub(crate) fn root(function: &Function, pointer: Value) -> Root {
    match function.expressions[pointer] {
        Expression::LocalVariable(variable) => Root::Local(variable),
        Expression::GlobalVariable(variable) => Root::Global(variable),
        Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => root(function, base),
        _ => Root::Argument,
    }
}

/// The argument that a pointer is derived from.
pub(crate) fn argument(function: &Function, pointer: Value) -> Option<usize> {
    match function.expressions[pointer] {
        Expression::FunctionArgument(index) => Some(index as usize),
        Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => argument(function, base),
        _ => None,
    }
}

/// The array that a pointer to an element leads into.
pub(crate) fn array_of(function: &Function, element: Value) -> Value {
    match function.expressions[element] {
        Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => base,
        _ => element,
    }
}

/// The local variable whose whole value an expression loads.
pub(crate) fn loaded(function: &Function, load: Value) -> Option<Local> {
    let Expression::Load { pointer } = function.expressions[load] else { return None };
    match function.expressions[pointer] {
        Expression::LocalVariable(variable) => Some(variable),
        _ => None,
    }
}

impl Root {
    pub(crate) const fn local(self) -> Option<Local> {
        match self {
            Self::Local(variable) => Some(variable),
            _ => None,
        }
    }

    pub(crate) const fn global(self) -> Option<Global> {
        match self {
            Self::Global(variable) => Some(variable),
            _ => None,
        }
    }

    /// Whether it is a storage buffer.
    pub(crate) fn is_buffer(self, module: &Module) -> bool {
        self.global().is_some_and(|variable| {
            matches!(module.global_variables[variable].space, AddressSpace::Storage { .. })
        })
    }
}

/// The variable and the value of a block that does nothing but assign them.
pub(crate) fn lone_assignment(function: &Function, block: &Block) -> Option<(Local, Value)> {
    let mut rest = block.iter().filter(|statement| !matches!(statement, Statement::Emit(_)));
    match (rest.next(), rest.next()) {
        (Some(&Statement::Store { pointer, value }), None) => match function.expressions[pointer] {
            Expression::LocalVariable(variable) => Some((variable, value)),
            _ => None,
        },
        _ => None,
    }
}

/// The value of a literal condition.
pub(crate) fn truth(function: &Function, value: Value) -> Option<bool> {
    match function.expressions[value] {
        Expression::Literal(Literal::Bool(truth)) => Some(truth),
        _ => None,
    }
}

/// Whether variables of an address space are never written by the kernel.
pub(crate) fn is_read_only(space: AddressSpace) -> bool {
    match space {
        AddressSpace::Immediate | AddressSpace::Uniform => true,
        AddressSpace::Storage { access } => !access.contains(StorageAccess::STORE),
        _ => false,
    }
}

/// Calls `visit` with the local variables that a block may assign.
pub(crate) fn assigned(function: &Function, block: &Block, visit: &mut impl FnMut(Local)) {
    blocks::each(block, &mut |statement| assigned_by(function, statement, visit));
}

/// Calls `visit` with the local variables that the statement itself may assign.
pub(crate) fn assigned_by(function: &Function, statement: &Statement, visit: &mut impl FnMut(Local)) {
    let mut through = |pointer| {
        if let Root::Local(variable) = root(function, pointer) {
            visit(variable);
        }
    };
    match statement {
        Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } => through(*pointer),
        Statement::Call { arguments, .. } => arguments.iter().copied().for_each(through),
        _ => {}
    }
}
