//! Random statements.

use super::Generator;
use super::context::{Context, SharedUse, Space, Variable};
use super::expression::Constraints;
use crate::tree::{Expression, Scalar, Statement, Type};

const U32: Type = Type::Scalar(Scalar::U32);

type Block = Vec<Statement>;

impl Generator {
    /// A block with its own scope.
    pub(super) fn block(&mut self, context: Context, length: usize) -> Block {
        let kept = self.open();
        let block = self.statements(context, length);
        self.close(kept);
        block
    }

    /// A block with barriers; it restores the uses of the shared arrays at its end.
    fn block_with_barriers(&mut self, context: Context, length: usize) -> Block {
        let (kept, modes) = (self.open(), self.shared_uses.clone());
        let mut block = self.statements(context, length);
        if self.shared_uses != modes {
            block.push(Statement::new("workgroupBarrier();", Vec::new()));
            self.shared_uses = modes;
        }
        self.close(kept);
        block
    }

    fn inner(&mut self, context: Context, length: usize) -> Block {
        if context.barriers { self.block_with_barriers(context, length) } else { self.block(context, length) }
    }

    /// Statements in the current scope.
    pub(super) fn statements(&mut self, context: Context, length: usize) -> Block {
        let mut block = Vec::new();
        for _ in 0..length {
            if self.fuel == 0 {
                break;
            }
            self.fuel -= 1;
            self.statement(context, &mut block);
        }
        block
    }

    fn random_constraints(&mut self, uniform: bool) -> Constraints {
        Constraints { depth: 1 + self.random.below(3), uniform }
    }

    fn statement(&mut self, context: Context, block: &mut Block) {
        let nests = context.depth > 0;
        let inner = Context { depth: context.depth.saturating_sub(1), ..context };
        if let Some((tensor, scalar)) = self.rows.clone()
            && !self.item.is_empty()
            && context.loops < 3
            && self.random.once_in(6)
        {
            return self.row_sum((&tensor, scalar), inner, block);
        }
        if nests && context.loops < 2 && !self.item.is_empty() && self.random.once_in(8) {
            return self.known_loop(inner, block);
        }
        match self.random.below(27) {
            0..=2 => self.declare(context, block),
            3..=6 => self.assign(context, block),
            7 | 8 if nests => self.branch(inner, block),
            9 if nests => self.switch(inner, block),
            10 | 11 if nests && context.loops < 3 => self.for_loop(inner, block),
            12 if nests && context.loops < 3 => self.while_loop(inner, block),
            13 if nests && context.loops < 3 => self.plain_loop(inner, block),
            14 | 15 => self.leave(context, block),
            16 | 17 if !self.item.is_empty() => self.output(block),
            18 => self.atomic(context, block),
            19 | 20 if context.barriers => self.barrier(context, block),
            21 => self.call(context, block),
            22 if nests => {
                let inside = self.block(Context { barriers: false, ..inner }, 2);
                block.push(Statement(Vec::new()).block("", inside));
            }
            23 => self.pointer(context, block),
            24 => self.store_whole(context, block),
            25 => self.constant_let(block),
            26 => self.constant_call(block),
            _ => self.assign(context, block),
        }
    }

    fn declare(&mut self, context: Context, block: &mut Block) {
        let uniform = context.uniform && self.random.once_in(4);
        let ty = self.ty(2);
        let constraints = self.random_constraints(uniform);
        let value = self.expression(&ty, constraints);
        let value = self.bounded(value);
        let name = self.name();
        match self.random.below(4) {
            0 | 1 => {
                Self::bind(&name, value, block);
                self.scope.push(Variable::value(&name, ty, uniform));
            }
            kind => {
                let statement = if kind == 2 && self.random.once_in(2) {
                    Statement::new(&format!("var {name}: {ty};"), Vec::new())
                } else {
                    Statement::new(&format!("var {name}: {ty} = @;"), vec![value])
                };
                block.push(statement);
                let variable = Variable::value(&name, ty, uniform);
                self.scope.push(Variable { space: Space::Function, writable: true, ..variable });
            }
        }
    }

