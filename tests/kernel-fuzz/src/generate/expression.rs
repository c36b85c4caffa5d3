//! Random expressions.
//!
//! No operator has only constant operands, because WGSL rejects constant expressions that overflow. Floats are small
//! whole numbers, so that every result is exact.

use super::Generator;
use super::context::{SharedUse, Space, Variable};
use crate::tree::{Expression, Scalar, Type};

/// Constraints on an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constraints {
    pub(super) depth: usize,
    /// Only values that are the same in all work-items.
    pub(super) uniform: bool,
}

impl Constraints {
    fn less(self) -> Self {
        Self { depth: self.depth.saturating_sub(1), ..self }
    }
}

const U32: Type = Type::Scalar(Scalar::U32);
const BOOL: Type = Type::Scalar(Scalar::Bool);

/// The maximum nesting of indices.
const MAX_NESTED_INDICES: usize = 16;

impl Generator {
    /// A random expression of a type.
    pub(super) fn expression(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        if constraints.depth == 0 || self.random.below(5) == 0 {
            return self.leaf(ty, constraints);
        }
        match ty {
            Type::Scalar(Scalar::Bool) => self.boolean(constraints),
            Type::Scalar(scalar) => self.number(*scalar, constraints),
            Type::Vector(count, scalar) => self.vector(*count, *scalar, constraints),
            Type::Matrix(columns, rows, scalar) => self.matrix(*columns, *rows, *scalar, constraints),
            Type::Array(..) | Type::Struct(_) => self.composite(ty, constraints),
            Type::Nothing => Expression::new(Type::Nothing, "", Vec::new()),
        }
    }

    /// An expression that no compiler can evaluate.
    pub(super) fn runtime_expression(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        for _ in 0..4 {
            let expression = self.expression(ty, constraints);
            if !expression.constant {
                return expression;
            }
        }
        self.runtime_seed(ty, constraints)
    }

    /// An expression made of an immediate or the work-item index.
    fn runtime_seed(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        match ty {
            Type::Scalar(scalar) => {
                let word = if constraints.uniform || self.random.once_in(2) || self.item.is_empty() {
                    format!("{}.{}", self.immediates, self.first_immediate)
                } else {
                    self.item.clone()
                };
                let text = match scalar {
                    Scalar::U32 => word,
                    Scalar::Bool => format!("({word} > 3u)"),
                    Scalar::F16 | Scalar::F32 => format!("{}({word} & 7u)", scalar.name()),
                    _ => format!("{}({word})", scalar.name()),
                };
                Expression::new(ty.clone(), &text, Vec::new()).runtime()
            }
            Type::Vector(_, scalar) => {
                let seed = self.runtime_seed(&Type::Scalar(*scalar), constraints);
                Expression::new(ty.clone(), &format!("{ty}(@)"), vec![seed])
            }
            _ => self.composite(ty, Constraints { depth: 0, ..constraints }),
        }
    }

    /// A literal, a variable, or a part of one.
    pub(super) fn leaf(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        if self.random.below(4) > 0
            && let Some(part) = self.read(ty, constraints)
        {
            return part;
        }
        match ty {
            Type::Scalar(scalar) => self.literal(*scalar),
            _ if self.random.once_in(8) => Expression::new(ty.clone(), &ty.zero(), Vec::new()),
            Type::Nothing => Expression::new(Type::Nothing, "", Vec::new()),
            _ => self.composite(ty, Constraints { depth: 0, ..constraints }),
        }
    }

