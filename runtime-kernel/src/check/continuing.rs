//! Rejects a `continue` that bypasses a declaration which the loop's `continuing` block uses. WGSL forbids it and
//! naga does not check it; the value would never have been computed.

use naga::{Block, Expression, FastHashSet, Function, Module, Span, Statement};
use runtime_core::Result;

use crate::ir::blocks::{self, Skip};
use crate::ir::operands::{operands, used_by};
use crate::ir::{Local, Value};
use crate::parse::diagnostics::{failed, location};

/// Checks all loops of a module, whose text is `code`.
///
/// # Errors
/// `CompileFailed`, naming the declaration and the lines of all three places.
pub(crate) fn check(module: &Module, code: &str, path: &str) -> Result<()> {
    blocks::functions(module).try_for_each(|function| {
        let mut found = None;
        blocks::any(&function.body, &mut |statement| {
            found = found.take().or_else(|| bypassed(function, statement));
            found.is_some()
        });
        found.map_or(Ok(()), |found: Bypassed| Err(found.error(code, path)))
    })
}

/// A declaration that a `continue` bypasses.
struct Bypassed {
    name: Option<String>,
    declared: Span,
    jump: Span,
    used: Span,
}

impl Bypassed {
    fn error(&self, code: &str, path: &str) -> runtime_core::Error {
        let at = |span| location(code, path, span);
        let name = self.name.as_ref().map_or_else(|| "a value".to_owned(), |name| format!("\"{name}\""));
        failed(format!(
            "{}: `continue` bypasses the declaration of {name} ({}), which the `continuing` block uses ({}); \
             declare it before the `continue`",
            at(self.jump),
            at(self.declared),
            at(self.used)
        ))
    }
}

/// A declaration that the `continuing` block uses and the first `continue` of the body bypasses.
fn bypassed(function: &Function, statement: &Statement) -> Option<Bypassed> {
    let Statement::Loop { body, continuing, break_if } = statement else { return None };
    let first = body.iter().position(|statement| Skip::of(statement) == Skip::Continue)?;
    let jump = jump(body)?;
    let late = late(&body[first + 1..]);
    let begins = start(continuing);
    let mut uses = Uses { function, seen: FastHashSet::default(), list: Vec::new() };
    uses.block(continuing);
    uses.list.extend(break_if.map(|condition| (condition, Span::UNDEFINED)));
    while let Some((expression, used)) = uses.list.pop() {
        let declared = match function.expressions[expression] {
            Expression::LocalVariable(variable) => declared_after(function, variable, jump)
                .filter(|span| span.to_range().map(|at| at.start) < begins),
            _ if late.contains(&expression) => Some(function.expressions.get_span(expression)),
            _ => None,
        };
        if let Some(declared) = declared {
            let name = match function.expressions[expression] {
                Expression::LocalVariable(variable) => function.local_variables[variable].name.clone(),
                _ => function.named_expressions.get(&expression).cloned(),
            };
            return Some(Bypassed { name, declared, jump, used });
        }
        uses.within(expression, used);
    }
    None
}

/// The location of the first `continue` in a loop's body.
fn jump(block: &Block) -> Option<Span> {
    block.span_iter().find_map(|(statement, &span)| match statement {
        Statement::Continue => Some(span),
        Statement::Loop { .. } => None,
        other => blocks::inner(other).find_map(jump),
    })
}

/// The expressions that these statements evaluate for those after them.
fn late(statements: &[Statement]) -> FastHashSet<Value> {
    let mut late = FastHashSet::default();
    for statement in statements {
        match statement {
            Statement::Emit(range) => late.extend(range.clone()),
            other => late.extend(used_by(other).1),
        }
    }
    late
}

/// The start of a block in the text.
fn start(block: &Block) -> Option<usize> {
    let own = block.span_iter().filter_map(|(_, span)| span.to_range().map(|range| range.start));
    own.chain(block.iter().flat_map(blocks::inner).filter_map(start)).min()
}

/// The location of a variable's declaration, if it comes after a `continue`. The module declares all variables
/// before the body, so only the text shows this.
fn declared_after(function: &Function, variable: Local, jump: Span) -> Option<Span> {
    let declared = function.local_variables.get_span(variable);
    let is_after = declared.to_range()?.start > jump.to_range()?.start;
    (is_after && function.local_variables[variable].name.is_some()).then_some(declared)
}

/// The expressions that statements use, each with the location of the statement.
struct Uses<'f> {
    function: &'f Function,
    seen: FastHashSet<Value>,
    list: Vec<(Value, Span)>,
}

impl Uses<'_> {
    fn block(&mut self, block: &Block) {
        for (statement, &span) in block.span_iter() {
            match statement {
                Statement::Emit(range) => self.list.extend(range.clone().map(|value| (value, span))),
                other => self.list.extend(used_by(other).0.into_iter().map(|used| (used, span))),
            }
            blocks::inner(statement).for_each(|block| self.block(block));
        }
    }

    /// Adds the operands of an expression.
    fn within(&mut self, expression: Value, used: Span) {
        if self.seen.insert(expression) {
            let span = self.function.expressions.get_span(expression);
            let used = if span.is_defined() { span } else { used };
            self.list.extend(operands(&self.function.expressions[expression]).map(|operand| (operand, used)));
        }
    }
}
