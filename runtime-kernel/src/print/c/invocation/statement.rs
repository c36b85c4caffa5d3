//! Prints statements.

use naga::{
    Barrier, Block, Expression, FastHashMap, Function, Handle, Span, Statement, SwitchCase, SwitchValue,
};
use runtime_core::Result;

use super::environment::Environment;
use super::expression::USUAL_LENGTH;
use super::logical::Logical;
use super::plan::Plan;
use super::unchecked_variant::UncheckedVariant;
use crate::analysis::proof::FunctionContext;
use crate::analysis::proof::launch_precondition::Preconditions;
use crate::ir::{Local, Value};
use crate::print::c::form::level;
use crate::print::c::lines::Lines;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

/// Prints the statements and expressions of one function.
#[derive(Debug)]
pub(crate) struct Printer<'w, 'a, E> {
    pub(crate) writer: &'w mut Writer<'a>,
    pub(crate) context: FunctionContext<'a>,
    pub(crate) plan: Plan,
    pub(crate) environment: E,
    pub(crate) lines: Lines,
    /// What `continue` becomes in each enclosing loop; `None` for C's own.
    pub(crate) labels: Vec<Option<String>>,
    /// All labels in the text so far.
    pub(crate) targets: Vec<String>,
    /// The unchecked variant being collected; `None` if the function has none.
    pub(crate) unchecked_variant: Option<UncheckedVariant>,
    /// Whether a chain is being printed for its address.
    pub(crate) addressing: bool,
    /// Whether the function ends after the next statement.
    tail: bool,
    /// Logical operators that are printed where their variable is read, with their precedence.
    pub(crate) flags: FastHashMap<Local, (String, u8)>,
}

impl<'w, 'a, E: Environment> Printer<'w, 'a, E> {
    /// A printer that has not printed anything yet.
    pub(crate) fn new(writer: &'w mut Writer<'a>, context: FunctionContext<'a>, environment: E) -> Self {
        let mut plan = Plan::new(writer, context);
        let (lines, labels) = (Lines::at(1), Vec::new());
        let unchecked_variant = writer.unchecked_variants.then(|| UncheckedVariant {
            flag: plan.fresh(&writer.names, "in_range"),
            preconditions: Preconditions::new(),
        });
        Self {
            writer,
            context,
            plan,
            environment,
            lines,
            labels,
            targets: Vec::new(),
            unchecked_variant,
            addressing: false,
            tail: false,
            flags: FastHashMap::default(),
        }
    }

    /// Marks the next lines as coming from the line of a span, if it has a location.
    pub(crate) fn mark(&mut self, span: Span) {
        if let Some(line) = self.writer.source_lines.as_ref().and_then(|lines| lines.line(span)) {
            self.lines.mark(line);
        }
    }

    /// All statements of a block.
    pub(crate) fn block(&mut self, block: &Block) -> Result<()> {
        lone_block(block).span_iter().try_for_each(|(statement, span)| self.statement(statement, *span))
    }

    /// A function body, which needs no `return` at its end.
    pub(crate) fn body(&mut self, block: &Block) -> Result<()> {
        self.ending(block, true)
    }

    /// A block, possibly the last of a function.
    fn ending(&mut self, block: &Block, tail: bool) -> Result<()> {
        let block = lone_block(block);
        let length = trimmed(block, tail);
        for (index, (statement, span)) in block.span_iter().take(length).enumerate() {
            self.tail = tail && index + 1 == length;
            self.statement(statement, *span)?;
        }
        Ok(())
    }

    /// A block with the line that opens it.
    pub(crate) fn nested(&mut self, block: &Block, open: &str) -> Result<()> {
        self.lines.open(open);
        self.block(block)
    }

