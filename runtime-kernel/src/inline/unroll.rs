//! Loops of few iterations whose number is constant, written out.

use naga::{BinaryOperator as Op, Block, Expression, FastHashMap, Handle, Literal, LocalVariable, Statement};

use super::body::{Frame, Rebuild};

/// Iterations that are written out at most.
const TRIPS: usize = 16;

/// Expressions of all iterations together.
const SIZE: usize = 800;

/// Values of variables that are known.
pub(super) type Known = FastHashMap<Handle<LocalVariable>, Literal>;

/// A loop to be written out.
pub(super) struct Plan {
    pub(super) trips: usize,
    /// The place of the branch that leaves the loop.
    pub(super) exit: usize,
    pub(super) counter: Handle<LocalVariable>,
}

impl Rebuild<'_> {
    /// Whether a loop is of the form `for (…; condition; variable = …)`, with a number of iterations that is known.
    pub(super) fn plan(&self, frame: &Frame<'_>, body: &Block, continuing: &Block) -> Option<Plan> {
        let exit = body.iter().position(|statement| !matches!(statement, Statement::Emit(_)))?;
        let Statement::If { condition, accept, reject } = &body[exit] else { return None };
        let leaves = accept.is_empty() && matches!(reject[..], [Statement::Break]);
        if !leaves || body[exit + 1..].iter().any(|statement| jumps(statement, false)) {
            return None;
        }
        let (variable, next) = step(frame, continuing)?;
        if body[exit + 1..].iter().any(|statement| stores(frame, statement, variable)) {
            return None;
        }
        let local = frame.locals[variable.index()];
        let mut known = self.known.clone();
        let mut trips = 0;
        while self.constant(frame, *condition, &known)? == Literal::Bool(true) {
            trips += 1;
            if trips > TRIPS {
                return None;
            }
            let value = self.constant(frame, next, &known)?;
            known.insert(local, value);
        }
        (trips * size(body) <= SIZE).then_some(Plan { trips, exit, counter: local })
    }

    /// The value of an expression of the source, given the variables.
    fn constant(&self, frame: &Frame<'_>, old: Handle<Expression>, known: &Known) -> Option<Literal> {
        match frame.source.expressions[old] {
            Expression::Literal(literal) => Some(literal),
            Expression::Constant(_) => self.literal_of_constant(frame, old),
            Expression::Load { pointer } => match frame.source.expressions[pointer] {
                Expression::LocalVariable(local) => known.get(&frame.locals[local.index()]).copied(),
                _ => None,
            },
            Expression::Binary { op, left, right } => {
                fold(op, self.constant(frame, left, known)?, self.constant(frame, right, known)?)
            }
            _ => None,
        }
    }

    fn literal_of_constant(&self, frame: &Frame<'_>, old: Handle<Expression>) -> Option<Literal> {
        match frame.source.expressions[old] {
            Expression::Constant(constant) => {
                match self.module.global_expressions[self.module.constants[constant].init] {
                    Expression::Literal(literal) => Some(literal),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The literal that a new expression is.
    pub(super) fn literal(&self, new: Handle<Expression>) -> Option<Literal> {
        match self.out.expressions[new] {
            Expression::Literal(literal) => Some(literal),
            Expression::Constant(constant) => {
                match self.module.global_expressions[self.module.constants[constant].init] {
                    Expression::Literal(literal) => Some(literal),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Forgets the variables that a block may assign.
    pub(super) fn forget(&mut self, frame: &Frame<'_>, blocks: &[&Block]) {
        for (old, _) in frame.source.local_variables.iter() {
            let assigned =
                blocks.iter().any(|block| block.iter().any(|statement| stores(frame, statement, old)));
            if assigned && let Some(new) = frame.locals.get(old.index()) {
                self.known.remove(new);
            }
        }
        // What arguments point to may be assigned through them.
        for &argument in &frame.arguments {
            if let crate::uniformity::Root::Local(local) = crate::uniformity::root(&self.out, argument) {
                self.known.remove(&local);
            }
        }
    }

    /// Notes what a store makes known.
    pub(super) fn note(&mut self, statement: &Statement) {
        match *statement {
            Statement::Store { pointer, value } => match self.out.expressions[pointer] {
                Expression::LocalVariable(local) => match self.literal(value) {
                    Some(literal @ (Literal::U32(_) | Literal::I32(_) | Literal::Bool(_))) => {
                        self.known.insert(local, literal);
                    }
                    _ => {
                        self.known.remove(&local);
                    }
                },
                _ => self.lose(pointer),
            },
            Statement::Atomic { pointer, .. } => self.lose(pointer),
            Statement::Call { ref arguments, .. } => {
                arguments.iter().for_each(|&argument| self.lose(argument));
            }
            _ => {}
        }
    }

    fn lose(&mut self, pointer: Handle<Expression>) {
        if let crate::uniformity::Root::Local(local) = crate::uniformity::root(&self.out, pointer) {
            self.known.remove(&local);
        }
    }
}

/// The one variable that the `continuing` block assigns, and its next value.
fn step(frame: &Frame<'_>, continuing: &Block) -> Option<(Handle<LocalVariable>, Handle<Expression>)> {
    let mut found = None;
    for statement in continuing {
        match *statement {
            Statement::Emit(_) => {}
            Statement::Store { pointer, value } if found.is_none() => {
                let Expression::LocalVariable(variable) = frame.source.expressions[pointer] else {
                    return None;
                };
                found = Some((variable, value));
            }
            Statement::Block(ref inner) if found.is_none() => found = Some(step(frame, inner)?),
            _ => return None,
        }
    }
    found
}

/// Whether a statement jumps out of the loop around it, or to its next iteration.
fn jumps(statement: &Statement, in_switch: bool) -> bool {
    let any = |block: &Block, in_switch| block.iter().any(|statement| jumps(statement, in_switch));
    match statement {
        Statement::Break => !in_switch,
        Statement::Continue | Statement::Return { .. } => true,
        Statement::Block(block) => any(block, in_switch),
        Statement::If { accept, reject, .. } => any(accept, in_switch) || any(reject, in_switch),
        Statement::Switch { cases, .. } => cases.iter().any(|case| any(&case.body, true)),
        Statement::Loop { body, continuing, .. } => {
            body.iter().chain(continuing.iter()).any(super::has_return)
        }
        _ => false,
    }
}

/// Whether a statement may assign a variable.
fn stores(frame: &Frame<'_>, statement: &Statement, variable: Handle<LocalVariable>) -> bool {
    let any = |block: &Block| block.iter().any(|statement| stores(frame, statement, variable));
    let leads =
        |pointer| crate::uniformity::root(frame.source, pointer) == crate::uniformity::Root::Local(variable);
    match statement {
        Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } => leads(*pointer),
        Statement::Call { arguments, .. } => arguments.iter().any(|&argument| leads(argument)),
        Statement::Block(block) => any(block),
        Statement::If { accept, reject, .. } => any(accept) || any(reject),
        Statement::Switch { cases, .. } => cases.iter().any(|case| any(&case.body)),
        Statement::Loop { body, continuing, .. } => any(body) || any(continuing),
        _ => false,
    }
}

/// Expressions that a block evaluates.
pub(crate) fn size(block: &Block) -> usize {
    block
        .iter()
        .map(|statement| match statement {
            Statement::Emit(range) => range.clone().count(),
            Statement::Block(block) => size(block),
            Statement::If { accept, reject, .. } => size(accept) + size(reject),
            Statement::Switch { cases, .. } => cases.iter().map(|case| size(&case.body)).sum(),
            Statement::Loop { body, continuing, .. } => 2 * (size(body) + size(continuing)),
            Statement::Call { .. } => 12,
            _ => 1,
        })
        .sum()
}

/// The value of an operation on constants, as WGSL computes it at run time.
pub(super) fn fold(op: Op, left: Literal, right: Literal) -> Option<Literal> {
    let bools = |a: bool| Some(Literal::Bool(a));
    match (left, right) {
        (Literal::U32(a), Literal::U32(b)) => match op {
            Op::Add => Some(Literal::U32(a.wrapping_add(b))),
            Op::Subtract => Some(Literal::U32(a.wrapping_sub(b))),
            Op::Multiply => Some(Literal::U32(a.wrapping_mul(b))),
            Op::ShiftLeft => Some(Literal::U32(a << (b & 31))),
            Op::ShiftRight => Some(Literal::U32(a >> (b & 31))),
            other => compare(other, &a, &b).and_then(bools),
        },
        (Literal::I32(a), Literal::U32(b)) => match op {
            Op::ShiftLeft => Some(Literal::I32(a << (b & 31))),
            Op::ShiftRight => Some(Literal::I32(a >> (b & 31))),
            _ => None,
        },
        (Literal::I32(a), Literal::I32(b)) => match op {
            Op::Add => Some(Literal::I32(a.wrapping_add(b))),
            Op::Subtract => Some(Literal::I32(a.wrapping_sub(b))),
            Op::Multiply => Some(Literal::I32(a.wrapping_mul(b))),
            other => compare(other, &a, &b).and_then(bools),
        },
        _ => None,
    }
}

fn compare<T: Ord>(op: Op, a: &T, b: &T) -> Option<bool> {
    Some(match op {
        Op::Less => a < b,
        Op::LessEqual => a <= b,
        Op::Greater => a > b,
        Op::GreaterEqual => a >= b,
        Op::Equal => a == b,
        Op::NotEqual => a != b,
        _ => return None,
    })
}
