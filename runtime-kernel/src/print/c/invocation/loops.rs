//! Prints loops, as `for` or `while` where they have that shape.

use naga::{Block, Expression, Statement};
use runtime_core::Result;

use super::environment::Environment;
use super::logical::{Logical, unnamed_emits};
use super::statement::Printer;
use crate::analysis::proof::trip_count::loop_head;
use crate::ir::Value;
use crate::ir::blocks::Skip;
use crate::ir::operands::used_by;
use crate::ir::variables::loaded;
use crate::print::c::form::level;
use crate::program::Dialect;

/// A loop's body from the first statement after its head.
#[derive(Clone, Copy)]
struct Body<'b> {
    block: &'b Block,
    from: usize,
}

impl<E: Environment> Printer<'_, '_, E> {
    /// A loop, with hoisted checks if it has any.
    pub(crate) fn loop_statement(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Option<Value>,
    ) -> Result<()> {
        let hoisted = loop_head(body).and_then(|(_, condition)| self.environment.hoisted(condition));
        match hoisted {
            Some(checks) => self.hoisted(&checks, (body, continuing)),
            None => self.plain_loop(body, continuing, break_if),
        }
    }

    /// The loop itself.
    pub(crate) fn plain_loop(
        &mut self,
        body: &Block,
        continuing: &Block,
        break_if: Option<Value>,
    ) -> Result<()> {
        let found = self.condition_of(body);
        for statement in body.iter().take(found.map_or(0, |(_, from)| from.saturating_sub(1))) {
            if let Statement::If { condition, accept, reject } = statement {
                self.logical(*condition, [accept, reject])?;
            }
        }
        let condition = found.map(|(condition, _)| self.value(condition)).transpose()?;
        let body = Body { block: body, from: found.map_or(0, |(_, from)| from) };
        let update = if break_if.is_none() { self.update_of(continuing)? } else { None };
        let heads = condition.is_some();
        let head = condition.unwrap_or_default();
        if update.is_some() && found.is_some_and(|(condition, _)| self.plan.is_unrolled(condition)) {
            self.lines.line("#pragma unroll");
        }
        match (update, continuing.is_empty() && break_if.is_none()) {
            (Some(update), _) => self.headed(&["for (; ", &head, "; ", &update, ") {"].concat(), heads, body),
            (None, true) if heads => self.headed(&["while (", &head, ") {"].concat(), heads, body),
            (None, true) => self.headed("for (;;) {", heads, body),
            (None, false) => {
                let open = if heads { ["while (", &head, ") {"].concat() } else { "for (;;) {".to_owned() };
                self.with_continuing(&open, heads, body, (continuing, break_if))
            }
        }
    }

    /// A loop in which `continue` is C's own.
    fn headed(&mut self, open: &str, heads: bool, body: Body<'_>) -> Result<()> {
        self.begin(open, heads);
        self.labels.push(None);
        self.statements(body)?;
        self.labels.pop();
        self.lines.close("}");
        Ok(())
    }

    fn begin(&mut self, open: &str, heads: bool) {
        self.lines.open(open);
        // C++ lets a compiler assume that a loop terminates, unless it has a side effect.
        if !heads && self.writer.dialect == Dialect::Cuda {
            self.lines.line("asm volatile(\"\");");
        }
    }

    /// A loop with its `continuing` block printed after its body.
    fn with_continuing(
        &mut self,
        open: &str,
        heads: bool,
        body: Body<'_>,
        (continuing, break_if): (&Block, Option<Value>),
    ) -> Result<()> {
        if Skip::of_block(body.block) != Skip::Continue {
            self.begin(open, heads);
            self.labels.push(None);
            self.statements(body)?;
            self.labels.pop();
            return self.end(continuing, break_if);
        }
        let label = self.plan.fresh(&self.writer.names, "next");
        self.targets.push(label.clone());
        self.hoist(body)?;
        self.begin(open, heads);
        self.lines.open("{");
        self.labels.push(Some(label.clone()));
        self.statements(body)?;
        self.labels.pop();
        self.lines.close("}");
        self.lines.line(&[&label, ":;"]);
        self.end(continuing, break_if)
    }

