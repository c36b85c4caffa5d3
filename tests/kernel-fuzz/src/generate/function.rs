//! Helper functions and their calls.

use super::Generator;
use super::context::{Context, Space, Variable};
use super::expression::Constraints;
use crate::tree::{Expression, Scalar, Statement, Type};

const U32: Type = Type::Scalar(Scalar::U32);

/// A helper function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    name: String,
    parameters: Vec<(Type, Space)>,
    result: Option<Type>,
    /// All work-items must call it, with the lane as its first argument.
    barriers: bool,
    /// The private variables that it uses.
    uses: Vec<String>,
}

impl Generator {
    /// Declares a function with parameters, a body and a `return`.
    #[allow(clippy::too_many_lines, reason = "one declaration from front to back")]
    pub(super) fn function_declaration(&mut self, at: usize) -> Statement {
        if self.random.once_in(4) {
            return self.function_with_barriers(at);
        }
        let name = format!("f{at}{}", self.tag);
        let mut parameters = vec![(U32, Space::Value)];
        for _ in 0..self.random.below(3) {
            let space = match self.random.below(5) {
                0 | 1 => Space::Function,
                2 => Space::Private,
                _ => Space::Value,
            };
            let ty = match space {
                // Only types of existing private variables.
                Space::Private => match self.privates.is_empty() {
                    true => continue,
                    false => self.random.one(&self.privates.clone()).1.clone(),
                },
                _ => self.ty(2),
            };
            parameters.push((ty, space));
        }
        let result = (self.random.below(4) > 0).then(|| self.ty(1));
        let kept = self.enter_function();
        let mut texts = Vec::new();
        for (ty, space) in &parameters {
            let name = self.name();
            let (text, written) = match space {
                Space::Function => (format!("(*{name})"), format!("{name}: ptr<function, {ty}>")),
                Space::Private => (format!("(*{name})"), format!("{name}: ptr<private, {ty}>")),
                _ => (name.clone(), format!("{name}: {ty}")),
            };
            texts.push(written);
            let value = *space == Space::Value;
            let variable = Variable::value(&name, ty.clone(), false);
            self.scope.push(Variable { text, space: *space, writable: !value, ..variable });
        }
        // Avoid aliasing of private variables.
        let has_pointer = parameters.iter().any(|(_, space)| *space == Space::Private);
        if has_pointer {
            let private =
                |variable: &Variable| variable.space == Space::Private && variable.text == variable.name;
            self.block_start -= self.scope.iter().filter(|variable| private(variable)).count();
            self.scope.retain(|variable| !private(variable));
        }
        self.result = result.clone();
        let context = Context {
            uniform: false,
            depth: 2,
            loops: 1,
            breaks: false,
            continues: false,
            returns: true,
            barriers: false,
        };
        let length = 2 + self.random.below(5);
        let mut body = self.statements(context, length);
        if self.result.is_some() && self.random.once_in(4) {
            body.extend(self.endless_loop(context));
        } else if self.result.is_some() {
            body.push(self.return_());
        }
        let uses = self.leave_function(kept);
        let arrow = result.as_ref().map_or(String::new(), |ty| format!(" -> {ty}"));
        let head = format!("fn {name}({}){arrow} ", texts.join(", "));
        self.functions.push(Function { name, parameters, result, barriers: false, uses });
        Statement::new(&head, Vec::new()).block("", body)
    }

    /// Declares a function with its own work-group memory.
    fn function_with_barriers(&mut self, at: usize) -> Statement {
        let (name, n) = (format!("f{at}{}", self.tag), self.lanes);
        let tile = format!("tile{at}{}", self.tag);
        let scalar = *self.random.one(&[Scalar::I32, Scalar::U32]);
        let ty = Type::Scalar(scalar);
        let (step, rounds) = (1 + self.random.below(3), 2 + self.random.below(3));
        let kept = self.enter_function();
        self.scope.push(Variable::value("lane", U32, false));
        self.scope.push(Variable::value("given", ty.clone(), false));
        let first = self.runtime_expression(&ty, Constraints { depth: 2, uniform: false });
        let leaves = self.random.once_in(3);
        self.leave_function(kept);
        let line = |text: &str| Statement::new(text, Vec::new());
        let t = scalar.name();
        let mut body = vec![
            Statement::new(&format!("{tile}[lane] = @;"), vec![first]),
            line("workgroupBarrier();"),
            line(&format!("var sum = {};", scalar.literal(0))),
        ];
        let add = line(&format!("sum = sum * {} + {tile}[(lane + i * {step}u) % {n}u];", scalar.literal(3)));
        let mut inside = vec![add];
        if leaves {
            let early = line(&format!("if i == {}.{} ", self.immediates, self.first_immediate));
            inside.push(early.block("", vec![line("workgroupBarrier();"), line("return sum;")]));
        }
        body.push(line(&format!("for (var i = 0u; i < {rounds}u; i++) ")).block("", inside));
        body.extend([line("workgroupBarrier();"), line("return sum;")]);
        self.globals.push(Statement::new(&format!("var<workgroup> {tile}: array<{t}, {n}>;"), Vec::new()));
        let head = format!("fn {name}(lane: u32, given: {t}) -> {t} ");
        let parameters = vec![(U32, Space::Value), (ty.clone(), Space::Value)];
        self.functions.push(Function {
            name,
            parameters,
            result: Some(ty),
            barriers: true,
            uses: Vec::new(),
        });
        line(&head).block("", body)
    }

