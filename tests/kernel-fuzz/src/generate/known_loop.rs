//! Loops bounded by a variable that starts as a literal, and may change on some paths before: what unrolls such a loop must
//! know whether it did.

use super::Generator;
use super::context::{Context, Variable};
use crate::tree::{Expression, Scalar, Statement, Type};

const U32: Type = Type::Scalar(Scalar::U32);

impl Generator {
    /// Declares a function that changes the target of its argument on some paths; sometimes a private variable instead.
    pub(super) fn changer_declaration(&mut self) -> Statement {
        let (name, private) = (format!("change{}", self.tag), format!("known{}", self.tag));
        let start = self.random.below(6);
        self.global(&format!("var<private> {private}: u32 = {start}u;"));
        let count = 1 + self.random.below(3);
        // A function that uses a private variable is inlined for the host however it returns.
        let mut body = vec![Statement::new(&format!("{private} = which;"), Vec::new())];
        let target = if self.random.once_in(3) { private } else { "(*to)".to_owned() };
        body.extend((0..count).flat_map(|_| self.change(&target, "which", true)));
        if self.random.once_in(2) {
            body.push(self.set(&target));
        }
        self.changer = Some(name.clone());
        Statement::new(&format!("fn {name}(to: ptr<function, u32>, which: u32) "), Vec::new()).block("", body)
    }

    /// The loop, with the declaration of its bound and what may change it.
    pub(super) fn known_loop(&mut self, inner: Context, block: &mut Vec<Statement>) {
        let line = |text: &str| Statement::new(text, Vec::new());
        let (bound, start) = (self.fresh_value(), self.random.below(6));
        block.push(line(&format!("var {bound} = {start}u;")));
        let when = match self.random.below(3) {
            0 if !self.item.is_empty() => format!("({} % 4u)", self.item),
            1 => format!("{}u", self.random.below(4)),
            _ => format!("min({}.{}, 3u)", self.immediates, self.first_immediate),
        };
        match self.changer.clone() {
            Some(changer) if !self.random.once_in(3) => {
                block.push(line(&format!("{changer}(&{bound}, {when});")));
            }
            _ => block.extend(self.change(&bound, &when, false)),
        }
        let private = format!("known{}", self.tag);
        let limit = if self.changer.is_some() && self.random.once_in(3) { private } else { bound.clone() };
        let counter = self.name();
        let head = match self.random.below(3) {
            0 => format!("for (var {counter} = {limit}; {counter} < 6u; {counter}++) "),
            1 => format!("for (var {counter} = {limit}; {counter} > 0u; {counter}--) "),
            _ => format!("for (var {counter} = 0u; {counter} < {limit}; {counter}++) "),
        };
        let sum = self.fresh_value();
        block.push(line(&format!("var {sum} = {bound};")));
        let mut body = vec![line(&format!("{sum} = {sum} * 3u + {counter} + 1u;"))];
        // Longer bodies, and those with jumps, are not unrolled.
        if self.random.once_in(4) {
            let kept = self.open();
            self.scope.push(Variable::value(&counter, U32, false));
            let inside =
                Context { breaks: true, continues: true, loops: inner.loops + 1, ..inner.divergent() };
            // What follows in the same block may write it.
            self.forbid(&bound);
            body.extend(self.block(inside, 2));
            self.allow(&bound);
            self.close(kept);
        }
        if self.random.once_in(4) {
            body.extend(self.change(&bound, &when, false));
        }
        block.push(line(&head).block("", body));
        if let Some(output) = self.output.clone() {
            let value = Expression::new(U32, &sum, Vec::new()).runtime();
            let at = format!("{output}[{} * {}u]", self.item, self.words);
            block.push(Statement::new(&format!("{at} = {at} * 31u + @;"), vec![value]));
        }
    }

    /// The name of a new variable, which other statements may read.
    fn fresh_value(&mut self) -> String {
        let name = self.name();
        self.scope.push(Variable::value(&name, U32, false));
        name
    }

    fn set(&mut self, target: &str) -> Statement {
        Statement::new(&format!("{target} = {}u;", self.random.below(6)), Vec::new())
    }

    /// Statements that set `target` to a literal on some paths; they may return from the function if `returns`.
    fn change(&mut self, target: &str, when: &str, returns: bool) -> Vec<Statement> {
        let line = |text: &str| Statement::new(text, Vec::new());
        let set = self.set(target);
        let case = self.random.below(4);
        let leave = if returns { "return;" } else { "break;" };
        match self.random.below(6) {
            0 => vec![set],
            1 => vec![line(&format!("if {when} == {case}u ")).block("", vec![set])],
            2 if returns => {
                let inside = if self.random.once_in(2) { vec![set, line(leave)] } else { vec![line(leave)] };
                vec![line(&format!("if {when} != {case}u ")).block("", inside)]
            }
            3 => {
                let exit = line(&format!("if turn == {case}u ")).block("", vec![line(leave)]);
                let inside = if self.random.once_in(2) { vec![exit, set] } else { vec![set, exit] };
                vec![line(&format!("for (var turn = 0u; turn < {when}; turn++) ")).block("", inside)]
            }
            4 => {
                let inside =
                    vec![line("case 0u, 2u ").block("", vec![set]), line("default ").block("", Vec::new())];
                vec![line(&format!("switch {when} ")).block("", inside)]
            }
            _ => {
                let exit = line(&format!("if {when} == {case}u ")).block("", vec![line(leave)]);
                vec![line("loop ").block("", vec![exit, set, line("break;")])]
            }
        }
    }
}
