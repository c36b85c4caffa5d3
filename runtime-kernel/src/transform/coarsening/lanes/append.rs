//! Appends expressions and statements to the new body.

use naga::{BinaryOperator, Block, Expression, Handle, Literal, Range, Span, Statement, Type, TypeInner};
use runtime_core::{Error, Result};

use super::Copier;

impl Copier<'_> {
    /// The block of the statements that `write` pushes.
    pub(super) fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<Block> {
        self.flush();
        self.blocks.push(Block::new());
        write(self)?;
        self.flush();
        Ok(self.blocks.pop().unwrap_or_default())
    }

    /// Ends the pending `Emit` range.
    pub(super) fn flush(&mut self) {
        if let (Some([first, last]), Some(block)) = (self.run.take(), self.blocks.last_mut()) {
            block.push(Statement::Emit(Range::new_from_bounds(first, last)), Span::UNDEFINED);
        }
    }

    pub(super) fn push(&mut self, statement: Statement) {
        self.flush();
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement, Span::UNDEFINED);
        }
    }

    /// Appends an expression that is evaluated here.
    pub(super) fn append(&mut self, expression: Expression) -> Handle<Expression> {
        self.append_at(expression, Span::UNDEFINED)
    }

    pub(super) fn append_at(&mut self, expression: Expression, span: Span) -> Handle<Expression> {
        let new = self.out.expressions.append(expression, span);
        self.run = Some([self.run.map_or(new, |[first, _]| first), new]);
        new
    }

    /// Appends an expression that needs no `Emit`.
    pub(super) fn constant(&mut self, expression: Expression) -> Handle<Expression> {
        self.flush();
        self.out.expressions.append(expression, Span::UNDEFINED)
    }

    pub(super) fn number(&mut self, number: u32) -> Handle<Expression> {
        self.constant(Expression::Literal(Literal::U32(number)))
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Handle<Expression> {
        self.append(Expression::Binary { op, left, right })
    }

    /// The values joined by an operator.
    pub(super) fn folded(
        &mut self,
        op: BinaryOperator,
        values: &[Handle<Expression>],
    ) -> Result<Handle<Expression>> {
        let joined = values.iter().copied().reduce(|left, right| self.binary(op, left, right));
        joined.ok_or_else(|| Error::unsupported("coarsening by a factor of 0 is not supported"))
    }

    pub(super) fn type_of(&mut self, inner: TypeInner) -> Handle<Type> {
        self.types.insert(Type { name: None, inner }, Span::UNDEFINED)
    }
}