    /// The arguments of a call; `None` if a pointer parameter has no possible target.
    fn arguments(&mut self, function: &Function, constraints: Constraints) -> Option<Vec<Expression>> {
        let mut taken: Vec<String> = function.uses.clone();
        let mut arguments = Vec::new();
        for (index, (ty, space)) in function.parameters.iter().enumerate() {
            if *space == Space::Value {
                if function.barriers && index == 0 {
                    arguments.push(Expression::new(U32, &self.lane.clone(), Vec::new()).runtime().lvalue());
                } else {
                    let value = self.expression(ty, constraints);
                    arguments.push(self.bounded(value));
                }
                continue;
            }
            let parts = !self.without.element_pointers;
            let fits = |generator: &Self, variable: &Variable| {
                variable.space == *space
                    && (variable.ty == *ty || parts && variable.ty.has_place(ty))
                    && variable.writable
                    && !variable.uniform
                    && generator.is_visible(variable)
                    && !taken.contains(&variable.root)
            };
            let variables: Vec<_> = self.scope.iter().filter(|v| fits(self, v)).cloned().collect();
            if variables.is_empty() {
                return None;
            }
            let variable = self.random.one(&variables).clone();
            taken.push(variable.root.clone());
            self.note_use(&variable);
            let whole = variable.expression().runtime().lvalue();
            let place = self.place(whole, ty, Constraints { depth: 1, ..constraints });
            arguments.push(Expression::new(ty.clone(), "&@", vec![place]).lvalue());
        }
        function.uses.iter().for_each(|name| self.used.push(name.clone()));
        Some(arguments)
    }

    /// A call whose result has this type.
    pub(super) fn call_value(&mut self, ty: &Type, constraints: Constraints) -> Option<Expression> {
        if constraints.uniform || self.calls == 0 {
            return None;
        }
        let fits = |function: &&Function| !function.barriers && function.result.as_ref() == Some(ty);
        let functions: Vec<_> = self.functions.iter().filter(fits).cloned().collect();
        let function = (!functions.is_empty()).then(|| self.random.one(&functions).clone())?;
        self.calls -= 1;
        let arguments =
            self.arguments(&function, Constraints { depth: constraints.depth.min(1), ..constraints })?;
        Some(call(&function, arguments, ty.clone()))
    }

    /// A call as a statement; declares variables for some of its pointer parameters.
    pub(super) fn call(&mut self, context: Context, block: &mut Vec<Statement>) {
        let functions: Vec<_> =
            self.functions.iter().filter(|function| !function.barriers).cloned().collect();
        if functions.is_empty() || self.calls == 0 {
            return;
        }
        self.calls -= 1;
        let function = self.random.one(&functions).clone();
        let constraints = Constraints { depth: 1, uniform: false };
        for (ty, space) in &function.parameters {
            if *space == Space::Function && self.random.once_in(2) {
                let name = self.name();
                let value = self.expression(ty, constraints);
                let value = self.bounded(value);
                block.push(Statement::new(&format!("var {name}: {ty} = @;"), vec![value]));
                let variable = Variable::value(&name, ty.clone(), false);
                self.scope.push(Variable { space: Space::Function, writable: true, ..variable });
            }
        }
        let Some(arguments) = self.arguments(&function, constraints) else { return };
        let _ = context;
        match &function.result {
            None => {
                let call = call(&function, arguments, Type::Nothing);
                block.push(Statement::new("@;", vec![call]));
            }
            Some(ty) => {
                let call = call(&function, arguments, ty.clone());
                let name = self.name();
                let word = if self.random.once_in(3) { "var" } else { "let" };
                block.push(Statement::new(&format!("{word} {name} = @;"), vec![call]));
                let variable = Variable::value(&name, ty.clone(), false);
                if word == "var" {
                    self.scope.push(Variable { space: Space::Function, writable: true, ..variable });
                } else {
                    self.scope.push(variable);
                }
            }
        }
    }

    /// A call of a function with barriers; false if there is none.
    pub(super) fn call_with_barriers(&mut self, block: &mut Vec<Statement>) -> bool {
        let functions: Vec<_> = self.functions.iter().filter(|function| function.barriers).cloned().collect();
        if functions.is_empty() || self.calls == 0 {
            return false;
        }
        self.calls -= 1;
        let function = self.random.one(&functions).clone();
        let Some(arguments) = self.arguments(&function, Constraints { depth: 1, uniform: false }) else {
            return false;
        };
        let (Some(ty), name) = (function.result.clone(), self.name()) else { return false };
        let call = call(&function, arguments, ty.clone());
        block.push(Statement::new(&format!("let {name} = @;"), vec![call]));
        self.scope.push(Variable::value(&name, ty, false));
        true
    }
}

fn call(function: &Function, arguments: Vec<Expression>, ty: Type) -> Expression {
    let marks = vec!["@"; arguments.len()].join(", ");
    Expression::new(ty, &format!("{}({marks})", function.name), arguments).runtime()
}