    pub(super) fn literal(&mut self, scalar: Scalar) -> Expression {
        let lanes = self.lanes as u32;
        let text = match scalar {
            Scalar::Bool => self.random.once_in(2).to_string(),
            Scalar::F16 | Scalar::F32 => {
                let value = self.random.below(8);
                format!("{}{value}.0{}", if self.random.once_in(4) { "-" } else { "" }, scalar.suffix())
            }
            _ => {
                let small = self.random.below(12) as u32;
                let extreme = match scalar {
                    Scalar::U32 => "4294967295u",
                    Scalar::I32 => "2147483647i",
                    Scalar::U64 => "18446744073709551615lu",
                    _ => "9223372036854775807li",
                };
                match self.random.below(10) {
                    0 => extreme.to_owned(),
                    1 if scalar.is_signed() => format!("(-{small}{})", scalar.suffix()),
                    2 => scalar.literal(lanes),
                    _ => scalar.literal(small),
                }
            }
        };
        Expression::new(Type::Scalar(scalar), &text, Vec::new())
    }

    /// A part of a variable.
    pub(super) fn read(&mut self, ty: &Type, constraints: Constraints) -> Option<Expression> {
        let usable = |generator: &Self, variable: &Variable| {
            (variable.uniform || !constraints.uniform)
                && variable.ty.has(ty)
                // Neither a tensor nor an array in work-group memory has a value as a whole.
                && !(matches!(variable.space, Space::Tensor | Space::Shared(_)) && variable.ty == *ty)
                && generator.is_visible(variable)
                && generator.may_read(variable)
        };
        let variables: Vec<_> =
            self.scope.iter().filter(|variable| usable(self, variable)).cloned().collect();
        if variables.is_empty() {
            return None;
        }
        let variable = self.random.one(&variables).clone();
        self.note_use(&variable);
        let whole = self.whole(&variable, constraints);
        Some(self.part(whole, ty, constraints))
    }

    /// A variable, or the element of a shared array that may be used in this phase.
    pub(super) fn whole(&mut self, variable: &Variable, constraints: Constraints) -> Expression {
        let Space::Shared(at) = variable.space else { return variable.expression() };
        let Some((element, count)) = variable.ty.element() else { return variable.expression() };
        let index = match self.shared_uses[at] {
            SharedUse::Own(offset) => self.own_index(offset, count),
            SharedUse::Read | SharedUse::Leader => self.index(count, constraints),
        };
        Expression::new(element, &format!("{}[@]", variable.text), vec![index]).runtime()
    }

    fn own_index(&mut self, offset: usize, count: usize) -> Expression {
        let lane = &self.lane;
        let text = if offset == 0 { lane.clone() } else { format!("(({lane} + {offset}u) % {count}u)") };
        Expression::new(U32, &text, Vec::new()).runtime().lvalue()
    }

    /// A part of type `ty` of an expression whose type contains it.
    pub(super) fn part(&mut self, whole: Expression, ty: &Type, constraints: Constraints) -> Expression {
        if whole.ty == *ty {
            return whole;
        }
        let (constant, replaceable) = (whole.constant, whole.replaceable);
        let mut part = if let Type::Struct(of) = &whole.ty {
            let members: Vec<_> = of.members.iter().filter(|(_, member)| member.has(ty)).cloned().collect();
            let (name, member) = self.random.one(&members).clone();
            Expression::new(member, &format!("@.{name}"), vec![whole])
        } else if let Some((element, count)) = whole.ty.element() {
            if matches!(whole.ty, Type::Vector(..)) && self.random.once_in(2) {
                let letter = ["x", "y", "z", "w"][self.random.below(count)];
                Expression::new(element, &format!("@.{letter}"), vec![whole])
            } else {
                let index = self.index(count, constraints);
                let constant = whole.constant && index.constant;
                Expression { constant, ..Expression::new(element, "@[@]", vec![whole, index]) }
            }
        } else {
            return whole;
        };
        // A part of a reference is a reference.
        if let Some(crate::tree::Part::Expression(base)) = part.parts.first_mut() {
            base.replaceable = replaceable;
        }
        part.constant &= constant;
        part.replaceable = replaceable;
        self.part(part, ty, constraints)
    }