    /// One statement.
    ///
    /// # Errors
    /// `Unsupported` for what the language cannot express.
    pub(crate) fn statement(&mut self, statement: &Statement, span: Span) -> Result<()> {
        let tail = std::mem::take(&mut self.tail);
        self.mark(span);
        match statement {
            Statement::Emit(range) => range.clone().try_for_each(|expression| self.emit(expression)),
            Statement::Block(block) => {
                self.lines.open("{");
                self.ending(block, tail)?;
                self.lines.close("}");
                Ok(())
            }
            Statement::If { condition, accept, reject } => self.branch(*condition, [accept, reject], tail),
            Statement::Switch { selector, cases } => self.switch(*selector, cases),
            Statement::Loop { body, continuing, break_if } => {
                self.loop_statement(body, continuing, *break_if)
            }
            Statement::Break => {
                self.lines.line("break;");
                Ok(())
            }
            Statement::Continue => {
                let label = self.labels.last().cloned().flatten();
                self.lines
                    .line(&label.map_or_else(|| "continue;".to_owned(), |label| format!("goto {label};")));
                Ok(())
            }
            Statement::Return { value } => {
                let value = value.map(|value| self.value(value)).transpose()?;
                let text = self.environment.leave(value.as_deref());
                self.lines.line(&text);
                Ok(())
            }
            Statement::ControlBarrier(barrier) | Statement::MemoryBarrier(barrier) => {
                self.barrier(*barrier, span)
            }
            Statement::Store { pointer, value } => self.store(*pointer, *value),
            Statement::Atomic { pointer, fun, value, result } => {
                self.atomic(*pointer, (*fun, *value), *result, span)
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.barrier(Barrier::WORK_GROUP, span)?;
                let value = self.load(*pointer, &self.context.info[*result].ty)?.0;
                self.define(*result, &value)?;
                self.barrier(Barrier::WORK_GROUP, span)
            }
            Statement::Call { function, arguments, result } => self.call(*function, arguments, *result),
            Statement::SubgroupBallot { .. }
            | Statement::SubgroupGather { .. }
            | Statement::SubgroupCollectiveOperation { .. } => self.subgroup(statement, span),
            Statement::CooperativeStore { target, data } => self.cooperative_store(*target, *data),
            _ => Err(self.writer.unsupported("this kind of statement", span)),
        }
    }

    /// Defines an expression's value if it is named.
    pub(crate) fn emit(&mut self, expression: Value) -> Result<()> {
        if !self.plan.is_named(expression) {
            return Ok(());
        }
        let mut value = String::with_capacity(USUAL_LENGTH);
        self.put_unnamed(&mut value, expression, level::ANY)?;
        self.define(expression, &value)
    }

    /// Stores the value of a named expression.
    pub(crate) fn define(&mut self, expression: Value, value: &str) -> Result<()> {
        let type_name =
            self.writer.resolved_name(&self.context.info[expression].ty, self.span(expression))?;
        let Some(name) = self.plan.value(expression) else {
            self.lines.line(&[value, ";"]);
            return Ok(());
        };
        let text = if self.plan.is_hoisted(expression) {
            [name, " = ", value, ";"].concat()
        } else {
            self.environment.define(expression, &type_name, name, value)
        };
        self.lines.line(&text);
        Ok(())
    }

    /// A barrier statement.
    pub(crate) fn barrier(&mut self, barrier: Barrier, span: Span) -> Result<()> {
        let text = self.environment.barrier(self.writer, barrier, span)?;
        self.lines.line(&text);
        Ok(())
    }

    fn branch(&mut self, condition: Value, [accept, reject]: [&Block; 2], tail: bool) -> Result<()> {
        if self.logical(condition, [accept, reject])? {
            return Ok(());
        }
        if trimmed(accept, tail) == 0 && trimmed(reject, tail) > 0 {
            let condition = self.operand(condition, level::UNARY)?;
            self.lines.open(&["if (!", &condition, ") {"]);
            self.ending(reject, tail)?;
            self.lines.close("}");
            return Ok(());
        }
        let condition = self.value(condition)?;
        self.lines.open(&["if (", &condition, ") {"]);
        self.ending(accept, tail)?;
        let mut reject = reject;
        // A branch that is alone in the `else` of another becomes `else if`.
        while let [Statement::If { condition, accept, reject: next }] = &reject[..]
            && !accept.is_empty()
        {
            reject.span_iter().for_each(|(_, span)| self.mark(*span));
            let condition = self.value(*condition)?;
            self.lines.reopen(&["} else if (", &condition, ") {"]);
            self.ending(accept, tail)?;
            reject = next;
        }
        if trimmed(reject, tail) > 0 {
            self.lines.reopen("} else {");
            self.ending(reject, tail)?;
        }
        self.lines.close("}");
        Ok(())
    }

