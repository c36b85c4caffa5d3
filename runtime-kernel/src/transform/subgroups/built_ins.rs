//! The built-in values of subgroups, computed from the local invocation index.

use std::cell::{Cell, RefCell};

use naga::{
    BinaryOperator, Binding, Block, BuiltIn, Expression, Function, FunctionArgument, Literal, Module, Range,
    Span, Statement,
};
use runtime_core::Result;

use super::import::Imported;
use crate::analysis::features::has_member_of_subgroups;
use crate::ir::built_ins::local_index;
use crate::ir::rebuild::{Change, Rebuild};
use crate::ir::{Value, declare};
use crate::program::Program;

/// What takes the place of an argument of the entry point.
#[derive(Clone, Copy)]
enum Replacement {
    Argument(u32),
    Number(u32),
    /// An operation on the local invocation index.
    OfItem(BinaryOperator, u32),
}

/// Replaces the built-in values, and stores the local invocation index where the library reads it. `sizes` are the
/// invocations of a subgroup and of a work-group.
pub(super) fn replace(
    program: &Program,
    module: &mut Module,
    entry: usize,
    (size, items): (u32, u32),
    imported: &Imported,
) -> Result<()> {
    let word = declare::word(&mut module.types);
    let source = std::mem::take(&mut module.entry_points[entry].function);
    let (mut kept, mut replacements) = (Vec::new(), Vec::new());
    for argument in &source.arguments {
        replacements.push(match built_in(argument) {
            Some(BuiltIn::SubgroupSize) => Replacement::Number(size),
            Some(BuiltIn::NumSubgroups) => Replacement::Number(items.div_ceil(size)),
            Some(BuiltIn::SubgroupId) => Replacement::OfItem(BinaryOperator::Divide, size),
            Some(BuiltIn::SubgroupInvocationId) => Replacement::OfItem(BinaryOperator::And, size - 1),
            _ => {
                reject_members(program, argument)?;
                kept.push(argument.clone());
                Replacement::Argument(place(kept.len() - 1))
            }
        });
    }
    let item = local_index(&program.module.types, &mut kept, word);
    let change = BuiltIns { replacements, item, value: Cell::new(None), emitted: RefCell::new(Vec::new()) };
    let mut function = Rebuild::function(&source, &change)?;
    function.arguments = kept;
    change.store(&mut function, imported, items);
    module.entry_points[entry].function = function;
    Ok(())
}

fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

const fn built_in(argument: &FunctionArgument) -> Option<BuiltIn> {
    match argument.binding {
        Some(Binding::BuiltIn(built_in)) => Some(built_in),
        _ => None,
    }
}

fn reject_members(program: &Program, argument: &FunctionArgument) -> Result<()> {
    match has_member_of_subgroups(&program.module.types[argument.ty].inner) {
        true => {
            let span = program.module.types.get_span(argument.ty);
            let what = "a structure with built-in values of subgroups where subgroups are emulated; declare these values as \
                        parameters of the entry point instead. It";
            Err(program.unsupported(what, span))
        }
        false => Ok(()),
    }
}

struct BuiltIns {
    replacements: Vec<Replacement>,
    item: (u32, Option<u32>),
    /// The expression of the argument that holds the local invocation index: writers declare one for each expression.
    value: Cell<Option<Value>>,
    /// What is computed at the start.
    emitted: RefCell<Vec<Value>>,
}

impl Change for BuiltIns {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        let Expression::FunctionArgument(argument) = new.source.expressions[old] else { return None };
        Some(match self.replacements[argument as usize] {
            Replacement::Argument(place) if place == self.item.0 => self.argument(|value| new.append(value)),
            Replacement::Argument(place) => new.append(Expression::FunctionArgument(place)),
            Replacement::Number(number) => new.append(Expression::Literal(Literal::U32(number))),
            Replacement::OfItem(op, right) => {
                let left = self.index(|value| new.append(value));
                let right = new.append(Expression::Literal(Literal::U32(right)));
                let value = new.append(Expression::Binary { op, left, right });
                self.emitted.borrow_mut().push(value);
                value
            }
        })
    }
}

impl BuiltIns {
    fn argument(&self, mut append: impl FnMut(Expression) -> Value) -> Value {
        let value = self.value.get().unwrap_or_else(|| append(Expression::FunctionArgument(self.item.0)));
        self.value.set(Some(value));
        value
    }

    /// The local invocation index.
    fn index(&self, mut append: impl FnMut(Expression) -> Value) -> Value {
        let base = self.argument(&mut append);
        let Some(index) = self.item.1 else { return base };
        let value = append(Expression::AccessIndex { base, index });
        self.emitted.borrow_mut().push(value);
        value
    }

    /// Stores the local invocation index and the number of invocations at the start.
    fn store(&self, function: &mut Function, imported: &Imported, items: u32) {
        let mut append = |value| function.expressions.append(value, Span::UNDEFINED);
        let index = self.index(&mut append);
        let number = append(Expression::Literal(Literal::U32(items)));
        let stores = [(imported.item, index), (imported.items, number)].map(|(variable, value)| {
            let pointer = append(Expression::GlobalVariable(variable));
            Statement::Store { pointer, value }
        });
        let mut body = Block::new();
        for value in self.emitted.take() {
            body.push(Statement::Emit(Range::new_from_bounds(value, value)), Span::UNDEFINED);
        }
        stores.into_iter().for_each(|store| body.push(store, Span::UNDEFINED));
        body.append(&mut function.body);
        function.body = body;
    }
}