    /// An index into `count` elements, in range or not.
    pub(super) fn index(&mut self, count: usize, constraints: Constraints) -> Expression {
        // An index may read an element, which has an index, and so on.
        if self.indices == MAX_NESTED_INDICES {
            return Expression::new(U32, "0u", Vec::new());
        }
        self.indices += 1;
        let index = self.any_index(count, constraints);
        self.indices -= 1;
        index
    }

    fn any_index(&mut self, count: usize, constraints: Constraints) -> Expression {
        let mut scalars = vec![Scalar::U32, Scalar::U32, Scalar::I32];
        if self.wide {
            scalars.extend([Scalar::I64, Scalar::U64]);
        }
        let scalar = *self.random.one(&scalars);
        let ty = Type::Scalar(scalar);
        let constraints = Constraints { depth: constraints.depth.min(1), ..constraints };
        let n = scalar.literal(count as u32);
        let runtime_values: Vec<_> = self
            .scope
            .iter()
            .filter(|v| v.ty == ty && !v.constant && (v.uniform || !constraints.uniform))
            .filter(|v| v.space == Space::Value && self.is_visible(v))
            .map(Variable::expression)
            .collect();
        match self.random.below(10) {
            0 | 1 => {
                // naga does not accept 64-bit literals as indices.
                let scalar = if scalar.is_signed() { Scalar::I32 } else { Scalar::U32 };
                let literal = scalar.literal(self.random.below(count.max(1)) as u32);
                Expression::new(Type::Scalar(scalar), &literal, Vec::new())
            }
            2..=5 if !runtime_values.is_empty() => self.random.one(&runtime_values).clone(),
            6 => {
                let value = self.runtime_expression(&ty, constraints);
                Expression::new(ty, &format!("(@ % {n})"), vec![value])
            }
            7 if scalar.is_signed() => {
                let value = self.runtime_expression(&ty, constraints);
                Expression::new(ty, "(-@)", vec![value])
            }
            8 => {
                let value = self.runtime_expression(&ty, constraints);
                let last = scalar.literal(count.saturating_sub(1) as u32);
                let low = scalar.literal(0);
                let pattern = if scalar.is_signed() {
                    format!("clamp(@, {low}, {last})")
                } else {
                    format!("min(@, {last})")
                };
                Expression::new(ty, &pattern, vec![value])
            }
            9 => {
                let value = self.runtime_expression(&ty, constraints);
                let by = scalar.literal(1 + self.random.below(5) as u32);
                let op = ["+", "-", "*"][self.random.below(3)];
                Expression::new(ty, &format!("(@ {op} {by})"), vec![value])
            }
            _ => self.runtime_expression(&ty, constraints),
        }
    }

    fn composite(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        let parts: Vec<Type> = match ty {
            Type::Struct(of) => of.members.iter().map(|(_, ty)| ty.clone()).collect(),
            _ => ty.element().map_or(Vec::new(), |(element, count)| vec![element; count]),
        };
        if parts.len() > 8 {
            return Expression::new(ty.clone(), &ty.zero(), Vec::new());
        }
        let operands: Vec<_> = parts.iter().map(|part| self.expression(part, constraints.less())).collect();
        Expression::new(ty.clone(), &format!("{ty}({})", vec!["@"; parts.len()].join(", ")), operands)
    }

    fn boolean(&mut self, constraints: Constraints) -> Expression {
        let less = constraints.less();
        match self.random.below(10) {
            0..=5 => {
                let ty = Type::Scalar(self.scalar(false));
                let (x, y) = (self.runtime_expression(&ty, less), self.expression(&ty, less));
                let op = *self.random.one(&["==", "!=", "<", "<=", ">", ">="]);
                Expression::new(BOOL, &format!("(@ {op} @)"), vec![x, y])
            }
            6 => {
                let x = self.runtime_expression(&BOOL, less);
                Expression::new(BOOL, "(!@)", vec![x])
            }
            7 => {
                let count = 2 + self.random.below(3);
                let x = self.runtime_expression(&Type::Vector(count, Scalar::Bool), less);
                let pattern = if self.random.once_in(2) { "any(@)" } else { "all(@)" };
                Expression::new(BOOL, pattern, vec![x])
            }
            _ => {
                let (x, y) = (self.runtime_expression(&BOOL, less), self.expression(&BOOL, less));
                let op = *self.random.one(&["&&", "||", "&", "|", "==", "!="]);
                Expression::new(BOOL, &format!("(@ {op} @)"), vec![x, y])
            }
        }
    }