    fn end(&mut self, continuing: &Block, break_if: Option<Value>) -> Result<()> {
        self.labels.push(None);
        self.block(continuing)?;
        self.labels.pop();
        if let Some(condition) = break_if {
            let condition = self.value(condition)?;
            self.lines.line(&["if (", &condition, ") break;"]);
        }
        self.lines.close("}");
        Ok(())
    }

    fn statements(&mut self, body: Body<'_>) -> Result<()> {
        if let [Statement::Block(inner)] = &body.block[body.from..] {
            return self.block(inner);
        }
        body.block
            .span_iter()
            .skip(body.from)
            .try_for_each(|(statement, span)| self.statement(statement, *span))
    }

    /// Declares the named values of a body in front of it, since the `continuing` block may use them.
    fn hoist(&mut self, body: Body<'_>) -> Result<()> {
        for statement in body.block.iter() {
            let results: Vec<_> = match statement {
                Statement::Emit(range) => range.clone().collect(),
                other => used_by(other).1.into_iter().collect(),
            };
            for expression in results {
                let Some(name) = self.plan.value(expression) else { continue };
                let ty = &self.context.info[expression].ty;
                let type_name = self.writer.resolved_name(ty, self.span(expression))?;
                self.lines.line(&[&type_name, " ", name, ";"]);
                self.plan.hoist(expression);
            }
        }
        Ok(())
    }

    /// The condition of a `while`: the loop begins with `if condition {} else { break; }`. Also returns the
    /// position of the statement after it.
    fn condition_of(&self, body: &Block) -> Option<(Value, usize)> {
        let is_named = |value| self.plan.is_named(value);
        let mut start = unnamed_emits(&is_named, body, 0)?;
        while let Some(Statement::If { condition, accept, reject }) = body.get(start)
            && let Some(logical) = Logical::of(self.context, &is_named, *condition, [accept, reject])
            && self.plan.is_flag(logical.variable)
        {
            start = unnamed_emits(&is_named, body, start + 1)?;
        }
        match body.get(start)? {
            Statement::If { condition, accept, reject }
                if accept.is_empty() && matches!(reject[..], [Statement::Break]) =>
            {
                Some((*condition, start + 1))
            }
            _ => None,
        }
    }

    /// The update of a `for`: the `continuing` block is a single assignment.
    fn update_of(&mut self, continuing: &Block) -> Result<Option<String>> {
        let is_named = |value| self.plan.is_named(value);
        let Some(start) = unnamed_emits(&is_named, continuing, 0) else { return Ok(None) };
        let [Statement::Store { pointer, value }] = continuing[start..] else { return Ok(None) };
        if !matches!(self.context.function.expressions[pointer], Expression::LocalVariable(_))
            || self.mentions_named(value)
        {
            return Ok(None);
        }
        let place = self.place(pointer)?;
        let value = self.operand(value, level::ANY)?;
        Ok(Some([&place.lvalue(), " = ", &value].concat()))
    }

    /// Whether a value depends on a named value of a body, possibly that of the loop.
    fn mentions_named(&self, expression: Value) -> bool {
        if self.plan.is_named(expression) {
            return true;
        }
        match self.context.function.expressions[expression] {
            Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::ZeroValue(_)
            | Expression::FunctionArgument(_)
            | Expression::ArrayLength(_) => false,
            Expression::Load { .. } => loaded(self.context.function, expression).is_none(),
            Expression::Binary { left, right, .. } => self.mentions_named(left) || self.mentions_named(right),
            Expression::Unary { expr, .. } | Expression::As { expr, .. } => self.mentions_named(expr),
            Expression::AccessIndex { base, .. } => {
                self.context.is_pointer(base) || self.mentions_named(base)
            }
            _ => true,
        }
    }
}
