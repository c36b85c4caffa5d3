//! Trip counts of loops.
//!
//! A loop is counted by running its counter, with the arithmetic of the code itself. So the count is right for any
//! step and comparison, and also where numbers overflow.

use naga::{BinaryOperator, Block, Expression, Function, Literal, Module, Statement};

use super::constant::{fold, literal};
use crate::ir::variables::{assigned, loaded};
use crate::ir::{Local, Value};

/// Expressions nested deeper are not evaluated.
const MAX_DEPTH: u32 = 8;

/// A loop of the form `for (…; condition; counter = next) { … }`.
pub(crate) struct CountedLoop {
    pub(crate) counter: Local,
    /// The position of the branch that leaves the loop.
    pub(crate) exit: usize,
    pub(super) condition: Value,
    next: Value,
    /// The loads, in each iteration, of the counter and of variables that the loop does not assign.
    loads: Vec<Value>,
}

impl CountedLoop {
    /// The loop with these blocks, if it has that form.
    pub(crate) fn of(function: &Function, [body, continuing]: [&Block; 2]) -> Option<Self> {
        let (exit, condition) = loop_head(body)?;
        let mut loads = Vec::new();
        note_loads(function, &body[..exit], &mut loads);
        let (counter, next) = loop_step(function, continuing, &mut loads)?;
        let mut changed = Vec::new();
        assigned(function, body, &mut |variable| changed.push(variable));
        // A value that was read before the loop is not the variable's value in an iteration.
        loads.retain(|&load| loaded(function, load).is_some_and(|variable| !changed.contains(&variable)));
        Some(Self { counter, exit, condition, next, loads })
    }

    /// The trip count when the counter starts at `start`, if it is at most `max`; `known` gives the values of
    /// other variables.
    pub(crate) fn trip_count(
        &self,
        source: (&Module, &Function),
        (known, start): (&dyn Fn(Local) -> Option<Literal>, Literal),
        max: u32,
    ) -> Option<u32> {
        let mut counter = start;
        for trips in 0..=max {
            let variable = |variable| if variable == self.counter { Some(counter) } else { known(variable) };
            match self.value(source, &variable, self.condition, MAX_DEPTH)? {
                Literal::Bool(true) => counter = self.value(source, &variable, self.next, MAX_DEPTH)?,
                Literal::Bool(false) => return Some(trips),
                _ => return None,
            }
        }
        None
    }

    /// The value of an expression in one iteration.
    fn value(
        &self,
        (module, function): (&Module, &Function),
        variable: &dyn Fn(Local) -> Option<Literal>,
        expression: Value,
        depth: u32,
    ) -> Option<Literal> {
        let depth = depth.checked_sub(1)?;
        let value = |expression| self.value((module, function), variable, expression, depth);
        match function.expressions[expression] {
            Expression::Binary { op, left, right } => fold(op, value(left)?, value(right)?),
            Expression::Load { .. } if self.loads.contains(&expression) => {
                variable(loaded(function, expression)?)
            }
            _ => literal(module, &function.expressions, expression),
        }
    }

    /// The start with the greatest trip count, for a loop that counts up to a constant, unsigned and without
    /// overflow.
    pub(super) fn worst_start(&self, (module, function): (&Module, &Function)) -> Option<Literal> {
        let sides = |expression| match function.expressions[expression] {
            Expression::Binary { op, left, right }
                if self.loads.contains(&left) && loaded(function, left) == Some(self.counter) =>
            {
                Some((op, literal(module, &function.expressions, right)?))
            }
            _ => None,
        };
        match (sides(self.condition)?, sides(self.next)?) {
            (
                (BinaryOperator::Less | BinaryOperator::LessEqual, Literal::U32(limit)),
                (BinaryOperator::Add, Literal::U32(step)),
            ) => limit.checked_add(step).map(|_| Literal::U32(0)),
            _ => None,
        }
    }
}

/// The branch at the start of a `while` body that leaves the loop: its position and condition.
pub(crate) fn loop_head(body: &Block) -> Option<(usize, Value)> {
    let exit = body.iter().position(|statement| !matches!(statement, Statement::Emit(_)))?;
    match &body[exit] {
        Statement::If { condition, accept, reject }
            if accept.is_empty() && matches!(reject[..], [Statement::Break]) =>
        {
            Some((exit, *condition))
        }
        _ => None,
    }
}