    /// A reference that a statement may write, and whether the written value must be uniform.
    fn target(&mut self, context: Context) -> Option<(Expression, bool)> {
        let usable = |generator: &Self, variable: &Variable| {
            variable.writable
                && (context.uniform || !variable.uniform)
                && generator.is_visible(variable)
                && match variable.space {
                    Space::Shared(at) => matches!(generator.shared_uses[at], SharedUse::Own(_)),
                    _ => true,
                }
        };
        let variables: Vec<_> =
            self.scope.iter().filter(|variable| usable(self, variable)).cloned().collect();
        if variables.is_empty() {
            return None;
        }
        let variable = self.random.one(&variables).clone();
        self.note_use(&variable);
        let constraints = Constraints { depth: 1, uniform: variable.uniform };
        let whole = self.whole(&variable, constraints).lvalue();
        let ty = self.some_part(&whole.ty.clone());
        Some((self.part(whole, &ty, constraints), variable.uniform))
    }

    /// The type of a random part of a value, or of the whole.
    fn some_part(&mut self, ty: &Type) -> Type {
        if matches!(ty, Type::Scalar(_)) || self.random.once_in(4) {
            return ty.clone();
        }
        match ty {
            Type::Struct(of) => {
                let member = self.random.one(&of.members).1.clone();
                self.some_part(&member)
            }
            _ => ty.element().map_or_else(|| ty.clone(), |(element, _)| self.some_part(&element)),
        }
    }

    pub(super) fn assign(&mut self, context: Context, block: &mut Block) {
        let Some((place, uniform)) = self.target(context) else { return self.declare(context, block) };
        let (ty, constraints) = (place.ty.clone(), self.random_constraints(uniform));
        let scalar = ty.scalar().filter(|_| matches!(ty, Type::Scalar(_) | Type::Vector(..)));
        match (scalar, self.random.below(5)) {
            (Some(scalar), 0) if scalar.is_integer() => {
                let value = self.runtime_expression(&ty, constraints);
                let op = *self.random.one(&["+=", "-=", "*=", "&=", "|=", "^=", "/=", "%="]);
                block.push(Statement::new(&format!("@ {op} @;"), vec![place, value]));
            }
            (Some(scalar), 1) if scalar.is_integer() && matches!(ty, Type::Scalar(_)) => {
                let op = *self.random.one(&["++", "--"]);
                block.push(Statement::new(&format!("@{op};"), vec![place]));
            }
            _ => {
                let value = self.expression(&ty, constraints);
                let value = self.bounded(value);
                block.push(Statement::new("@ = @;", vec![place, value]));
            }
        }
    }

    /// A condition; often a comparison of a value that is later used as an index.
    fn condition(&mut self, context: Context, uniform: bool) -> Expression {
        let constraints = self.random_constraints(uniform);
        let ty = Type::Scalar(Scalar::Bool);
        if self.random.once_in(3) {
            let scalar = *self.random.one(&[Scalar::U32, Scalar::I32]);
            if let Some(value) = self.read(&Type::Scalar(scalar), Constraints { depth: 0, uniform }) {
                let bound = scalar.literal(1 + self.random.below(8) as u32);
                let op = *self.random.one(&["<", "<=", "==", ">=", ">", "!="]);
                let constant = value.constant;
                let condition = Expression::new(ty.clone(), &format!("(@ {op} {bound})"), vec![value]);
                if !constant {
                    return condition;
                }
            }
        }
        let _ = context;
        self.runtime_expression(&ty, constraints)
    }

    /// Whether a nested statement is taken by all work-items together.
    fn choose_uniform(&mut self, context: Context) -> bool {
        context.uniform && self.random.below(5) < if context.barriers { 3 } else { 1 }
    }

