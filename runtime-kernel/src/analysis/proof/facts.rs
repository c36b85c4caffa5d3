//! Facts about values, and when two expressions have the same value.

use naga::{AddressSpace, Expression, FastHashMap, Function, Module};

use crate::ir::{Local, Value};

/// `value < bound` or `value <= bound`, for unsigned numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(crate) value: Value,
    pub(crate) bound: Value,
    pub(crate) strict: bool,
    /// The scope that this fact was added to.
    pub(crate) outer: Scope,
}

/// The facts that hold at a program point: the innermost one, which links to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope(u32);

/// What is known about the values of a function.
#[derive(Debug)]
pub(crate) struct Bounds {
    facts: Vec<Fact>,
    /// By expression: the facts that hold where it is evaluated.
    scopes: Vec<Scope>,
    /// By expression: the number of the assignment that a load of a variable reads, from 1.
    assignments: Vec<u32>,
    /// By variable: an upper bound of its values.
    ceilings: Vec<Option<u64>>,
    /// By result of a call: its arguments.
    calls: FastHashMap<Value, Vec<Value>>,
}

/// Expressions nested deeper are not compared.
const MAX_DEPTH: u32 = 6;

impl Bounds {
    pub(super) fn new(function: &Function) -> Self {
        let expressions = function.expressions.len();
        Self {
            facts: Vec::new(),
            scopes: vec![Scope::default(); expressions],
            assignments: vec![0; expressions],
            ceilings: vec![None; function.local_variables.len()],
            calls: FastHashMap::default(),
        }
    }

    pub(super) fn note(&mut self, expression: Value, scope: Scope, assignment: u32) {
        self.scopes[expression.index()] = scope;
        self.assignments[expression.index()] = assignment;
    }

    #[expect(clippy::cast_possible_truncation, reason = "texts are smaller than 4 GiB")]
    pub(super) fn add(&mut self, fact: Fact) -> Scope {
        self.facts.push(fact);
        Scope(self.facts.len() as u32)
    }

    pub(super) fn set_ceiling(&mut self, variable: Local, ceiling: Option<u64>) {
        self.ceilings[variable.index()] = ceiling;
    }

    pub(super) fn note_call(&mut self, result: Value, arguments: &[Value]) {
        self.calls.insert(result, arguments.to_vec());
    }

    /// The arguments of a call, by its result.
    pub(super) fn arguments_of(&self, result: Value) -> Option<&[Value]> {
        self.calls.get(&result).map(Vec::as_slice)
    }

    pub(super) fn assignment(&self, load: Value) -> u32 {
        self.assignments[load.index()]
    }

    /// The facts that hold where an expression is evaluated.
    pub(crate) fn scope(&self, expression: Value) -> Scope {
        self.scopes[expression.index()]
    }

    /// An upper bound of a variable's values.
    pub(crate) fn ceiling(&self, variable: Local) -> Option<u64> {
        self.ceilings[variable.index()]
    }

    /// The facts about a value that hold at a program point.
    pub(crate) fn facts_of<'a>(
        &'a self,
        (module, function): (&'a Module, &'a Function),
        scope: Scope,
        value: Value,
    ) -> impl Iterator<Item = Fact> + 'a {
        self.facts_in(scope).filter(move |fact| self.same(module, function, (fact.value, value), MAX_DEPTH))
    }

    /// All facts that hold at a program point.
    pub(crate) fn facts_in(&self, scope: Scope) -> impl Iterator<Item = Fact> + '_ {
        let fact = |Scope(last): Scope| self.facts.get((last as usize).checked_sub(1)?).copied();
        std::iter::successors(fact(scope), move |inner| fact(inner.outer))
    }

    /// Whether two expressions have the same value wherever both are evaluated.
    pub(crate) fn are_same(&self, (module, function): (&Module, &Function), a: Value, b: Value) -> bool {
        self.same(module, function, (a, b), MAX_DEPTH)
    }

    /// The same, up to a nesting depth.
    fn same(&self, module: &Module, function: &Function, (a, b): (Value, Value), depth: u32) -> bool {
        use Expression as E;
        if a == b || depth == 0 {
            return a == b;
        }
        let same = |a, b| self.same(module, function, (a, b), depth - 1);
        match (&function.expressions[a], &function.expressions[b]) {
            (E::Load { pointer: p }, E::Load { pointer: q }) => match &function.expressions[*p] {
                E::LocalVariable(_) => {
                    same(*p, *q) && self.assignment(a) != 0 && self.assignment(a) == self.assignment(b)
                }
                _ => is_immediate(module, function, *p) && same(*p, *q),
            },
            (E::AccessIndex { base, index }, E::AccessIndex { base: other, index: second }) => {
                index == second && same(*base, *other)
            }
            (E::Binary { op, left, right }, E::Binary { op: second, left: other, right: last }) => {
                op == second && same(*left, *other) && same(*right, *last)
            }
            (E::As { expr, kind, convert }, E::As { expr: other, kind: second, convert: last }) => {
                kind == second && convert == last && same(*expr, *other)
            }
            (E::ArrayLength(array), E::ArrayLength(other)) => same(*array, *other),
            (E::Literal(_), E::Literal(_))
            | (E::Constant(_), E::Constant(_))
            | (E::FunctionArgument(_), E::FunctionArgument(_))
            | (E::LocalVariable(_), E::LocalVariable(_))
            | (E::GlobalVariable(_), E::GlobalVariable(_)) => {
                function.expressions[a] == function.expressions[b]
            }
            _ => false,
        }
    }
}

/// Whether a pointer leads into the scalar arguments.
fn is_immediate(module: &Module, function: &Function, pointer: Value) -> bool {
    match function.expressions[pointer] {
        Expression::GlobalVariable(variable) => {
            module.global_variables[variable].space == AddressSpace::Immediate
        }
        Expression::AccessIndex { base, .. } => is_immediate(module, function, base),
        _ => false,
    }
}