    fn number(&mut self, scalar: Scalar, constraints: Constraints) -> Expression {
        let (ty, less) = (Type::Scalar(scalar), constraints.less());
        match self.random.below(16) {
            0 => {
                let condition = self.runtime_expression(&BOOL, less);
                let (x, y) = (self.expression(&ty, less), self.expression(&ty, less));
                Expression::new(ty, "select(@, @, @)", vec![x, y, condition])
            }
            1 => self.conversion(scalar, less),
            2 if !constraints.uniform || self.random.once_in(2) => match self.call_value(&ty, less) {
                Some(call) => call,
                None => self.leaf(&ty, constraints),
            },
            3 if scalar.is_integer() && scalar.bits() == 32 => self.bit_function(scalar, less),
            4 => {
                let count = 2 + self.random.below(3);
                let vector = Type::Vector(count, scalar);
                let (x, y) = (self.runtime_expression(&vector, less), self.leaf(&vector, less));
                let dot = Expression::new(ty, "dot(@, @)", vec![x, y]);
                self.bounded(dot)
            }
            5 => {
                let x = self.runtime_expression(&ty, less);
                let pattern = if scalar.is_float() || scalar.is_signed() { "(-@)" } else { "(~@)" };
                Expression::new(ty, pattern, vec![x])
            }
            6 | 7 => self.function(&ty, less),
            8 => self.leaf(&ty, constraints),
            _ => self.operator(&ty, less),
        }
    }

    /// `x op y` of two scalars or vectors of the same type.
    fn operator(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let x = self.runtime_expression(ty, constraints);
        if scalar.is_float() {
            let y = self.expression(ty, constraints);
            let op = *self.random.one(&["+", "-", "*"]);
            let result = Expression::new(ty.clone(), &format!("(@ {op} @)"), vec![x, y]);
            return self.bounded(result);
        }
        match self.random.below(10) {
            0 | 1 => {
                let amount = match ty {
                    Type::Vector(count, _) => Type::Vector(*count, Scalar::U32),
                    _ => U32,
                };
                // A constant amount must be less than the width.
                let y = if let Type::Vector(count, _) = amount {
                    let x = self.runtime_expression(&U32, constraints);
                    Expression::new(amount, &format!("vec{count}<u32>(@)"), vec![x])
                } else if self.random.once_in(2) {
                    let text = format!("{}u", self.random.below(scalar.bits() as usize));
                    Expression::new(U32, &text, Vec::new())
                } else {
                    self.runtime_expression(&U32, constraints)
                };
                let op = *self.random.one(&["<<", ">>"]);
                Expression::new(ty.clone(), &format!("(@ {op} @)"), vec![x, y])
            }
            2 | 3 => {
                let op = *self.random.one(&["/", "%"]);
                // A constant divisor must not be 0.
                let y = if let Type::Vector(..) = ty {
                    let y = self.runtime_expression(&Type::Scalar(scalar), constraints);
                    Expression::new(ty.clone(), &format!("{ty}(@)"), vec![y])
                } else if self.random.once_in(2) {
                    let text = scalar.literal(1 + self.random.below(9) as u32);
                    Expression::new(ty.clone(), &text, Vec::new())
                } else {
                    self.runtime_expression(ty, constraints)
                };
                Expression::new(ty.clone(), &format!("(@ {op} @)"), vec![x, y])
            }
            _ => {
                let y = self.expression(ty, constraints);
                let op = *self.random.one(&["+", "-", "*", "&", "|", "^", "+", "-"]);
                Expression::new(ty.clone(), &format!("(@ {op} @)"), vec![x, y])
            }
        }
    }