    fn branch(&mut self, inner: Context, block: &mut Block) {
        let uniform = self.choose_uniform(inner);
        let condition = self.condition(inner, uniform);
        let inner = self.nested(inner, uniform);
        let yes = self.inner(inner, 3);
        let mut statement = Statement::new("if @ ", vec![condition]).block("", yes);
        if self.random.once_in(4) {
            let condition = self.condition(inner, uniform && inner.uniform);
            statement = Statement([statement.0, Statement::new(" else if @ ", vec![condition]).0].concat());
            let other = self.inner(inner, 2);
            statement = statement.block("", other);
        }
        if self.random.once_in(2) {
            let no = self.inner(inner, 2);
            statement = statement.block(" else ", no);
        }
        block.push(statement);
    }

    /// The context inside a branch.
    fn nested(&self, inner: Context, uniform: bool) -> Context {
        if uniform {
            return inner;
        }
        // A loop with barriers must not be left by some work-items only.
        let kept = !inner.barriers;
        Context {
            breaks: inner.breaks && kept,
            continues: inner.continues && kept,
            returns: inner.returns && kept,
            ..inner.divergent()
        }
    }

    fn switch(&mut self, inner: Context, block: &mut Block) {
        let uniform = self.choose_uniform(inner);
        let scalar = *self.random.one(&[Scalar::U32, Scalar::I32]);
        let constraints = self.random_constraints(uniform);
        let mut selector = self.runtime_expression(&Type::Scalar(scalar), constraints);
        if self.random.below(3) > 0 {
            let n = scalar.literal(3 + self.random.below(3) as u32);
            selector = Expression::new(Type::Scalar(scalar), &format!("(@ % {n})"), vec![selector]);
        }
        let inner = Context { breaks: true, ..self.nested(inner, uniform) };
        let count = 1 + self.random.below(3);
        let default = self.random.below(count + 1);
        let mut labels = vec![0, 1, 2, 3, 5, 40].into_iter();
        let mut cases = Vec::new();
        for case in 0..=count {
            let body = self.inner(inner, 2);
            let several = 1 + self.random.below(2);
            let selectors: Vec<_> =
                labels.by_ref().take(several).map(|label| scalar.literal(label)).collect();
            let head = match (case == default, self.random.once_in(3) && !selectors.is_empty()) {
                (true, true) => format!("case {}, default: ", selectors.join(", ")),
                (true, false) => "default: ".to_owned(),
                (false, _) if selectors.is_empty() => continue,
                (false, _) => format!("case {}: ", selectors.join(", ")),
            };
            cases.push(Statement::new(&head, Vec::new()).block("", body));
        }
        block.push(Statement::new("switch @ ", vec![selector]).block("", cases));
    }

    /// A small loop bound.
    fn bound(&mut self, uniform: bool) -> Expression {
        let most = 2 + self.random.below(4);
        if self.random.once_in(2) {
            return Expression::new(U32, &format!("{most}u"), Vec::new());
        }
        let constraints = Constraints { depth: 1, uniform };
        let value = self.runtime_expression(&U32, constraints);
        Expression::new(U32, &format!("min(@, {most}u)"), vec![value])
    }

    fn for_loop(&mut self, inner: Context, block: &mut Block) {
        let uniform = self.choose_uniform(inner);
        let kept = self.open();
        let counts_down = self.random.once_in(6);
        let first = self.bound(uniform);
        let name = self.name();
        let inside =
            Context { breaks: true, continues: true, loops: inner.loops + 1, ..self.nested(inner, uniform) };
        self.scope.push(Variable::value(&name, U32, uniform));
        // The limit is in the scope of the counter, the start value is not.
        let bound = if counts_down { first } else { self.bound(uniform) };
        let body = self.inner(inside, 3);
        self.close(kept);
        let head = if counts_down {
            format!("for (var {name} = @; {name} > 0u; {name}--) ")
        } else {
            let step = *self.random.one(&["++", "++", " += 1u", " += 2u"]);
            format!("for (var {name} = 0u; {name} < @; {name}{step}) ")
        };
        block.push(Statement::new(&head, vec![bound]).block("", body));
    }

