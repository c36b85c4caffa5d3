//! Forms that compilers of WGSL have got wrong: aggregates with padding, deep nesting, names declared again in a
//! `continuing` block, functions that end in a loop, second names of types, constants that are none, and constants that
//! are to have the value of the same expression at run time.

use super::Generator;
use super::context::{Context, Variable};
use super::expression::Constraints;
use crate::interpret::reference::spelt;
use crate::tree::{Expression, Part, Scalar, Statement, Type};

const U32: Type = Type::Scalar(Scalar::U32);

/// Levels of blocks. WGSL requires 127 of braces, some of which are around these.
const MAX_LEVELS: usize = 115;

/// Built-in functions, and operators, with exact results for their operands, which capital letters stand for:
/// see [`operand`].
const CONSTANTS: [(Scalar, &str); 52] = [
    (Scalar::F32, "mix(F, F, T)"),
    (Scalar::F32, "mix(vec2(F, F), vec2(F, F), T).y"),
    (Scalar::F32, "smoothstep(Z, Q, F)"),
    (Scalar::F32, "ldexp(F, I)"),
    (Scalar::F32, "frexp(F).fract"),
    (Scalar::I32, "frexp(F).exp"),
    (Scalar::F32, "frexp(vec2(F, F)).fract.y"),
    (Scalar::F32, "modf(F).whole"),
    (Scalar::F32, "modf(F).fract"),
    (Scalar::F32, "determinant(mat2x2(F, F, F, F))"),
    (Scalar::F32, "determinant(mat3x3(F, F, F, F, F, F, F, F, F))"),
    (Scalar::F32, "transpose(mat2x3(F, F, F, F, F, F))[2].y"),
    (Scalar::F32, "reflect(vec2(F, F), vec2(F, F)).y"),
    (Scalar::F32, "refract(vec2(Z, N), vec2(Z, O), T).y"),
    (Scalar::F32, "faceForward(vec2(F, F), vec2(F, F), vec2(F, F)).x"),
    (Scalar::F32, "dot(vec3(F, F, F), vec3(F, F, F))"),
    (Scalar::F32, "cross(vec3(F, F, F), vec3(F, F, F)).y"),
    (Scalar::F32, "quantizeToF16(F)"),
    (Scalar::F32, "fma(F, F, F)"),
    (Scalar::F32, "step(F, F)"),
    (Scalar::F32, "sign(F)"),
    (Scalar::F32, "clamp(F, N, O)"),
    (Scalar::F32, "saturate(F)"),
    (Scalar::F32, "round(F * T)"),
    (Scalar::F32, "floor(F * T)"),
    (Scalar::F32, "trunc(F * T)"),
    (Scalar::F32, "max(F, abs(F))"),
    (Scalar::F32, "unpack4x8snorm(S).z"),
    (Scalar::F32, "unpack4x8unorm(S).w"),
    (Scalar::F32, "unpack2x16snorm(V).y"),
    (Scalar::F32, "unpack2x16unorm(V).x"),
    (Scalar::F32, "unpack2x16float(H).y"),
    (Scalar::I32, "unpack4xI8(S).z"),
    (Scalar::U32, "unpack4xU8(S).z"),
    (Scalar::U32, "pack4x8snorm(vec4(O, Z, N, F))"),
    (Scalar::U32, "pack4x8unorm(vec4(F, O, N, Z))"),
    (Scalar::U32, "pack2x16snorm(vec2(N, F))"),
    (Scalar::U32, "pack2x16unorm(vec2(F, O))"),
    (Scalar::U32, "pack2x16float(vec2(F, F))"),
    (Scalar::U32, "pack4xI8(vec4<i32>(I, I, I, I))"),
    (Scalar::U32, "pack4xU8(vec4<u32>(U, U, S, U))"),
    (Scalar::U32, "pack4xI8Clamp(vec4<i32>(I, I, I, I) * 99)"),
    (Scalar::U32, "bitcast<u32>(O)"),
    (Scalar::I32, "bitcast<i32>(S)"),
    (Scalar::U32, "insertBits(S, U, K, K)"),
    (Scalar::U32, "extractBits(S, K, K)"),
    (Scalar::I32, "extractBits(bitcast<i32>(S), K, K)"),
    (Scalar::U32, "countLeadingZeros(U) + countOneBits(S) + reverseBits(S)"),
    (Scalar::I32, "firstLeadingBit(I) - firstTrailingBit(I)"),
    (Scalar::I32, "(I * I - I) / 7 % 5"),
    (Scalar::Bool, "any(vec2(F, F) < vec2(F, F))"),
    (Scalar::Bool, "I < I || F == F"),
];