    /// Clamps a float result, to keep it small.
    pub(super) fn bounded(&mut self, x: Expression) -> Expression {
        let ty = x.ty.clone();
        let Some(scalar) = ty.scalar().filter(|scalar| scalar.is_float()) else { return x };
        if matches!(ty, Type::Matrix(..)) {
            return x;
        }
        if matches!(x.parts.first(), Some(crate::tree::Part::Text(text)) if text.starts_with("clamp(")) {
            return x;
        }
        let bound = if scalar == Scalar::F16 { "11.0h" } else { "60.0f" };
        let (low, high) = match ty {
            Type::Scalar(_) => (format!("-{bound}"), bound.to_owned()),
            _ => (format!("{ty}(-{bound})"), format!("{ty}({bound})")),
        };
        Expression::new(ty, &format!("clamp(@, {low}, {high})"), vec![x])
    }

    fn function(&mut self, ty: &Type, constraints: Constraints) -> Expression {
        let scalar = ty.scalar().unwrap_or(Scalar::U32);
        let x = self.runtime_expression(ty, constraints);
        let pattern = if scalar.is_float() {
            let half = format!("0.5{}", scalar.suffix());
            let patterns = ["abs(@)", "min(@, @)", "max(@, @)", "sign(@)"];
            match self.random.below(6) {
                0 => format!("floor(@ * {half})"),
                1 => format!("{}(@ * {half})", self.random.one(&["trunc", "ceil", "round"])),
                _ => (*self.random.one(&patterns)).to_owned(),
            }
        } else {
            let mut patterns = vec!["abs(@)", "min(@, @)", "max(@, @)", "clamp(@, @, @)"];
            if scalar.is_signed() {
                patterns.push("sign(@)");
            }
            (*self.random.one(&patterns)).to_owned()
        };
        let mut operands = vec![x];
        while operands.len() < pattern.matches('@').count() {
            operands.push(self.runtime_expression(ty, constraints));
        }
        Expression::new(ty.clone(), &pattern, operands)
    }

    /// Built-in functions on bits.
    fn bit_function(&mut self, scalar: Scalar, constraints: Constraints) -> Expression {
        let ty = Type::Scalar(scalar);
        let x = self.runtime_expression(&ty, constraints);
        match self.random.below(4) {
            0 => {
                let (offset, count) =
                    (self.runtime_expression(&U32, constraints), self.runtime_expression(&U32, constraints));
                Expression::new(ty, "extractBits(@, @, @)", vec![x, offset, count])
            }
            1 => {
                let y = self.runtime_expression(&ty, constraints);
                let (offset, count) = (self.random.below(20), self.random.below(12));
                Expression::new(ty, &format!("insertBits(@, @, {offset}u, {count}u)"), vec![x, y])
            }
            _ => {
                let names = [
                    "countOneBits",
                    "countLeadingZeros",
                    "countTrailingZeros",
                    "reverseBits",
                    "firstLeadingBit",
                    "firstTrailingBit",
                ];
                let name = self.random.one(&names);
                Expression::new(ty, &format!("{name}(@)"), vec![x])
            }
        }
    }