    /// A sum over consecutive elements of a tensor, which compilers vectorise.
    fn row_sum(&mut self, (tensor, scalar): (&str, Scalar), inner: Context, block: &mut Block) {
        let uniform = self.choose_uniform(inner);
        let packed = scalar == Scalar::U32 && self.random.once_in(3);
        let of_sum = if packed { *self.random.one(&[Scalar::U32, Scalar::I32]) } else { scalar };
        let (ty, constraints) = (Type::Scalar(of_sum), self.random_constraints(false));
        let (name, suffix, word) = (self.name(), scalar.suffix(), scalar.name());
        let first = self.expression(&ty, constraints);
        block.push(Statement::new(&format!("var {name}: {} = @;", of_sum.name()), vec![first]));
        let variable = Variable::value(&name, ty, false);
        self.scope.push(Variable { space: Space::Function, writable: true, ..variable });
        let mut bound = self.bound(uniform);
        if self.random.once_in(2) {
            bound = Expression::new(U32, "(@ * 7u)", vec![bound]);
        }
        let start = match (self.random.below(4), scalar) {
            (0, Scalar::I32) => "-3i".to_owned(),
            (1, _) => scalar.literal(2),
            _ => scalar.literal(0),
        };
        let stride = self.random.one(&["1", "2", "3", "17"]).to_owned();
        let row = format!("{tensor}[{word}({}) * {stride}{suffix} + row_]", self.item);
        let number = match self.random.below(4) {
            _ if packed => {
                let function = if of_sum == Scalar::I32 { "dot4I8Packed" } else { "dot4U8Packed" };
                let other = if self.random.once_in(2) { row.clone() } else { format!("{tensor}[row_]") };
                format!("{function}({row}, {other})")
            }
            0 => format!("{row} * {tensor}[row_]"),
            1 => format!("({row} ^ {tensor}[{word}({}) * 2{suffix} + row_ + 1{suffix}])", self.item),
            _ => row,
        };
        let sum = match self.random.below(8) {
            0 => format!("{name} ^= {number};"),
            1 => format!("{name} = max({name}, {number});"),
            2 => format!("{name} = min({number}, {name});"),
            3 => format!("{name} |= {number};"),
            4 => format!("{name} -= {number};"),
            _ => format!("{name} += {number};"),
        };
        let head = format!("for (var row_ = {start}; row_ < {word}(@); row_++) ");
        let body = vec![Statement::new(&sum, Vec::new())];
        block.push(Statement::new(&head, vec![bound]).block("", body));
    }

    fn while_loop(&mut self, inner: Context, block: &mut Block) {
        let uniform = self.choose_uniform(inner);
        let name = self.name();
        block.push(Statement::new(&format!("var {name} = 0u;"), Vec::new()));
        self.scope.push(Variable::value(&name, U32, uniform));
        let bound = self.bound(uniform);
        let inside =
            Context { breaks: true, continues: true, loops: inner.loops + 1, ..self.nested(inner, uniform) };
        let mut body = vec![Statement::new(&format!("{name} += 1u;"), Vec::new())];
        self.forbid(&name);
        body.extend(self.inner(inside, 3));
        self.allow(&name);
        let text = format!("while {name} < @ ");
        block.push(Statement::new(&text, vec![bound]).block("", body));
    }