/// Adds the loads of variables that the statements evaluate.
fn note_loads(function: &Function, statements: &[Statement], loads: &mut Vec<Value>) {
    for statement in statements {
        if let Statement::Emit(range) = statement {
            loads.extend(range.clone().filter(|&handle| loaded(function, handle).is_some()));
        }
    }
}

/// The single variable that a `continuing` block assigns, and its next value. Also adds the loads of the block.
pub(crate) fn loop_step(
    function: &Function,
    continuing: &[Statement],
    loads: &mut Vec<Value>,
) -> Option<(Local, Value)> {
    note_loads(function, continuing, loads);
    let mut rest = continuing.iter().filter(|statement| !matches!(statement, Statement::Emit(_)));
    match (rest.next()?, rest.next()) {
        (Statement::Block(inner), None) => loop_step(function, inner, loads),
        (&Statement::Store { pointer, value }, None) => match function.expressions[pointer] {
            Expression::LocalVariable(variable) => Some((variable, value)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::unrolling::{Unroll, unrolled_loops};
    use crate::{Program, Specialisation};

    fn parsed(code: &str) -> Program {
        let code = format!(
            "override GROUP = 256u;
             @group(0) @binding(0) var<storage, read_write> y: array<u32>;
             fn change(p: ptr<function, u32>) {{ *p = y[0]; }}
             @compute @workgroup_size(GROUP)
             fn main(@builtin(local_invocation_index) lane: u32) {{ var a = y[0]; {code} y[1] = a; }}"
        );
        Program::parse(&code, "", &Specialisation::default()).unwrap()
    }

    /// The trip count of the only loop that is counted.
    fn trips(code: &str) -> Option<u32> {
        let program = parsed(code);
        let found = unrolled_loops((&program.module, &program.module.entry_points[0].function), Unroll::All);
        assert!(found.len() < 2, "{code}");
        found.into_values().next()
    }

    #[test]
    fn loops_with_any_step_and_comparison_are_counted() {
        for (code, expected) in [
            ("for (var i = 0u; i < 16u; i++) { a += i; }", 16),
            ("for (var i = 3; i < 16; i += 5) { a += 1u; }", 3),
            ("for (var i = 0u; i <= 8u; i += 2u) { a += i; }", 5),
            ("for (var i = -7; i != 0; i++) { a += 1u; }", 7),
            ("for (var i = 5; i >= 0; i--) { a += 1u; }", 6),
            ("for (var i = 0u; 4u > i; i = 1u + i) { a += i; }", 4),
            ("for (var step = 1u; step < GROUP; step *= 2u) { a += step; }", 8),
            ("for (var step = 1u; step <= 256u; step <<= 1u) { a += step; }", 9),
            ("for (var step = 1; step < 300; step = step * -3) { a += 1u; }", 6),
            ("for (var half = GROUP / 2u; half > 0u; half /= 2u) { a += half; }", 8),
            ("for (var half = 128u; half > 0u; half >>= 1u) { a += half; }", 8),
            ("for (var step = 1; step < 64; step <<= 1u) { a += 1u; }", 6),
            ("for (var i = 0u; i == 0u; i++) { a += i; }", 1),
            ("for (var i = u32(); i < 4u; i++) { a += i; }", 4),
            ("for (var half = 64i; half >= 1; half >>= 1u) { a += 1u; }", 7),
            ("for (var half = -64; half < 0; half /= 2) { a += 1u; }", 7),
            ("for (var i = 20u; i < 16u; i++) { a += i; }", 0),
            ("for (var i: u32; i < 4u; i++) { a += i; }", 4),
            ("var i = 9u; if (a == 1u) { i = 8u; a = 2u; } i = 12u; for (; i < 16u; i++) { a += i; }", 4),
            ("if (a == 1u) { for (var i = 0u; i < 4u; i++) { a += i; } }", 4),
            ("loop { if (a == 9u) { break; } for (var i = 2u; i < 4u; i++) { a += i; } }", 2),
            ("let end = 4u; for (var i = 0u; i < end; i++) { if (a == 3u) { continue; } a += i; }", 4),
            ("var i = 0u; loop { if i < 4u {} else { break; } a += i; continuing { { i += 1u; } } }", 4),
        ] {
            assert_eq!(trips(code), Some(expected), "{code}");
        }
    }

    #[test]
    fn an_unknown_start_counts_as_the_worst_one() {
        assert_eq!(trips("for (var i = lane; i < 256u; i += 64u) { a += i; }"), Some(4));
        assert_eq!(trips("for (var i = lane; i <= 256u; i += 64u) { a += i; }"), Some(5));
        for code in [
            "for (var i = i32(lane); i < 256; i += 64) { a += 1u; }",
            "for (var i = lane; i < 4294967295u; i += 1431655765u) { a += i; }",
            "for (var i = lane; i < 256u; i *= 64u) { a += i; }",
            "for (var i = lane; i > 0u; i >>= 8u) { a += i; }",
            "for (var i = lane; 3u < i; i += 2000000000u) { a += i; }",
        ] {
            assert_eq!(trips(code), None, "{code}");
        }
    }

    #[test]
    fn counters_wrap_as_in_the_code() {
        assert_eq!(trips("for (var i = 4294967290u; i > 8u; i++) { a += i; }"), Some(6));
        assert_eq!(trips("for (var i = 2147483646; i > 0; i++) { a += 1u; }"), Some(2));
        assert_eq!(trips("for (var i = 1u; i != 0u; i *= 256u) { a += i; }"), Some(4));
        assert_eq!(trips("for (var i = 0u; i < 4294967295u; i += 1431655765u) { a += i; }"), Some(3));
        for code in [
            "for (var i = 0u; i <= 4294967295u; i += 1431655765u) { a += i; }",
            "for (var i = 3u; i >= 0u; i--) { a += i; }",
            "for (var i = 0u; i < 4294967294u; i += 2147483648u) { a += i; }",
            "for (var i = 0u; i < 256u; i *= 2u) { a += i; }",
            "for (var i = 0u; i != 15u; i += 2u) { a += i; }",
        ] {
            assert_eq!(trips(code), None, "{code}");
        }
    }

    #[test]
    fn loops_not_governed_by_their_counter_are_not_counted() {
        for code in [
            "for (var i = 0u; i < 17u; i++) { a += i; }",
            "for (var i = -1000000; i < 16; i++) { a += 1u; }",
            "for (var i = 0u; a < 16u; i += 4u) { a += i; }",
            "for (var i = 0u; i < 16u; a += 4u) { a += i; }",
            "for (var i = 0u; i < a; i++) { a += i; }",
            "for (var i = 0u; i < 16u; i += a) { a += i; }",
            "for (var i = 0u; i < 16u; i++) { i -= a; }",
            "for (var i = 0u; i < 16u; i++) { change(&i); }",
            "var i = 0u; if (a == 1u) { i = 4u; a = 2u; } for (; i > 0u; i--) { a += i; }",
            "var i = 4u; change(&i); for (; i > 0u; i--) { a += i; }",
            "var i = 0; loop { if (a > 9u) { break; } i -= 3; for (; i < 4; i++) { a += 1u; } }",
            "var i = 0; loop { if (a > 9u) { break; } for (; i < 4; i++) { a += 1u; } i -= 3; }",
            "var n = 8u; for (var i = 0u; i < n; i++) { n = y[i]; }",
            "var i = 0u; let at_first = i < 4u; for (; at_first; i++) { a += i; }",
            "var i = 0u; let at_first = i + 4u; for (; i < 4u; i = at_first) { a += i; }",
            "var i = 4u; while (i > 0u) { if (a == 7u) { continue; } i--; }",
            "for (var i = 0f; i < 4f; i += 1f) { a += 1u; }",
            "for (var i = 0u; i < 4u && a < 9u; i++) { a += i; }",
            "var i = 0u; loop { if i < 4u { a += 1u; } else { break; } continuing { i += 1u; } }",
            "var i = 0u; loop { if i < 4u {} else { a += 1u; if a > 9u { return; } } continuing { i += 1u; } }",
        ] {
            assert_eq!(trips(code), None, "{code}");
        }
    }
}
