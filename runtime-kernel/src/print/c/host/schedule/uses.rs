//! The named values and variables that statements use.

use std::collections::BTreeSet;

use naga::{Block, Expression, FastHashSet, Function, Statement};

use super::steps::Region;
use crate::ir::operands::{operands, used_by};
use crate::ir::variables::{Root, root};
use crate::ir::{Local, Value, blocks};

/// Which expressions of a function have names.
pub(crate) struct Uses<'a> {
    pub(crate) function: &'a Function,
    named: Vec<bool>,
}

/// The inputs and outputs of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Named values that it reads.
    pub(crate) values: FastHashSet<Value>,
    /// Named values that it computes.
    pub(crate) defined: FastHashSet<Value>,
    /// Variables that it reads, or may read, in whole or in part.
    pub(crate) reads: FastHashSet<Local>,
    /// Variables that it writes, in whole or in part.
    pub(crate) writes: FastHashSet<Local>,
    /// Arguments of the entry point.
    pub(crate) arguments: FastHashSet<u32>,
    /// Whether an invocation may return in it.
    pub(crate) returns: bool,
    /// Whether it has an atomic operation or a call.
    pub(crate) atomics: bool,
}

impl<'a> Uses<'a> {
    pub(crate) fn new(function: &'a Function, named: impl Fn(Value) -> bool) -> Self {
        Self { function, named: function.expressions.iter().map(|(handle, _)| named(handle)).collect() }
    }

    /// By expression: whether it has a name.
    pub(crate) fn into_named(self) -> Vec<bool> {
        self.named
    }

    pub(crate) fn is_named(&self, value: Value) -> bool {
        self.named[value.index()]
    }

    pub(crate) fn root(&self, pointer: Value) -> Root {
        root(self.function, pointer)
    }

    pub(crate) fn of_region(&self, region: &Region) -> Needs {
        let mut needs = self.of_block(&region.body);
        region.uniform_values.iter().for_each(|&value| self.value(value, &mut needs));
        needs
    }

    pub(crate) fn of_block(&self, block: &Block) -> Needs {
        let mut needs = Needs::default();
        self.block(block, &mut needs);
        needs
    }

    /// The expressions evaluated to compute a named value.
    pub(crate) fn of_value(&self, value: Value) -> BTreeSet<Value> {
        let (mut found, mut pending) = (BTreeSet::new(), vec![value]);
        while let Some(next) = pending.pop() {
            if found.insert(next) {
                let operands = operands(&self.function.expressions[next]);
                pending.extend(operands.filter(|&operand| !self.is_named(operand)));
            }
        }
        found
    }

    fn block(&self, block: &Block, needs: &mut Needs) {
        block.iter().for_each(|statement| self.statement(statement, needs));
    }

    /// Adds what a statement uses.
    pub(crate) fn statement(&self, statement: &Statement, needs: &mut Needs) {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone().filter(|&handle| self.is_named(handle)) {
                    needs.defined.insert(handle);
                    self.operands(handle, needs);
                }
            }
            Statement::Store { pointer, value } => {
                match self.function.expressions[*pointer] {
                    Expression::LocalVariable(variable) => {
                        needs.writes.insert(variable);
                    }
                    _ => self.written(*pointer, needs),
                }
                self.value(*value, needs);
            }
            other => {
                needs.returns |= matches!(other, Statement::Return { .. });
                needs.atomics |= matches!(other, Statement::Atomic { .. } | Statement::Call { .. });
                let (used, result) = used_by(other);
                used.into_iter().for_each(|value| self.written(value, needs));
                needs.defined.extend(result);
                blocks::inner(other).for_each(|block| self.block(block, needs));
            }
        }
    }

    /// A value, or a pointer that is read and written through.
    fn written(&self, used: Value, needs: &mut Needs) {
        if let Root::Local(variable) = self.root(used)
            && is_pointer(self.function, used)
        {
            needs.writes.insert(variable);
        }
        self.value(used, needs);
    }

    /// An expression at its use: read by its name, or printed there.
    pub(crate) fn value(&self, value: Value, needs: &mut Needs) {
        if self.is_named(value) {
            needs.values.insert(value);
        } else {
            self.operands(value, needs);
        }
    }

    fn operands(&self, value: Value, needs: &mut Needs) {
        match self.function.expressions[value] {
            Expression::LocalVariable(variable) => {
                needs.reads.insert(variable);
            }
            Expression::FunctionArgument(index) => {
                needs.arguments.insert(index);
            }
            ref other => operands(other).for_each(|operand| self.value(operand, needs)),
        }
    }
}

/// Whether an expression is an access chain rather than a value.
fn is_pointer(function: &Function, expression: Value) -> bool {
    match function.expressions[expression] {
        Expression::LocalVariable(_) | Expression::GlobalVariable(_) => true,
        Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => is_pointer(function, base),
        _ => false,
    }
}