    fn plain_loop(&mut self, inner: Context, block: &mut Block) {
        let uniform = self.choose_uniform(inner);
        let name = self.name();
        block.push(Statement::new(&format!("var {name} = 0u;"), Vec::new()));
        self.scope.push(Variable::value(&name, U32, uniform));
        self.forbid(&name);
        let nested = self.nested(inner, uniform);
        let continues = self.random.once_in(2);
        let inside = Context { breaks: true, continues, loops: inner.loops + 1, ..nested };
        let kept = self.open();
        let ends_first = self.random.once_in(2);
        let mut body = Vec::new();
        if ends_first {
            let bound = self.bound(uniform);
            let test = Statement::new(&format!("if {name} >= @ "), vec![bound]);
            body.push(test.block("", vec![Statement::new("break;", Vec::new())]));
        }
        let modes = self.shared_uses.clone();
        body.extend(self.statements(inside, 3));
        if self.shared_uses != modes {
            body.push(Statement::new("workgroupBarrier();", Vec::new()));
            self.shared_uses = modes;
        }
        let declared: Vec<_> = self.scope[kept.0..].iter().map(|variable| variable.name.clone()).collect();
        // Variables of the body are visible in `continuing`, but must not be used if a `continue` bypasses their
        // declaration.
        if continues {
            self.hide(kept.0);
        }
        let inside =
            Context { breaks: false, continues: false, returns: false, barriers: false, depth: 0, ..inside };
        let (mut continuing, bound) = if !declared.is_empty() && self.random.once_in(2) {
            self.shadowing(&declared, inside)
        } else {
            (self.statements(inside, 2), self.bound(uniform))
        };
        continuing.push(Statement::new(&format!("{name} += 1u;"), Vec::new()));
        if !ends_first {
            continuing.push(Statement::new(&format!("break if {name} >= @;"), vec![bound]));
        }
        self.close(kept);
        self.allow(&name);
        body.push(Statement::new("continuing ", Vec::new()).block("", continuing));
        block.push(Statement::new("loop ", Vec::new()).block("", body));
    }

    /// A conditional `break`, `continue` or `return`.
    fn leave(&mut self, context: Context, block: &mut Block) {
        let mut ways = Vec::new();
        if context.breaks {
            ways.push("break;");
        }
        if context.continues {
            ways.push("continue;");
        }
        if context.returns {
            ways.extend(["return", "return"]);
        }
        if ways.is_empty() {
            return self.assign(context, block);
        }
        let way = *self.random.one(&ways);
        let condition = self.condition(context, context.barriers);
        let mut inside = Vec::new();
        let kept = self.open();
        if self.random.once_in(2) {
            self.assign(Context { uniform: false, barriers: false, ..context }, &mut inside);
        }
        inside.push(if way == "return" { self.return_() } else { Statement::new(way, Vec::new()) });
        self.close(kept);
        block.push(Statement::new("if @ ", vec![condition]).block("", inside));
    }

    /// A `return` with the function's result.
    pub(super) fn return_(&mut self) -> Statement {
        match self.result.clone() {
            Some(ty) => {
                let constraints = self.random_constraints(false);
                let value = self.expression(&ty, constraints);
                let value = self.bounded(value);
                Statement::new("return @;", vec![value])
            }
            None => Statement::new("return;", Vec::new()),
        }
    }

    /// Writes a word of the output.
    fn output(&mut self, block: &mut Block) {
        let constraints = self.random_constraints(false);
        let Some(output) = self.output.clone() else { return };
        let value = self.runtime_expression(&U32, constraints);
        let at = self.random.below(self.words);
        let op = *self.random.one(&["=", "=", "+=", "^="]);
        let index = self.output_index(at);
        block.push(Statement::new(&format!("{output}[@] {op} @;"), vec![index, value]));
    }

    fn output_index(&mut self, at: usize) -> Expression {
        let (item, words) = (self.item.clone(), self.words);
        let text = match self.random.below(8) {
            0 => format!("(i32({item}) * {words} + {at})"),
            1 => format!("({at}u + {words}u * {item})"),
            2 if self.wide => format!("(i64({item}) * {words} + {at})"),
            3 => format!("(i32({item}) * {words} + {at} - 1000000)"),
            4 if self.wide => format!("(i64({item}) * {words} - {}li)", 1 + self.random.below(6)),
            5 => format!("(-1i - i32({item}))"),
            6 => {
                let constraints = Constraints { depth: 1, uniform: false };
                let condition = self.runtime_expression(&Type::Scalar(Scalar::Bool), constraints);
                let pattern = format!("select({item} * {words}u + {at}u, 4294967295u, @)");
                return Expression::new(U32, &pattern, vec![condition]).lvalue();
            }
            _ => format!("({item} * {words}u + {at}u)"),
        };
        Expression::new(U32, &text, Vec::new()).lvalue()
    }

