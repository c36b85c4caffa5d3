//! Copies of statements and expressions for one invocation or for all of them.

use naga::{BinaryOperator, Block, Expression, Statement};
use runtime_core::{Error, Result};

use super::{Argument, Copier};
use crate::ir::Value;
use crate::ir::body_writer::WriteBody;
use crate::ir::operands::{operands, renew_operands, renew_uses};
use crate::ir::variables::{Root, root};

/// Longer chains of operators are not analysed.
const MAX_DEPTH: u32 = 10;

/// The statements that follow: those of a block, and what comes after it.
#[derive(Clone, Copy)]
pub(super) struct Rest<'r> {
    pub(super) statements: &'r [Statement],
    pub(super) after: Option<&'r Self>,
}

impl<'r> Rest<'r> {
    /// The first statement, and those after it.
    fn split(self) -> Option<(&'r Statement, Self)> {
        match (self.statements.split_first(), self.after) {
            (Some((first, statements)), after) => Some((first, Self { statements, after })),
            (None, Some(after)) => after.split(),
            (None, None) => None,
        }
    }
}

impl Copier<'_> {
    /// Copies the rest of the body for the first `lanes` copies, each statement for all of them, and a return.
    pub(super) fn interleaved(&mut self, rest: Rest<'_>, lanes: usize) -> Result<()> {
        let Some((statement, after)) = rest.split() else {
            self.push(Statement::Return { value: None });
            return Ok(());
        };
        match statement {
            Statement::Block(inner) => {
                self.interleaved(Rest { statements: inner, after: Some(&after) }, lanes)
            }
            Statement::If { condition, accept, reject }
                if !self.has_stored && self.is_guard(*condition, [accept, reject]) =>
            {
                self.guard(*condition, [accept, reject], &after, lanes)
            }
            other => {
                self.for_all(other, lanes)?;
                self.interleaved(after, lanes)
            }
        }
    }

    /// Whether a branch has only one side, and does not depend on what buffers hold: neighbouring invocations nearly always agree.
    fn is_guard(&self, condition: Value, [accept, reject]: [&Block; 2]) -> bool {
        (accept.is_empty() || reject.is_empty()) && self.is_known(condition, MAX_DEPTH)
    }

    /// Whether a value depends on scalars and indices only; a longer chain of operators than `depth` is not analysed.
    fn is_known(&self, value: Value, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let expression = &self.source.expressions[value];
        let is_data = match *expression {
            Expression::Load { pointer } => match root(self.source, pointer) {
                Root::Global(variable) => Some(variable) != self.scalar.replaces,
                _ => true,
            },
            _ => false,
        };
        !is_data && operands(expression).all(|operand| self.is_known(operand, depth))
    }

    /// A guard, with all that follows in the branch: unless all invocations pass, the loop evaluates them from the start.
    fn guard(
        &mut self,
        condition: Value,
        [accept, reject]: [&Block; 2],
        after: &Rest<'_>,
        lanes: usize,
    ) -> Result<()> {
        let (condition, accepts) = self.agreement(condition, reject, lanes)?;
        let statements = if accepts { accept } else { reject };
        let inner =
            self.nested(|copier| copier.interleaved(Rest { statements, after: Some(after) }, lanes))?;
        let [accept, reject] = if accepts { [inner, Block::new()] } else { [Block::new(), inner] };
        self.push(Statement::If { condition, accept, reject });
        Ok(())
    }

    /// The condition under which all copies pass a guard, and whether it must be true for that.
    fn agreement(&mut self, condition: Value, reject: &Block, lanes: usize) -> Result<(Value, bool)> {
        let conditions = (0..lanes).map(|lane| self.value(condition, lane)).collect::<Result<Vec<_>>>()?;
        let accepts = reject.is_empty();
        let op = if accepts { BinaryOperator::LogicalAnd } else { BinaryOperator::LogicalOr };
        Ok((self.folded(op, &conditions)?, accepts))
    }

    /// Copies a statement for the first `lanes` copies.
    fn for_all(&mut self, statement: &Statement, lanes: usize) -> Result<()> {
        match statement {
            Statement::Emit(range) => {
                range.clone().try_for_each(|old| (0..lanes).try_for_each(|lane| self.emit(old, lane)))
            }
            Statement::If { condition, accept, reject } if self.is_guard(*condition, [accept, reject]) => {
                let (condition, accepts) = self.agreement(*condition, reject, lanes)?;
                let inner = if accepts { accept } else { reject };
                let together = self.nested(|copier| {
                    inner.iter().try_for_each(|statement| copier.for_all(statement, lanes))
                })?;
                let apart = self.nested(|copier| copier.apart(statement, lanes))?;
                let [accept, reject] = if accepts { [together, apart] } else { [apart, together] };
                self.push(Statement::If { condition, accept, reject });
                Ok(())
            }
            other => self.apart(other, lanes),
        }
    }

    /// Copies a statement for one copy after the other.
    fn apart(&mut self, statement: &Statement, lanes: usize) -> Result<()> {
        (0..lanes).try_for_each(|lane| self.statement(statement, lane))
    }

    /// Copies a block for one copy.
    pub(super) fn block(&mut self, block: &Block, lane: usize) -> Result<()> {
        block.iter().try_for_each(|statement| self.statement(statement, lane))
    }

    fn statement(&mut self, statement: &Statement, lane: usize) -> Result<()> {
        match statement {
            Statement::Emit(range) => range.clone().try_for_each(|old| self.emit(old, lane)),
            Statement::Block(inner) => self.block(inner, lane),
            Statement::If { condition, accept, reject } => {
                let condition = self.value(*condition, lane)?;
                let accept = self.nested(|copier| copier.block(accept, lane))?;
                let reject = self.nested(|copier| copier.block(reject, lane))?;
                self.push(Statement::If { condition, accept, reject });
                Ok(())
            }
            Statement::Store { pointer, .. } => {
                self.has_stored |= matches!(root(self.source, *pointer), Root::Global(_));
                let mut statement = statement.clone();
                renew_uses(&mut statement, |operand| self.value(operand, lane))?;
                self.push(statement);
                Ok(())
            }
            other => {
                Err(Error::unsupported(format!("{other:?} in several invocations at once is not supported")))
            }
        }
    }

    fn emit(&mut self, old: Value, lane: usize) -> Result<()> {
        if self.source.expressions[old].needs_pre_emit() {
            return Ok(());
        }
        let new = match self.own_component(old, lane) {
            Some(new) => new,
            None => {
                let expression = self.renewed(old, lane)?;
                self.append_at(expression, self.source.expressions.get_span(old))
            }
        };
        self.lanes[lane].map[old.index()] = Some(new);
        Ok(())
    }

    /// A component of an argument that depends on the copy.
    fn own_component(&mut self, old: Value, lane: usize) -> Option<Value> {
        let Expression::AccessIndex { base, index } = self.source.expressions[old] else { return None };
        let Expression::FunctionArgument(argument) = self.source.expressions[base] else { return None };
        let Argument { x, .. } = self.lanes[lane].arguments[argument as usize]?;
        if index == 0 {
            return Some(x);
        }
        let base = self.constant(Expression::FunctionArgument(argument));
        Some(self.append(Expression::AccessIndex { base, index }))
    }

    /// The new expression for one of the source; one that no statement evaluates is copied at its first use.
    pub(super) fn value(&mut self, old: Value, lane: usize) -> Result<Value> {
        if let Some(new) = self.lanes[lane].map[old.index()] {
            return Ok(new);
        }
        let new = match self.source.expressions[old] {
            Expression::FunctionArgument(argument)
                if let Some(Argument { whole: Some(whole), .. }) =
                    self.lanes[lane].arguments[argument as usize] =>
            {
                whole
            }
            Expression::LocalVariable(local) => {
                self.constant(Expression::LocalVariable(self.lanes[lane].locals[local.index()]))
            }
            Expression::GlobalVariable(variable) if Some(variable) == self.scalar.replaces => {
                self.constant(Expression::GlobalVariable(self.scalar.variable))
            }
            _ => {
                let expression = self.renewed(old, lane)?;
                self.constant(expression)
            }
        };
        self.lanes[lane].map[old.index()] = Some(new);
        Ok(new)
    }

    /// An expression of the source with new operands.
    fn renewed(&mut self, old: Value, lane: usize) -> Result<Expression> {
        let mut expression = self.source.expressions[old].clone();
        renew_operands(&mut expression, |operand| self.value(operand, lane))?;
        Ok(expression)
    }
}