    /// A conversion from another scalar type.
    fn conversion(&mut self, to: Scalar, constraints: Constraints) -> Expression {
        let (from, ty) = (self.scalar(true), Type::Scalar(to));
        let x = self.runtime_expression(&Type::Scalar(from), constraints);
        let name = to.name();
        let pattern = match (from, to) {
            (from, to) if from.is_float() && to.is_float() => {
                return {
                    let x = self.bounded(x);
                    Expression::new(
                        ty,
                        &format!("{name}(clamp(@, -11.0{0}, 11.0{0}))", from.suffix()),
                        vec![x],
                    )
                };
            }
            (from, Scalar::U32 | Scalar::U64) if from.is_float() => format!("{name}(abs(@))"),
            (Scalar::Bool, _) => format!("{name}(@)"),
            (from, to) if to.is_float() => format!("{name}(@ % {})", from.literal(9)),
            (Scalar::I32, Scalar::U32) | (Scalar::U32, Scalar::I32) if self.random.once_in(2) => {
                format!("bitcast<{name}>(@)")
            }
            _ => format!("{name}(@)"),
        };
        Expression::new(ty, &pattern, vec![x])
    }

    fn vector(&mut self, count: usize, scalar: Scalar, constraints: Constraints) -> Expression {
        let (ty, less) = (Type::Vector(count, scalar), constraints.less());
        match self.random.below(10) {
            0 => {
                let x = self.expression(&Type::Scalar(scalar), less);
                Expression::new(ty.clone(), &format!("{ty}(@)"), vec![x])
            }
            1 => {
                let other = 2 + self.random.below(3);
                let x = self.leaf(&Type::Vector(other, scalar), less);
                let letters: String =
                    (0..count).map(|_| ['x', 'y', 'z', 'w'][self.random.below(other)]).collect();
                Expression::new(ty, &format!("@.{letters}"), vec![x])
            }
            2 => {
                let of = Type::Vector(count, Scalar::Bool);
                let condition = self.runtime_expression(&of, less);
                let (x, y) = (self.expression(&ty, less), self.expression(&ty, less));
                Expression::new(ty, "select(@, @, @)", vec![x, y, condition])
            }
            3..=5 if scalar == Scalar::Bool => {
                let of = Type::Vector(count, self.scalar(false));
                let (x, y) = (self.runtime_expression(&of, less), self.expression(&of, less));
                let op = *self.random.one(&["==", "!=", "<", "<=", ">", ">="]);
                Expression::new(ty, &format!("(@ {op} @)"), vec![x, y])
            }
            6 if scalar.is_float() => {
                let columns = 2 + self.random.below(3);
                let m = self.runtime_expression(&Type::Matrix(columns, count, scalar), less);
                let v = self.leaf(&Type::Vector(columns, scalar), less);
                let product = Expression::new(ty, "(@ * @)", vec![m, v]);
                self.bounded(product)
            }
            3..=5 if scalar != Scalar::Bool => self.operator(&ty, less),
            7 if scalar != Scalar::Bool => self.function(&ty, less),
            8 if scalar != Scalar::Bool => {
                let (x, y) =
                    (self.runtime_expression(&ty, less), self.expression(&Type::Scalar(scalar), less));
                let op = *self.random.one(&["+", "-", "*"]);
                let sum = Expression::new(ty, &format!("(@ {op} @)"), vec![x, y]);
                self.bounded(sum)
            }
            _ => self.composite(&ty, constraints),
        }
    }

    fn matrix(
        &mut self,
        columns: usize,
        rows: usize,
        scalar: Scalar,
        constraints: Constraints,
    ) -> Expression {
        let (ty, less) = (Type::Matrix(columns, rows, scalar), constraints.less());
        if self.random.once_in(3) {
            let x = self.runtime_expression(&Type::Matrix(rows, columns, scalar), less);
            return Expression::new(ty, "transpose(@)", vec![x]);
        }
        self.composite(&ty, constraints)
    }

    /// A random scalar type; with `all`, `bool` too.
    pub(super) fn scalar(&mut self, all: bool) -> Scalar {
        let mut scalars = vec![Scalar::I32, Scalar::U32, Scalar::U32, Scalar::I32, Scalar::F32];
        if all {
            scalars.push(Scalar::Bool);
        }
        if self.wide {
            scalars.extend([Scalar::I64, Scalar::U64]);
        }
        if self.half {
            scalars.push(Scalar::F16);
        }
        *self.random.one(&scalars)
    }
}
