//! Rebuilds a function with some expressions replaced, or a module with other functions.

use naga::{
    Arena, Block, EntryPoint, Expression, Function, Module, Range, Span, Statement, Type, UniqueArena,
};
use runtime_core::{Error, Result};

use super::blocks::inner_mut;
use super::operands::{each_operand, each_use, result_of};
use crate::ir::Value;

/// A module with the constants and variables of another, and other functions.
pub(crate) fn with_functions(
    module: &Module,
    types: UniqueArena<Type>,
    functions: Arena<Function>,
    entry_points: Vec<EntryPoint>,
) -> Module {
    Module {
        types,
        special_types: module.special_types.clone(),
        constants: module.constants.clone(),
        overrides: module.overrides.clone(),
        global_variables: module.global_variables.clone(),
        global_expressions: module.global_expressions.clone(),
        functions,
        entry_points,
        diagnostic_filters: module.diagnostic_filters.clone(),
        diagnostic_filter_leaf: module.diagnostic_filter_leaf,
        doc_comments: None,
    }
}

/// An entry point of a compute kernel with another function.
pub(crate) fn with_function(point: &EntryPoint, function: Function) -> EntryPoint {
    EntryPoint {
        name: point.name.clone(),
        stage: point.stage,
        early_depth_test: point.early_depth_test,
        workgroup_size: point.workgroup_size,
        workgroup_size_overrides: point.workgroup_size_overrides,
        function,
        mesh_info: None,
        task_payload: None,
        incoming_ray_payload: None,
    }
}

/// The replacement of expressions in a rebuilt function.
pub(crate) trait Change {
    /// Appends the replacement of an expression of the source, and returns the expression that holds its value;
    /// `None` if it stays as it is.
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value>;
}

/// A function being rebuilt.
pub(crate) struct Rebuild<'a> {
    pub(crate) source: &'a Function,
    expressions: Arena<Expression>,
    /// By expression of the source: the first expression that replaces it, and the one that holds its value.
    places: Vec<(Value, Value)>,
    span: Span,
}

impl<'a> Rebuild<'a> {
    /// Rebuilds a function with the change applied.
    ///
    /// # Errors
    /// `Unsupported` for expressions that kernels do not use.
    pub(crate) fn function(source: &'a Function, change: &impl Change) -> Result<Function> {
        let mut new = Self { source, expressions: Arena::new(), places: Vec::new(), span: Span::UNDEFINED };
        for (old, expression) in source.expressions.iter() {
            new.span = source.expressions.get_span(old);
            let before = new.expressions.len();
            let value = match change.replacement(&mut new, old) {
                Some(value) => value,
                None => new.copy(expression)?,
            };
            let first = new.expressions.iter().nth(before).map_or(value, |(first, _)| first);
            new.places.push((first, value));
        }
        Ok(new.finish())
    }

    /// The new expression for one of the source.
    pub(crate) fn value(&self, old: Value) -> Value {
        self.places[old.index()].1
    }

    /// Appends an expression whose operands belong to the new function.
    pub(crate) fn append(&mut self, expression: Expression) -> Value {
        self.expressions.append(expression, self.span)
    }

    fn copy(&mut self, old: &Expression) -> Result<Value> {
        let mut expression = old.clone();
        match each_operand(&mut expression, |operand| self.renew(operand)) {
            true => Ok(self.append(expression)),
            false => Err(Error::unsupported(format!("{old:?} in a compute kernel is not supported"))),
        }
    }

    fn finish(self) -> Function {
        let mut function = self.source.clone();
        for (_, local) in function.local_variables.iter_mut() {
            local.init.iter_mut().for_each(|init| self.renew(init));
        }
        function.named_expressions = std::mem::take(&mut function.named_expressions)
            .into_iter()
            .map(|(handle, name)| (self.value(handle), name))
            .collect();
        self.block(&mut function.body);
        function.expressions = self.expressions;
        function
    }

    fn renew(&self, handle: &mut Value) {
        *handle = self.value(*handle);
    }

    fn block(&self, block: &mut Block) {
        for statement in block.iter_mut() {
            if let Statement::Emit(range) = statement
                && let Some((first, last)) = range.first_and_last()
            {
                *range = Range::new_from_bounds(self.places[first.index()].0, self.value(last));
            }
            each_use(statement, |operand| self.renew(operand));
            result_of(statement).into_iter().for_each(|result| self.renew(result));
            inner_mut(statement).for_each(|inner| self.block(inner));
        }
    }
}