    fn atomic(&mut self, context: Context, block: &mut Block) {
        let constraints = self.random_constraints(false);
        let value = self.runtime_expression(&U32, constraints);
        if let Some(own) =
            self.own_atomics.clone().filter(|_| !self.item.is_empty() && self.random.once_in(3))
        {
            return self.own_atomic(&own, value, block);
        }
        let slots = self.counters;
        let at = self.random.below(slots);
        let function = ["atomicAdd", "atomicMax", "atomicOr", "atomicXor", "atomicSub"][at % 5];
        let (array, counts) = match (&self.totals, self.workgroup_counters.clone()) {
            (_, Some(name)) if self.random.once_in(2) => (name, self.counting),
            (Some(name), _) => (name.clone(), true),
            _ => return self.assign(context, block),
        };
        if !counts {
            let name = self.name();
            let index = self.index(slots, Constraints { depth: 1, uniform: false });
            block.push(Statement::new(&format!("let {name} = atomicLoad(&{array}[@]);"), vec![index]));
            self.scope.push(Variable::value(&name, U32, false));
            return;
        }
        if self.random.once_in(6) {
            // Far out of range: no effect.
            let item = if self.item.is_empty() { "1u".to_owned() } else { self.item.clone() };
            let pattern = format!("atomicAdd(&{array}[{item} | 1073741824u], @);");
            block.push(Statement::new(&pattern, vec![value]));
            return;
        }
        block.push(Statement::new(&format!("{function}(&{array}[{at}u], @);"), vec![value]));
    }

    /// An atomic operation on the work-item's own element, whose result is used.
    fn own_atomic(&mut self, own: &str, value: Expression, block: &mut Block) {
        let (name, lane) = (self.name(), self.lane.clone());
        let functions =
            ["atomicAdd", "atomicSub", "atomicMin", "atomicMax", "atomicAnd", "atomicXor", "atomicExchange"];
        let pattern = if self.random.once_in(4) {
            let due = self.random.below(4);
            format!("let {name} = atomicCompareExchangeWeak(&{own}[{lane}], {due}u, @).old_value;")
        } else {
            format!("let {name} = {}(&{own}[{lane}], @);", self.random.one(&functions))
        };
        block.push(Statement::new(&pattern, vec![value]));
        self.scope.push(Variable::value(&name, U32, false));
    }

    /// A barrier, and the new uses of the shared arrays after it.
    fn barrier(&mut self, context: Context, block: &mut Block) {
        if self.random.once_in(4) && self.call_with_barriers(block) {
            return;
        }
        if self.random.once_in(5)
            && let Some((cell, ty)) = self.uniform_cell.clone()
        {
            let constraints = self.random_constraints(true);
            let value = self.runtime_expression(&ty, constraints);
            let lane = self.lane.clone();
            let store = Statement::new(&format!("{cell} = @;"), vec![value]);
            block.push(Statement::new(&format!("if {lane} == 0u "), Vec::new()).block("", vec![store]));
            let name = self.name();
            block.push(Statement::new(&format!("let {name} = workgroupUniformLoad(&{cell});"), Vec::new()));
            self.scope.push(Variable::value(&name, ty, true));
        } else {
            let both = self.random.once_in(3);
            let text = if both { "workgroupBarrier(); storageBarrier();" } else { "workgroupBarrier();" };
            block.push(Statement::new(text, Vec::new()));
        }
        for at in 0..self.shared_uses.len() {
            self.shared_uses[at] = match self.random.below(5) {
                0 => SharedUse::Own(1),
                1 | 2 => SharedUse::Own(0),
                _ => SharedUse::Read,
            };
        }
        if context.loops == 0 && context.depth == self.max_depth {
            self.counting = self.random.once_in(2);
        }
    }
}
