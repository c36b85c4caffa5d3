//! Writes the body of a function: nested blocks, and the `Emit` of each range of expressions.

use naga::{BinaryOperator, Block, Expression, Function, Literal, Range, Span, Statement};
use runtime_core::Result;

use crate::ir::Value;

/// A function being written.
pub(crate) struct BodyWriter {
    pub(crate) function: Function,
    /// The enclosing blocks of the next statement.
    blocks: Vec<Block>,
    /// The pending range of expressions for the next `Emit`: first and last.
    run: Option<[Value; 2]>,
}

impl BodyWriter {
    /// Continues `function`, whose statements are replaced.
    pub(crate) const fn new(function: Function) -> Self {
        Self { function, blocks: Vec::new(), run: None }
    }

    /// Ends the pending `Emit` range.
    fn flush(&mut self) {
        if let (Some([first, last]), Some(block)) = (self.run.take(), self.blocks.last_mut()) {
            block.push(Statement::Emit(Range::new_from_bounds(first, last)), Span::UNDEFINED);
        }
    }

    /// The function with its body.
    pub(crate) fn finish(mut self, body: Block) -> Function {
        self.function.body = body;
        self.function
    }
}

/// Something that writes a body.
pub(crate) trait WriteBody: Sized {
    fn writer(&mut self) -> &mut BodyWriter;

    /// The block of the statements that `write` pushes.
    fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<Block> {
        self.writer().flush();
        self.writer().blocks.push(Block::new());
        write(self)?;
        self.writer().flush();
        Ok(self.writer().blocks.pop().unwrap_or_default())
    }

    /// A block of one statement.
    fn lone(&mut self, statement: Statement) -> Block {
        self.writer().flush();
        Block::from_vec(vec![statement])
    }

    fn push(&mut self, statement: Statement) {
        let writer = self.writer();
        writer.flush();
        if let Some(block) = writer.blocks.last_mut() {
            block.push(statement, Span::UNDEFINED);
        }
    }

    /// Appends an expression that is evaluated here.
    fn append(&mut self, expression: Expression) -> Value {
        self.append_at(expression, Span::UNDEFINED)
    }

    fn append_at(&mut self, expression: Expression, span: Span) -> Value {
        let writer = self.writer();
        let new = writer.function.expressions.append(expression, span);
        writer.run = Some([writer.run.map_or(new, |[first, _]| first), new]);
        new
    }

    /// Appends an expression that needs no `Emit`.
    fn constant(&mut self, expression: Expression) -> Value {
        let writer = self.writer();
        writer.flush();
        writer.function.expressions.append(expression, Span::UNDEFINED)
    }

    fn number(&mut self, number: u32) -> Value {
        self.constant(Expression::Literal(Literal::U32(number)))
    }

    fn binary(&mut self, op: BinaryOperator, left: Value, right: Value) -> Value {
        self.append(Expression::Binary { op, left, right })
    }
}