fn has_structure(ty: &Type) -> bool {
    match ty {
        Type::Struct(_) => true,
        Type::Array(element, _) => has_structure(element),
        _ => false,
    }
}

impl Generator {
    /// An aggregate with padding, without `bool`.
    pub(super) fn padded_type(&mut self) -> Type {
        let float = if self.half && self.random.once_in(2) { Scalar::F16 } else { Scalar::F32 };
        let matrix = Type::Matrix(2 + self.random.below(3), 3, float);
        let structs: Vec<_> = self
            .structs
            .iter()
            .cloned()
            .map(Type::Struct)
            .filter(|ty| !ty.any(|s| s == Scalar::Bool))
            .collect();
        match self.random.below(5) {
            0 => matrix,
            1 => Type::Array(Box::new(matrix), 1 + self.random.below(3)),
            2 | 3 if !structs.is_empty() => self.random.one(&structs).clone(),
            _ => Type::Array(Box::new(Type::Vector(3, self.scalar(false))), 1 + self.random.below(3)),
        }
    }

    /// Types of members of different alignment, in turn.
    pub(super) fn members_with_gaps(&mut self) -> Vec<Type> {
        (0..2 + self.random.below(3))
            .map(|at| match at % 2 {
                0 => Type::Scalar(self.scalar(false)),
                _ if self.random.once_in(3) => self.padded_type(),
                _ => Type::Vector(2 + self.random.below(3), self.scalar(false)),
            })
            .collect()
    }

