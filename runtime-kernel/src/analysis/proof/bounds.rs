//! Bounds that conditions imply: within `if i < n { … }`, after `if i >= n { return; }` and in
//! `for (var i = 0u; i < 16u; i++) { … }`, `i` is below the other side.
//!
//! A fact is about a value, not a variable: assignments are numbered, and each load records the number of the
//! assignment that it reads.

use naga::valid::FunctionInfo;
use naga::{
    BinaryOperator, Block, Expression, FastHashMap, Function, Handle, Module, Scalar, Statement, SwitchCase,
    TypeInner, UnaryOperator,
};

pub(crate) use super::facts::{Bounds, Fact, Scope};
use super::{FunctionContext, range};
use crate::ir::blocks::leaves;
use crate::ir::variables::{Root, assigned, loaded, lone_assignment, root, truth};
use crate::ir::{Local, Value};
use crate::program::Program;

/// The facts about all functions and entry points of a module.
#[derive(Debug)]
pub(crate) struct AllBounds {
    functions: Vec<Bounds>,
    entries: Vec<Bounds>,
}

impl AllBounds {
    /// Collects the facts that the conditions of a module imply.
    pub(crate) fn of(program: &Program) -> Self {
        let (module, info) = (&program.module, &program.info);
        let functions = module.functions.iter();
        let entries = module.entry_points.iter().enumerate();
        Self {
            functions: functions
                .map(|(handle, function)| Walk::analyse(module, function, &info[handle], None))
                .collect(),
            entries: entries
                .map(|(index, point)| {
                    let info = info.get_entry_point(index);
                    Walk::analyse(module, &point.function, info, Some(point.workgroup_size))
                })
                .collect(),
        }
    }

    /// A function of the program whose facts these are.
    pub(crate) fn function<'a>(
        &'a self,
        program: &'a Program,
        handle: Handle<Function>,
    ) -> FunctionContext<'a> {
        FunctionContext {
            module: &program.module,
            function: &program.module.functions[handle],
            info: &program.info[handle],
            group_size: None,
            bounds: &self.functions[handle.index()],
        }
    }

    /// An entry point of the program whose facts these are.
    pub(crate) fn entry<'a>(&'a self, program: &'a Program, index: usize) -> FunctionContext<'a> {
        let point = &program.module.entry_points[index];
        FunctionContext {
            module: &program.module,
            function: &point.function,
            info: program.info.get_entry_point(index),
            group_size: Some(point.workgroup_size),
            bounds: &self.entries[index],
        }
    }
}

/// A variable that holds `left && right` or `left || right`: if its value equals `is`, then `left` has the given
/// value, and `right` that of the variable.
#[derive(Clone, Copy)]
struct Logical {
    is: bool,
    left: (Value, bool),
    right: Value,
}

struct Walk<'f> {
    module: &'f Module,
    function: &'f Function,
    info: &'f FunctionInfo,
    bounds: Bounds,
    /// By variable: the number of its latest assignment.
    latest: Vec<u32>,
    assignments: u32,
    /// By assignment number.
    logical: FastHashMap<u32, Logical>,
    /// The values assigned to variables; `None` if unknown.
    stores: Vec<(Local, Option<Value>)>,
}

impl<'f> Walk<'f> {
    fn analyse(
        module: &'f Module,
        function: &'f Function,
        info: &'f FunctionInfo,
        group_size: Option<[u32; 3]>,
    ) -> Bounds {
        let mut walk = Self {
            module,
            function,
            info,
            bounds: Bounds::new(function),
            latest: vec![1; function.local_variables.len()],
            assignments: 1,
            logical: FastHashMap::default(),
            stores: Vec::new(),
        };
        walk.block(&function.body, Scope::default());
        walk.ceilings(group_size);
        walk.bounds
    }

