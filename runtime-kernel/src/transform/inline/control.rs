//! Copies branches, switches and loops into the new body.

use naga::{AddressSpace, Arena, Block, Expression, Function, Literal, Module, Span, Statement, SwitchCase};
use runtime_core::Result;

use super::LARGE;
use super::body::{Exit, Frame, Rebuild, push_emit};
use super::unroll::UnrollPlan;
use crate::ir::blocks::has_return;
use crate::ir::variables::{Root, lone_assignment, root, truth};
use crate::ir::{Local, Value};

impl Rebuild<'_> {
    pub(super) fn control(
        &mut self,
        frame: &mut Frame<'_>,
        (statement, span): (&Statement, Span),
        depth: u32,
        out: &mut Block,
    ) -> Result<()> {
        match statement {
            Statement::If { condition, accept, reject } => {
                let condition = self.value(frame, *condition)?;
                self.branch(frame, condition, [accept, reject], (depth, span), out)
            }
            Statement::Switch { selector, cases } => {
                let selector = self.value(frame, *selector)?;
                let cases = self.cases(frame, cases, depth)?;
                out.push(Statement::Switch { selector, cases }, span);
                self.propagate_return(frame, statement, out);
                Ok(())
            }
            Statement::Loop { body, continuing, break_if } => {
                if break_if.is_none()
                    && self.out.expressions.len() < LARGE
                    && let Some(plan) = self.unroll_plan(frame, body, continuing)
                {
                    return self.unroll_loop(frame, &plan, [body, continuing], (depth, span), out);
                }
                self.forget_assigned(frame, &[body, continuing]);
                let new = self.block(frame, body, depth + 1)?;
                // A `continue` reaches this point from the middle of the body.
                self.forget_assigned(frame, &[body]);
                let next = self.block(frame, continuing, depth + 1)?;
                let break_if = break_if.map(|condition| self.value(frame, condition)).transpose()?;
                self.forget_assigned(frame, &[body, continuing]);
                out.push(Statement::Loop { body: new, continuing: next, break_if }, span);
                self.propagate_return(frame, statement, out);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn branch(
        &mut self,
        frame: &mut Frame<'_>,
        condition: Value,
        [accept, reject]: [&Block; 2],
        (depth, span): (u32, Span),
        out: &mut Block,
    ) -> Result<()> {
        if let Some(Literal::Bool(taken)) = self.literal(condition) {
            let block = self.block(frame, if taken { accept } else { reject }, depth)?;
            out.push(Statement::Block(block), span);
            return Ok(());
        }
        let before = self.known.clone();
        let accept = self.block(frame, accept, depth)?;
        let accepted = std::mem::replace(&mut self.known, before);
        let reject = self.block(frame, reject, depth)?;
        self.known.intersect(&accepted);
        if let Some(operation) = self.operation(condition, &accept, &reject) {
            self.join_operation(operation, accept, span, out);
        } else {
            out.push(Statement::If { condition, accept, reject }, span);
        }
        Ok(())
    }

    fn cases(&mut self, frame: &mut Frame<'_>, cases: &[SwitchCase], depth: u32) -> Result<Vec<SwitchCase>> {
        let mut new = Vec::with_capacity(cases.len());
        let bodies: Vec<&Block> = cases.iter().map(|case| &case.body).collect();
        for case in cases {
            self.forget_assigned(frame, &bodies);
            let body = self.block(frame, &case.body, depth + 1)?;
            new.push(SwitchCase { value: case.value, body, fall_through: case.fall_through });
        }
        self.forget_assigned(frame, &bodies);
        Ok(new)
    }

    /// Unrolls a loop.
    fn unroll_loop(
        &mut self,
        frame: &mut Frame<'_>,
        plan: &UnrollPlan,
        [body, continuing]: [&Block; 2],
        (depth, span): (u32, Span),
        out: &mut Block,
    ) -> Result<()> {
        self.counters.push(plan.counter);
        for _ in 0..plan.trips {
            let mut iteration = Block::new();
            for (place, (statement, &span)) in body.span_iter().enumerate() {
                if place != plan.exit {
                    self.statement(frame, (statement, span), depth, &mut iteration)?;
                }
            }
            iteration.append(&mut self.block(frame, continuing, depth)?);
            out.push(Statement::Block(iteration), span);
        }
        self.counters.pop();
        Ok(())
    }

    /// After an inner loop or switch that may have returned, leaves the enclosing one as well.
    fn propagate_return(&mut self, frame: &Frame<'_>, inner: &Statement, out: &mut Block) {
        if let Exit::Leave { flag, .. } = frame.exit
            && has_return(inner)
        {
            let condition = self.read(flag, out);
            let mut accept = Block::new();
            accept.push(Statement::Break, Span::UNDEFINED);
            out.push(Statement::If { condition, accept, reject: Block::new() }, Span::UNDEFINED);
        }
    }

    /// Recognises the branch that the front end generates for `&&` or `||`; returns its variable and the
    /// operation.
    fn operation(&self, condition: Value, accept: &Block, reject: &Block) -> Option<(Local, Expression)> {
        let (local, right) = lone_assignment(&self.out, accept)?;
        let (other, short) = lone_assignment(&self.out, reject)?;
        let variable = &self.out.local_variables[local];
        let ours = local == other && variable.name.is_none() && variable.init.is_none() && reject.len() == 1;
        let speculatable = accept[..accept.len() - 1].iter().all(|statement| match statement {
            Statement::Emit(range) => {
                range.clone().all(|handle| is_speculatable(&self.out, self.module, handle))
            }
            _ => false,
        });
        if !ours || !speculatable {
            return None;
        }
        let (op, left) = match (truth(&self.out, short)?, &self.out.expressions[condition]) {
            (false, _) => (naga::BinaryOperator::LogicalAnd, condition),
            (true, &Expression::Unary { op: naga::UnaryOperator::LogicalNot, expr }) => {
                (naga::BinaryOperator::LogicalOr, expr)
            }
            _ => return None,
        };
        Some((local, Expression::Binary { op, left, right }))
    }

    fn join_operation(
        &mut self,
        (local, operation): (Local, Expression),
        accept: Block,
        span: Span,
        out: &mut Block,
    ) {
        let emits = accept.span_into_iter().filter(|(statement, _)| matches!(statement, Statement::Emit(_)));
        for (statement, span) in emits {
            out.push(statement, span);
        }
        let new = self.out.expressions.append(operation, span);
        push_emit(out, new, span);
        self.logical_operations.insert(local, new);
    }
}

/// Whether an expression may be evaluated speculatively: it reads no memory that might be out of range.
fn is_speculatable(function: &Function, module: &Module, expression: Value) -> bool {
    match function.expressions[expression] {
        Expression::Load { pointer } => match root(function, pointer) {
            Root::Local(_) => is_fixed(&function.expressions, pointer),
            Root::Global(variable) => {
                module.global_variables[variable].space == AddressSpace::Immediate
                    && is_fixed(&function.expressions, pointer)
            }
            Root::Argument => false,
        },
        _ => true,
    }
}

/// Whether a pointer has no computed index.
fn is_fixed(expressions: &Arena<Expression>, pointer: Value) -> bool {
    match expressions[pointer] {
        Expression::Access { .. } => false,
        Expression::AccessIndex { base, .. } => is_fixed(expressions, base),
        _ => true,
    }
}