    /// An attribute in front of a member that moves it, or what follows it; often none. Structures are aligned as the `@align`
    /// inside them asks for: the interpreter has the layouts of naga, which does not do so by itself (gfx-rs/wgpu 4377).
    pub(super) fn gap(&mut self, has_gaps: bool, ty: &Type) -> &'static str {
        match ty {
            _ if has_structure(ty) => "\u{1}align(32) ",
            Type::Scalar(_) if has_gaps && self.random.once_in(6) => "\u{1}size(20) ",
            Type::Scalar(_) if has_gaps && self.random.once_in(6) => "\u{1}align(16) ",
            _ => "",
        }
    }

    /// Stores a whole element of the work-item's own tensor.
    pub(super) fn store_whole(&mut self, context: Context, block: &mut Vec<Statement>) {
        let Some((name, ty)) = self.own_tensor.clone().filter(|_| !self.item.is_empty()) else {
            return self.assign(context, block);
        };
        let value = self.expression(&ty, Constraints { depth: 2, uniform: false });
        let value = self.bounded(value);
        block.push(Statement::new(&format!("{name}[{}] = @;", self.item), vec![value]));
    }

    /// Blocks within blocks, to the limit of the language; some of them are of other statements.
    pub(super) fn deep(&mut self, context: Context, block: &mut Vec<Statement>) {
        let inside = Context { depth: 0, loops: 3, breaks: false, continues: false, ..context.divergent() };
        self.fuel = self.fuel.max(6);
        let mut nested = self.block(inside, 3);
        for _ in 0..1 + self.random.below(MAX_LEVELS) {
            let head = match self.random.below(24) {
                0 => format!("if {} < 1000000u ", self.item),
                1 => "for (var once_ = 0u; once_ < 1u; once_++) ".to_owned(),
                2 => {
                    nested.push(Statement::new("break;", Vec::new()));
                    "loop ".to_owned()
                }
                _ => String::new(),
            };
            nested = vec![Statement::new(&head, Vec::new()).block("", nested)];
        }
        block.append(&mut nested);
    }

    /// The statements of a `continuing` block that declares names of the loop's body again, and a bound that uses none of
    /// them. For naga, both blocks are one scope.
    pub(super) fn shadowing(&mut self, declared: &[String], inside: Context) -> (Vec<Statement>, Expression) {
        let bound = Expression::new(U32, &format!("{}u", 1 + self.random.below(4)), Vec::new());
        let line = |text: String| Statement(vec![Part::Text(text)]);
        let mut block = vec![line(spelt("", "{"))];
        let mut names = vec![self.random.one(declared).clone(), self.random.one(declared).clone()];
        names.dedup();
        for name in names {
            let ty = self.any_value_type();
            let value = self.runtime_expression(&ty, Constraints { depth: 2, uniform: false });
            let value = self.bounded(value);
            block.push(Statement::new(&format!("let {name} = @;"), vec![value]));
            self.scope.push(Variable::value(&name, ty, false));
        }
        block.extend(self.statements(inside, 2));
        block.push(line(spelt("", "}")));
        (block, bound)
    }

    fn any_value_type(&mut self) -> Type {
        Type::Scalar(self.scalar(true))
    }

    /// A loop without `break` at the end of a function, which returns from it.
    pub(super) fn endless_loop(&mut self, context: Context) -> Vec<Statement> {
        let line = |text: &str| Statement::new(text, Vec::new());
        let counter = self.name();
        self.scope.push(Variable::value(&counter, U32, false));
        self.forbid(&counter);
        let kept = self.open();
        let inside = Context { depth: 1, loops: context.loops + 1, ..context };
        let mut body = self.statements(inside, 2);
        let last = vec![self.return_()];
        let most = 1 + self.random.below(4);
        body.push(line(&format!("if {counter} >= {most}u ")).block("", last));
        let count = line(&format!("{counter} += 1u;"));
        let count = if self.random.once_in(2) { line("continuing ").block("", vec![count]) } else { count };
        body.push(count);
        self.close(kept);
        self.allow(&counter);
        let zero = self.result.as_ref().map(Type::zero).unwrap_or_default();
        vec![
            line(&format!("var {counter} = 0u;")),
            line("loop ").block("", body),
            // naga takes the end of the function for reachable.
            Statement(vec![Part::Text(spelt("", &format!("return {zero};")))]),
        ]
    }

    /// A `let`, which is no constant even if its value is.
    pub(super) fn bind(name: &str, value: Expression, block: &mut Vec<Statement>) {
        // naga takes such a `let` for a constant.
        let word = if value.constant { spelt("let", "var") } else { "let".to_owned() };
        block.push(Statement::new(&format!("{word} {name} = @;"), vec![value]));
    }

    /// A `let` with a constant value that no constant could have where it is used.
    pub(super) fn constant_let(&mut self, block: &mut Vec<Statement>) {
        let scalar = *self.random.one(&[Scalar::U32, Scalar::U32, Scalar::I32]);
        let ty = Type::Scalar(scalar);
        let value = *self.random.one(&[0, 0, 1, 3, 7, 31, 33, 64, 1000]);
        let value = Expression::new(ty.clone(), &scalar.literal(value), Vec::new());
        let name = self.name();
        Self::bind(&name, value, block);
        self.scope.push(Variable::value(&name, ty.clone(), false));
        let given = self.literal(scalar);
        let shifts = scalar == Scalar::U32;
        let op = *self.random.one(if shifts { &["/", "%", "<<", ">>"] } else { &["/", "%", "+", "*"] });
        let result = self.name();
        block.push(Statement::new(&format!("let {result} = (@ {op} {name});"), vec![given]));
        self.scope.push(Variable::value(&result, ty, false));
    }

    /// A constant, and the same expression at run time; for the interpreter both are of run time.
    pub(super) fn constant_call(&mut self, block: &mut Vec<Statement>) {
        let (scalar, pattern) = *self.random.one(&CONSTANTS);
        let ty = Type::Scalar(scalar);
        let (mut constant, mut running) = (String::new(), String::new());
        let letters: Vec<char> = pattern.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            let is_part = |at: usize| letters.get(at).is_some_and(|c| c.is_ascii_alphanumeric());
            let alone = !is_part(at.wrapping_sub(1)) && !is_part(at + 1);
            match self.operand(*letter).filter(|_| alone) {
                None => [&mut constant, &mut running].into_iter().for_each(|text| text.push(*letter)),
                Some((of, literal)) => {
                    let name = self.name();
                    self.scope.push(Variable::value(&name, Type::Scalar(of), false));
                    let text = format!("var {name}: {} = {literal};", of.name());
                    block.push(Statement::new(&text, Vec::new()));
                    constant += &spelt(&literal, &name);
                    running += &name;
                }
            }
        }
        for (word, value) in [("let".to_owned(), running), (spelt("const", "let"), constant)] {
            let name = self.name();
            let is_constant = word != "let";
            block.push(Statement::new(&format!("{word} {name}: {ty} = {value};"), Vec::new()));
            self.scope.push(Variable { constant: is_constant, ..Variable::value(&name, ty.clone(), false) });
            let Some(output) = self.output.clone().filter(|_| !self.item.is_empty()) else { continue };
            let word = match scalar {
                Scalar::F32 => format!("u32(i32({name} * 64.0f))"),
                Scalar::Bool => format!("select(3u, 5u, {name})"),
                _ => format!("u32({name})"),
            };
            let at = format!("{output}[{} * {}u]", self.item, self.words);
            block.push(Statement::new(&format!("{at} = {at} * 31u + {word};"), Vec::new()));
        }
    }

    /// The type and the text of an operand that a letter stands for; abstract, where the type is clear without a suffix.
    fn operand(&mut self, letter: char) -> Option<(Scalar, String)> {
        let suffix = if self.random.once_in(3) { "f" } else { "" };
        let n = self.random.below(8);
        Some(match letter {
            'F' => {
                let sign = if self.random.once_in(3) { "-" } else { "" };
                (Scalar::F32, format!("{sign}{n}.{}{suffix}", self.random.one(&["0", "5"])))
            }
            'T' => (Scalar::F32, format!("{}{suffix}", self.random.one(&["0.0", "0.25", "0.5", "1.0"]))),
            'Z' => (Scalar::F32, format!("0.0{suffix}")),
            'O' => (Scalar::F32, format!("1.0{suffix}")),
            'N' => (Scalar::F32, format!("-1.0{suffix}")),
            'Q' => (Scalar::F32, format!("4.0{suffix}")),
            'I' => {
                let sign = if self.random.once_in(3) { "-" } else { "" };
                (Scalar::I32, format!("{sign}{n}{}", if suffix.is_empty() { "" } else { "i" }))
            }
            'K' => (Scalar::U32, format!("{n}{}", if suffix.is_empty() { "" } else { "u" })),
            'U' => (Scalar::U32, format!("{n}u")),
            'S' => {
                (Scalar::U32, (*self.random.one(&["0x7f81007fu", "0xff00ff00u", "0x81ffff7fu"])).to_owned())
            }
            'V' => {
                (Scalar::U32, (*self.random.one(&["0x7fff8001u", "0xffff0000u", "0x0000ffffu"])).to_owned())
            }
            'H' => (Scalar::U32, (*self.random.one(&["0x3c004000u", "0xc2003800u"])).to_owned()),
            _ => return None,
        })
    }

    /// Gives second names to types, and uses them in some places.
    pub(super) fn name_types(&mut self, declarations: &mut Vec<Statement>) {
        if self.types.is_empty() || !self.random.once_in(3) {
            return;
        }
        for at in 0..1 + self.random.below(3) {
            let ty = self.random.one(&self.types.clone()).to_string();
            let name = format!("R{at}{}", self.tag);
            self.rename(declarations, (&ty, &name));
            declarations.insert(0, Statement(vec![Part::Text(format!("alias {name} = {ty};"))]));
        }
    }

    fn rename(&mut self, statements: &mut [Statement], names: (&str, &str)) {
        statements.iter_mut().for_each(|statement| self.rename_in(&mut statement.0, names));
    }

    fn rename_in(&mut self, parts: &mut [Part], names: (&str, &str)) {
        for part in parts {
            match part {
                Part::Text(text) => *text = self.renamed(text, names),
                Part::Expression(inner) => self.rename_in(&mut inner.parts, names),
                Part::Block(block) => self.rename(block, names),
            }
        }
    }

    /// A text with the second name of a type in some of its places.
    fn renamed(&mut self, text: &str, (ty, name): (&str, &str)) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (mut whole, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(ty) {
            let (before, after) = (&rest[..at], &rest[at + ty.len()..]);
            whole += before;
            // The name in the declaration of a structure stays.
            let joins = before.ends_with(is_word)
                || before.ends_with("struct ")
                || ty.ends_with(is_word) && after.starts_with(is_word);
            whole += if joins || self.random.once_in(2) { ty } else { name };
            rest = after;
        }
        whole + rest
    }
}

#[cfg(test)]
mod tests {
    use crate::fuzz::check;
    use crate::generate::{Without, kernel};

    #[test]
    fn every_form_is_made_and_interpreted() {
        let deep = format!("{}{{", "    ".repeat(40));
        let mut forms = vec![
            "alias R",
            "/*reference var*/let",
            "/*reference let*/const",
            "/*reference {*/",
            "/*reference return",
            "align(16)",
            "mat3x3",
            &deep,
        ];
        for seed in 0..2000 {
            let case = kernel(seed, Without::default()).case();
            if forms.iter().any(|form| case.text.contains(form)) && check(&case).is_ok() {
                forms.retain(|form| !case.text.contains(form));
            }
            if forms.is_empty() {
                return;
            }
        }
        panic!("never made, or never interpreted: {forms:?}");
    }
}