    fn block(&mut self, block: &[Statement], mut scope: Scope) {
        for statement in block {
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        let variable = loaded(self.function, handle);
                        let reads = variable.map_or(0, |variable| self.latest[variable.index()]);
                        self.bounds.note(handle, scope, reads);
                    }
                }
                Statement::Store { pointer, value } => self.store(*pointer, *value),
                Statement::Call { arguments, result, .. } => {
                    if let Some(result) = *result {
                        self.bounds.note_call(result, arguments);
                    }
                    for &argument in arguments {
                        if let Root::Local(variable) = root(self.function, argument) {
                            self.assign(variable);
                            self.stores.push((variable, None));
                        }
                    }
                }
                Statement::Block(inner) => self.block(inner, scope),
                Statement::If { condition, accept, reject } => {
                    scope = self.branch(*condition, [accept, reject], scope);
                }
                Statement::Switch { cases, .. } => self.switch(cases, scope),
                Statement::Loop { body, continuing, .. } => {
                    let changed = self.changed(&[body, continuing]);
                    self.invalidate(&changed);
                    self.block(body, scope);
                    self.invalidate(&changed);
                    self.block(continuing, scope);
                    self.invalidate(&changed);
                }
                _ => {}
            }
        }
    }

    fn store(&mut self, pointer: Value, value: Value) {
        let Root::Local(variable) = root(self.function, pointer) else { return };
        let whole = matches!(self.function.expressions[pointer], Expression::LocalVariable(_));
        self.assign(variable);
        self.stores.push((variable, whole.then_some(value)));
    }

    fn assign(&mut self, variable: Local) {
        self.assignments += 1;
        self.latest[variable.index()] = self.assignments;
    }

    /// The variables that the blocks may assign.
    fn changed(&self, blocks: &[&Block]) -> Vec<Local> {
        let mut found = Vec::new();
        blocks.iter().for_each(|block| assigned(self.function, block, &mut |variable| found.push(variable)));
        found
    }

    fn invalidate(&mut self, variables: &[Local]) {
        variables.iter().for_each(|&variable| self.assign(variable));
    }

    fn switch(&mut self, cases: &[SwitchCase], scope: Scope) {
        let bodies: Vec<&Block> = cases.iter().map(|case| &case.body).collect();
        let changed = self.changed(&bodies);
        for body in bodies {
            self.invalidate(&changed);
            self.block(body, scope);
        }
        self.invalidate(&changed);
    }

    /// Returns the facts that hold after a branch.
    fn branch(&mut self, condition: Value, [accept, reject]: [&Block; 2], scope: Scope) -> Scope {
        let holds = self.assume(condition, true, scope);
        let fails = self.assume(condition, false, scope);
        let before = self.latest.clone();
        self.block(accept, holds);
        let accepted = std::mem::replace(&mut self.latest, before);
        self.block(reject, fails);
        match (leaves(accept), leaves(reject)) {
            (true, _) => fails,
            (false, true) => {
                self.latest = accepted;
                holds
            }
            (false, false) => {
                for (variable, _) in self.function.local_variables.iter() {
                    if accepted[variable.index()] != self.latest[variable.index()] {
                        self.assign(variable);
                    }
                }
                self.note_logical(condition, [accept, reject]);
                scope
            }
        }
    }

    /// naga's front end lowers `a && b` to a branch that assigns a variable.
    fn note_logical(&mut self, left: Value, [accept, reject]: [&Block; 2]) {
        let (Some((variable, accepted)), Some((other, rejected))) =
            (lone_assignment(self.function, accept), lone_assignment(self.function, reject))
        else {
            return;
        };
        if variable != other {
            return;
        }
        let logical = match (truth(self.function, accepted), truth(self.function, rejected)) {
            (_, Some(other)) => Logical { is: !other, left: (left, true), right: accepted },
            (Some(other), _) => Logical { is: !other, left: (left, false), right: rejected },
            _ => return,
        };
        self.logical.insert(self.latest[variable.index()], logical);
    }

    /// The facts of `scope`, plus those that the condition implies.
    fn assume(&mut self, condition: Value, holds: bool, scope: Scope) -> Scope {
        use BinaryOperator as Op;
        match self.function.expressions[condition] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => self.assume(expr, !holds, scope),
            Expression::Binary { op, left, right } => match (op, holds) {
                (Op::LogicalAnd | Op::And, true) | (Op::LogicalOr | Op::InclusiveOr, false) => {
                    let scope = self.assume(left, holds, scope);
                    self.assume(right, holds, scope)
                }
                (Op::Less, true) | (Op::GreaterEqual, false) => self.fact(left, right, true, scope),
                (Op::Greater, true) | (Op::LessEqual, false) => self.fact(right, left, true, scope),
                (Op::LessEqual, true) | (Op::Greater, false) => self.fact(left, right, false, scope),
                (Op::GreaterEqual, true) | (Op::Less, false) => self.fact(right, left, false, scope),
                (Op::Equal, true) | (Op::NotEqual, false) => {
                    let scope = self.fact(left, right, false, scope);
                    self.fact(right, left, false, scope)
                }
                _ => scope,
            },
            Expression::Load { .. } => match self.logical.get(&self.bounds.assignment(condition)).copied() {
                Some(Logical { is, left: (left, is_left), right }) if is == holds => {
                    let scope = self.assume(left, is_left, scope);
                    self.assume(right, holds, scope)
                }
                _ => scope,
            },
            _ => scope,
        }
    }

    fn fact(&mut self, value: Value, bound: Value, strict: bool, scope: Scope) -> Scope {
        match *self.info[value].ty.inner_with(&self.module.types) {
            TypeInner::Scalar(Scalar::U32) => self.bounds.add(Fact { value, bound, strict, outer: scope }),
            _ => scope,
        }
    }

    /// Finds the variables that never exceed the first value assigned to them.
    fn ceilings(&mut self, group_size: Option<[u32; 3]>) {
        let (module, function, info) = (self.module, self.function, self.info);
        for (variable, declared) in function.local_variables.iter() {
            if module.types[declared.ty].inner != TypeInner::Scalar(Scalar::U32) {
                continue;
            }
            let stores = self.stores.iter().filter(|(stored, _)| *stored == variable);
            let Some(values) = stores.map(|(_, value)| *value).collect::<Option<Vec<_>>>() else { continue };
            let upper = |bounds: &Bounds, value| {
                let context = FunctionContext { module, function, info, group_size, bounds };
                range::upper(context, bounds.scope(value), value, 0)
            };
            let (own, other): (Vec<_>, Vec<_>) =
                values.into_iter().partition(|&value| range::reads(function, value, variable, 0));
            let first = declared.init.map_or(Some(0), |init| upper(&self.bounds, init));
            let greatest = other.iter().map(|&value| upper(&self.bounds, value)).chain([first]);
            let Some(greatest) = greatest.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max())
            else {
                continue;
            };
            // Induction: if it is within the limit before an assignment from its own value, it must be so after.
            self.bounds.set_ceiling(variable, Some(greatest));
            if own.iter().any(|&value| upper(&self.bounds, value).is_none_or(|after| after > greatest)) {
                self.bounds.set_ceiling(variable, None);
            }
        }
    }
}