    /// Prints `a && b` and `a || b`, or keeps it for its only reader; returns whether the branch is one of them.
    pub(crate) fn logical(&mut self, condition: Value, branches: [&Block; 2]) -> Result<bool> {
        let is_named = |value| self.plan.is_named(value);
        let Some(logical) = Logical::of(self.context, &is_named, condition, branches) else {
            return Ok(false);
        };
        let (sign, own) = if logical.and { ("&&", level::AND) } else { ("||", level::OR) };
        let left = if logical.left_negated {
            ["!", &self.operand(logical.left, level::UNARY)?].concat()
        } else {
            self.flag(logical.left, own)?.map_or_else(|| self.operand(logical.left, level::EQUAL), Ok)?
        };
        let right = self.operand(logical.right, level::EQUAL)?;
        let text = [&left, " ", sign, " ", &right].concat();
        if self.plan.is_flag(logical.variable) {
            self.flags.insert(logical.variable, (text, own));
        } else {
            let place = self.environment.local(&self.plan, logical.variable);
            let place = if place.pointer { format!("*{}", place.text) } else { place.text.into_owned() };
            self.lines.line(&[&place, " = ", &text, ";"]);
        }
        Ok(true)
    }

    /// The kept logical operator for this place, if its precedence is `own`.
    fn flag(&self, expression: Value, own: u8) -> Result<Option<String>> {
        let Expression::Load { pointer } = self.context.function.expressions[expression] else {
            return Ok(None);
        };
        let Expression::LocalVariable(variable) = self.context.function.expressions[pointer] else {
            return Ok(None);
        };
        let kept = self.flags.get(&variable).filter(|(_, level)| *level == own);
        Ok(kept.filter(|_| !self.plan.is_named(expression)).map(|(text, _)| text.clone()))
    }

    fn switch(&mut self, selector: Value, cases: &[SwitchCase]) -> Result<()> {
        let selector = self.value(selector)?;
        self.lines.line(&["switch (", &selector, ") {"]);
        for case in cases {
            let label = case_label(case.value);
            if case.fall_through && case.body.is_empty() {
                self.lines.line(&label);
                continue;
            }
            self.nested(&case.body, &format!("{label} {{"))?;
            let ends = case.body.last().is_some_and(|last| {
                matches!(last, Statement::Break | Statement::Continue | Statement::Return { .. })
            });
            if !ends && !case.fall_through {
                self.lines.line("break;");
            }
            self.lines.close("}");
        }
        self.lines.line("}");
        Ok(())
    }

    fn call(&mut self, function: Handle<Function>, arguments: &[Value], result: Option<Value>) -> Result<()> {
        let mut operands = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let value = self.value(*argument)?;
            operands.push(self.with_name_for_literal(*argument, value)?);
        }
        operands.extend(self.passed(function));
        let call = [self.writer.names.function(function), "(", &operands.join(", "), ")"].concat();
        match result {
            Some(result) if self.plan.is_used(result) => self.define(result, &call),
            _ => {
                self.lines.line(&[&call, ";"]);
                Ok(())
            }
        }
    }

    /// A call argument; in OpenCL C a literal is named first, like one that is indexed (`plan.rs`).
    pub(super) fn with_name_for_literal(&mut self, argument: Value, value: String) -> Result<String> {
        if self.writer.dialect != Dialect::OpenCl || !value.contains('{') {
            return Ok(value);
        }
        let type_name = self.writer.resolved_name(&self.context.info[argument].ty, self.span(argument))?;
        let name = self.plan.fresh(&self.writer.names, "literal");
        self.lines.line(&["const ", &type_name, " ", &name, " = ", &value, ";"]);
        Ok(name)
    }
}

/// The only inner block of a block, repeatedly.
fn lone_block(mut block: &Block) -> &Block {
    while let [Statement::Block(inner)] = &block[..] {
        block = inner;
    }
    block
}

/// The number of statements of a block, without a `return` that ends the function.
fn trimmed(block: &Block, tail: bool) -> usize {
    match block.last() {
        Some(Statement::Return { value: None }) if tail => block.len() - 1,
        _ => block.len(),
    }
}

/// The label of a switch case.
pub(crate) fn case_label(value: SwitchValue) -> String {
    match value {
        SwitchValue::I32(i32::MIN) => "case -2147483647 - 1:".to_owned(),
        SwitchValue::I32(value) => format!("case {value}:"),
        SwitchValue::U32(value) => format!("case {value}u:"),
        SwitchValue::Default => "default:".to_owned(),
    }
}
