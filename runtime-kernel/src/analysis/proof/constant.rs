//! Constant values, and constant folding.

use naga::{Arena, BinaryOperator as Op, Expression, Function, Literal, Module, Statement, TypeInner};

use crate::ir::variables::assigned_by;
use crate::ir::{Local, Value};

/// The literal behind an expression, looking through named constants.
pub(crate) fn literal(
    module: &Module,
    expressions: &Arena<Expression>,
    expression: Value,
) -> Option<Literal> {
    match expressions[expression] {
        Expression::Literal(literal) => Some(literal),
        Expression::ZeroValue(ty) => match module.types[ty].inner {
            TypeInner::Scalar(scalar) => Literal::zero(scalar),
            _ => None,
        },
        Expression::Constant(constant) => {
            literal(module, &module.global_expressions, module.constants[constant].init)
        }
        _ => None,
    }
}

/// Folds an operation on constants, as WGSL evaluates it at run time.
pub(crate) fn fold(op: Op, left: Literal, right: Literal) -> Option<Literal> {
    let bools = |a: bool| Some(Literal::Bool(a));
    match (left, right) {
        (Literal::U32(a), Literal::U32(b)) => match op {
            Op::Add => Some(Literal::U32(a.wrapping_add(b))),
            Op::Subtract => Some(Literal::U32(a.wrapping_sub(b))),
            Op::Multiply => Some(Literal::U32(a.wrapping_mul(b))),
            Op::Divide => a.checked_div(b).map(Literal::U32),
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
            Op::Divide => a.checked_div(b).map(Literal::I32),
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

/// The variables, integers and booleans, whose value is known at a program point.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownValues(Vec<Option<Literal>>);

impl KnownValues {
    /// The known values at the start of a function.
    pub(crate) fn at_start(module: &Module, function: &Function) -> Self {
        let mut known = Self::default();
        for (variable, local) in function.local_variables.iter() {
            known.set(
                variable,
                match (local.init, &module.types[local.ty].inner) {
                    (Some(init), _) => literal(module, &function.expressions, init),
                    (None, TypeInner::Scalar(scalar)) => Literal::zero(*scalar),
                    _ => None,
                },
            );
        }
        known
    }

    pub(crate) fn value(&self, variable: Local) -> Option<Literal> {
        self.0.get(variable.index()).copied().flatten()
    }

    /// Whether no value is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Records a value, or that it is unknown.
    pub(crate) fn set(&mut self, variable: Local, value: Option<Literal>) {
        let value = value.filter(|v| matches!(v, Literal::U32(_) | Literal::I32(_) | Literal::Bool(_)));
        if self.0.len() <= variable.index() && value.is_some() {
            self.0.resize(variable.index() + 1, None);
        }
        if let Some(known) = self.0.get_mut(variable.index()) {
            *known = value;
        }
    }

    /// Applies the effect of a statement without a block.
    pub(crate) fn note(&mut self, (module, function): (&Module, &Function), statement: &Statement) {
        assigned_by(function, statement, &mut |variable| self.set(variable, None));
        if let Statement::Store { pointer, value } = *statement
            && let Expression::LocalVariable(variable) = function.expressions[pointer]
        {
            self.set(variable, literal(module, &function.expressions, value));
        }
    }

    /// Marks variables as unknown.
    pub(crate) fn forget(&mut self, variables: &[Local]) {
        variables.iter().for_each(|&variable| self.set(variable, None));
    }

    /// Keeps the values that are the same at another program point.
    pub(crate) fn intersect(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        self.0
            .iter_mut()
            .zip(&other.0)
            .filter(|(mine, theirs)| mine != theirs)
            .for_each(|(mine, _)| *mine = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Specialisation};

    /// The variables of a kernel that are known at its start, by name.
    fn known(variables: &str) -> (KnownValues, Vec<(String, Local)>) {
        let code = format!(
            "const SEVEN = 7u;
             @group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(1) fn main() {{ {variables} }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let function = &program.module.entry_points[0].function;
        let names = function.local_variables.iter().map(|(at, local)| (local.name.clone().unwrap(), at));
        (KnownValues::at_start(&program.module, function), names.collect())
    }

    #[test]
    fn integer_and_boolean_variables_have_a_known_initial_value() {
        let (known, names) = known(
            "var a: u32; var b = SEVEN; var c = i32(); var d: bool; var e = 3i; var f = 1f; var g = vec2u(); var h = y[0];",
        );
        let value = |name: &str| known.value(names.iter().find(|(other, _)| other == name).unwrap().1);
        for (name, expected) in [
            ("a", Some(Literal::U32(0))),
            ("b", Some(Literal::U32(7))),
            ("c", Some(Literal::I32(0))),
            ("d", Some(Literal::Bool(false))),
            ("e", Some(Literal::I32(3))),
            ("f", None),
            ("g", None),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
    }

    #[test]
    fn a_join_keeps_values_known_on_both_paths() {
        let (mut here, names) = known("var a = 1u; var b = 2u; var c = 3u;");
        let [a, b, c] = [0, 1, 2].map(|at: usize| names[at].1);
        let mut there = here.clone();
        there.set(b, Some(Literal::U32(5)));
        here.intersect(&there);
        assert_eq!([a, b, c].map(|at| here.value(at)), [Some(Literal::U32(1)), None, Some(Literal::U32(3))]);
        // Setting one variable does not affect the others.
        here.set(a, Some(Literal::U32(9)));
        assert_eq!(here.value(c), Some(Literal::U32(3)));
        let mut empty = KnownValues::default();
        empty.set(c, None);
        empty.intersect(&here);
        here.intersect(&empty);
        assert_eq!([a, b, c].map(|at| here.value(at)), [None; 3]);
    }
}
