//! What the conditions around an expression say of it: within `for (var i = 0u; i < 16u; i++) { … }` and
//! `if i < 16u { … }`, `i` is below 16.

use std::collections::HashMap;

use naga::{
    BinaryOperator, Block, Expression, Function, Handle, LocalVariable, Module, Scalar, Statement, TypeInner,
    UniqueArena,
};

/// Values of unsigned variables, each with what it is less than.
#[derive(Debug, Default)]
pub(crate) struct Bounds(HashMap<Handle<Expression>, Handle<Expression>>);

/// Those of a module's functions and entry points.
#[derive(Debug)]
pub(crate) struct AllBounds {
    functions: Vec<Bounds>,
    entries: Vec<Bounds>,
}

impl AllBounds {
    /// Reads the conditions of a module.
    pub(super) fn of(module: &Module) -> Self {
        let of = |function| Bounds::of(&module.types, function);
        Self {
            functions: module.functions.iter().map(|(_, function)| of(function)).collect(),
            entries: module.entry_points.iter().map(|entry| of(&entry.function)).collect(),
        }
    }

    pub(super) fn function(&self, handle: Handle<Function>) -> &Bounds {
        &self.functions[handle.index()]
    }

    pub(super) fn entry(&self, index: usize) -> &Bounds {
        &self.entries[index]
    }
}

impl Bounds {
    /// Reads the conditions of a function.
    fn of(types: &UniqueArena<naga::Type>, function: &Function) -> Self {
        let mut walk = Walk { types, function, bounds: Self::default() };
        walk.block(&function.body);
        walk.bounds
    }

    /// What `value` is less than, if a condition says so.
    pub(crate) fn above(&self, value: Handle<Expression>) -> Option<Handle<Expression>> {
        self.0.get(&value).copied()
    }
}

struct Walk<'f> {
    types: &'f UniqueArena<naga::Type>,
    function: &'f Function,
    bounds: Bounds,
}

impl Walk<'_> {
    fn block(&mut self, block: &[Statement]) {
        for statement in block {
            match statement {
                Statement::Block(inner) => self.block(inner),
                Statement::If { condition, accept, reject } => {
                    self.guard(*condition, accept);
                    self.block(accept);
                    self.block(reject);
                }
                Statement::Switch { cases, .. } => cases.iter().for_each(|case| self.block(&case.body)),
                Statement::Loop { body, continuing, .. } => {
                    if let Some((condition, rest)) = head(body) {
                        self.guard(condition, rest);
                    }
                    self.block(body);
                    self.block(continuing);
                }
                _ => {}
            }
        }
    }

    /// Notes what `condition` says of a variable in `block`, which runs only if it holds, and does not change it.
    fn guard(&mut self, condition: Handle<Expression>, block: &[Statement]) {
        let Some((variable, bound)) = self.less(condition) else { return };
        let mut loads = Vec::new();
        if self.loads(variable, block, &mut loads) {
            self.bounds.0.extend(loads.into_iter().map(|load| (load, bound)));
        }
    }

    /// The variable and the bound of `variable < bound` or `bound > variable`, of unsigned numbers.
    fn less(&self, condition: Handle<Expression>) -> Option<(Handle<LocalVariable>, Handle<Expression>)> {
        let (value, bound) = match self.function.expressions[condition] {
            Expression::Binary { op: BinaryOperator::Less, left, right } => (left, right),
            Expression::Binary { op: BinaryOperator::Greater, left, right } => (right, left),
            _ => return None,
        };
        let Expression::Load { pointer } = self.function.expressions[value] else { return None };
        let Expression::LocalVariable(variable) = self.function.expressions[pointer] else { return None };
        let unsigned =
            self.types[self.function.local_variables[variable].ty].inner == TypeInner::Scalar(Scalar::U32);
        unsigned.then_some((variable, bound))
    }

    /// Adds the loads of a variable in a block; `false` if the block may change it.
    fn loads(
        &self,
        variable: Handle<LocalVariable>,
        block: &[Statement],
        found: &mut Vec<Handle<Expression>>,
    ) -> bool {
        let expressions = &self.function.expressions;
        let is_address =
            |pointer: Handle<Expression>| expressions[pointer] == Expression::LocalVariable(variable);
        block.iter().all(|statement| match statement {
            Statement::Emit(range) => {
                found.extend(range.clone().filter(|&handle| match expressions[handle] {
                    Expression::Load { pointer } => is_address(pointer),
                    _ => false,
                }));
                true
            }
            Statement::Store { pointer, .. } => !is_address(*pointer),
            Statement::Call { arguments, .. } => !arguments.iter().any(|&argument| is_address(argument)),
            Statement::Block(inner) => self.loads(variable, inner, found),
            Statement::If { accept, reject, .. } => {
                self.loads(variable, accept, found) && self.loads(variable, reject, found)
            }
            Statement::Switch { cases, .. } => {
                cases.iter().all(|case| self.loads(variable, &case.body, found))
            }
            Statement::Loop { body, continuing, .. } => {
                self.loads(variable, body, found) && self.loads(variable, continuing, found)
            }
            _ => true,
        })
    }
}

/// The condition that a loop begins with, and the rest of its body, which runs only if it holds.
fn head(body: &Block) -> Option<(Handle<Expression>, &[Statement])> {
    let first = body.iter().position(|statement| !matches!(statement, Statement::Emit(_)))?;
    match &body[first] {
        Statement::If { condition, accept, reject }
            if accept.is_empty() && matches!(reject[..], [Statement::Break]) =>
        {
            Some((*condition, &body[first + 1..]))
        }
        _ => None,
    }
}
