//! Works around deviations of naga's SPIR-V from WGSL, and around driver defects, by rewriting the module.
//!
//! - naga extends a 32-bit integer to a 64-bit one of the other signedness according to the result type, but WGSL
//!   extends according to the operand type: each such conversion becomes two.
//! - The high word of an extended `i32` is built from its sign, since Mesa 22 compares an extended integer with a
//!   constant wrongly (`i64(x) < 9` never holds).
//! - naga shifts by any number of bits. SPIR-V leaves shifts by the width or more undefined, and WGSL takes the
//!   amount modulo the width.
//! - naga's `RoundEven` of f64 is wrong in Mesa 22 on processors without AVX-512, where ties go toward zero:
//!   rounding is built from `floor`.
//! - NVIDIA's driver (580.159, `sm_90`) fuses `min(a, min(b, -c))` of 32-bit integers, and likewise `max`, into one
//!   instruction and loses the negation: both are built from comparisons.
//! - NVIDIA's driver takes `SAbs` for a number that is not negative, and miscompiles a `switch` of the absolute value of
//!   the most negative integer, which is that integer itself: it is built from the sign.
//! - NVIDIA's driver (580.159, `sm_90`) refuses some pipelines with `SSign` of a 64-bit integer, or the same from comparisons, that
//!   compare it with a quotient: it is a clamp to -1 and 1.
//! - SPIR-V leaves `Pow` of a negative number undefined, and drivers return NaN, whereas the functions of C are exact for
//!   whole exponents. Kernels rely on that (`pow(x, 3.0)` in GELU): exponents of 2, 3 and 4 become multiplications.

use naga::valid::FunctionInfo;
use naga::{
    Arena, BinaryOperator, Expression, Function, Handle, Literal, MathFunction, Module, Scalar, ScalarKind,
    TypeInner, VectorSize,
};
use runtime_core::Result;

use crate::ir::rebuild::{Change, Rebuild};
use crate::ir::{Value, blocks};
use crate::program::Program;

/// Bytes of a 64-bit integer.
const WIDE: u8 = 8;

/// Writes what takes the place of an expression.
type Fix<'f> = Box<dyn Fn(&mut Rebuild<'_>) -> Value + 'f>;

struct Fixups<'a> {
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
}

impl Fixups<'_> {
    fn inner(&self, expression: Value) -> &TypeInner {
        self.info[expression].ty.inner_with(&self.module.types)
    }

    /// The number of components of a vector.
    fn size(&self, expression: Value) -> Option<VectorSize> {
        match *self.inner(expression) {
            TypeInner::Vector { size, .. } => Some(size),
            _ => None,
        }
    }

    fn applies(&self) -> bool {
        self.function.expressions.iter().any(|(_, expression)| self.fix(expression).is_some())
    }

    /// The fix of an expression that needs one.
    fn fix(&self, expression: &Expression) -> Option<Fix<'_>> {
        use MathFunction as M;
        match *expression {
            Expression::As { expr, kind, convert: Some(WIDE) } => self.widened(expr, kind),
            Expression::Binary {
                op: op @ (BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight),
                left,
                right,
            } => self.shifted(op, left, right),
            Expression::Math { fun, arg, arg1, arg2, .. } => {
                let scalar = self.inner(arg).scalar()?;
                match fun {
                    M::Round if scalar == Scalar::F64 => Some(Box::new(move |new| self.round(new, arg))),
                    M::Min | M::Max | M::Clamp if scalar == Scalar::I32 => {
                        let other = arg1?;
                        Some(Box::new(move |new| limited(new, fun, [arg, other], arg2)))
                    }
                    M::Abs if scalar.kind == ScalarKind::Sint => {
                        Some(Box::new(move |new| self.magnitude(new, arg)))
                    }
                    M::Sign if scalar == Scalar::I64 => Some(Box::new(move |new| self.sign(new, arg))),
                    M::Pow => {
                        let exponent = self.number(arg1?)?;
                        let whole = (2_u8..=4).find(|whole| f64::from(*whole) == exponent)?;
                        Some(Box::new(move |new| power(new, arg, whole)))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The extension of a 32-bit integer; `u64` of `u32` needs no fix.
    fn widened(&self, from: Value, kind: ScalarKind) -> Option<Fix<'_>> {
        let own = self.inner(from).scalar()?;
        match (own.kind, kind) {
            _ if own.width >= WIDE => None,
            (ScalarKind::Sint, ScalarKind::Sint | ScalarKind::Uint) => {
                Some(Box::new(move |new| self.extend(new, from, kind)))
            }
            (ScalarKind::Uint, ScalarKind::Sint) => Some(Box::new(move |new| {
                let from = new.value(from);
                let wide = convert(new, from, own.kind, Some(WIDE));
                convert(new, wide, kind, Some(WIDE))
            })),
            _ => None,
        }
    }

    /// A shift, unless its amount is known to be in range.
    fn shifted(&self, op: BinaryOperator, left: Value, by: Value) -> Option<Fix<'_>> {
        let most = u32::from(self.inner(left).scalar()?.width) * 8 - 1;
        let is_less = |number| number <= most;
        if matches!(self.function.expressions[by], Expression::Literal(Literal::U32(number)) if is_less(number))
        {
            return None;
        }
        Some(Box::new(move |new| {
            let mask = splat(new, Literal::U32(most), self.size(by));
            let (left, by) = (new.value(left), new.value(by));
            let right = binary(new, BinaryOperator::And, by, mask);
            binary(new, op, left, right)
        }))
    }

    /// The value of a constant, or of each component of a constant vector if all are equal.
    fn number(&self, expression: Value) -> Option<f64> {
        self.number_in(&self.function.expressions, expression)
    }

    fn number_in(&self, expressions: &Arena<Expression>, expression: Value) -> Option<f64> {
        match expressions[expression] {
            Expression::Literal(Literal::F16(number)) => Some(number.to_f64()),
            Expression::Literal(Literal::F32(number)) => Some(number.into()),
            Expression::Literal(Literal::F64(number)) => Some(number),
            Expression::Splat { value, .. } => self.number_in(expressions, value),
            Expression::Compose { ref components, .. } => {
                let first = self.number_in(expressions, *components.first()?)?;
                let is_first = |one: &Handle<_>| self.number_in(expressions, *one) == Some(first);
                components.iter().all(is_first).then_some(first)
            }
            Expression::Constant(constant) => {
                self.number_in(&self.module.global_expressions, self.module.constants[constant].init)
            }
            _ => None,
        }
    }

    /// The absolute value: negated by its sign, which is 0 or -1.
    fn magnitude(&self, new: &mut Rebuild<'_>, value: Value) -> Value {
        let bits = self.inner(value).scalar().map_or(32, |scalar| u32::from(scalar.width) * 8);
        let by = splat(new, Literal::U32(bits - 1), self.size(value));
        let value = new.value(value);
        let sign = binary(new, BinaryOperator::ShiftRight, value, by);
        let flipped = binary(new, BinaryOperator::ExclusiveOr, value, sign);
        binary(new, BinaryOperator::Subtract, flipped, sign)
    }

    /// The sign of an `i64`: -1, 0 or 1.
    fn sign(&self, new: &mut Rebuild<'_>, value: Value) -> Value {
        let size = self.size(value);
        let value = new.value(value);
        let [below, above] = [-1, 1].map(|number| Some(splat(new, Literal::I64(number), size)));
        let fun = MathFunction::Clamp;
        new.append(Expression::Math { fun, arg: value, arg1: below, arg2: above, arg3: None })
    }

    /// Extends `value`, an `i32`, to 64 bits of `kind`: the high word repeats the sign bit.
    fn extend(&self, new: &mut Rebuild<'_>, value: Value, kind: ScalarKind) -> Value {
        let size = self.size(value);
        let value = new.value(value);
        let unsigned = |new: &mut Rebuild<'_>, word| {
            let word = convert(new, word, ScalarKind::Uint, None);
            convert(new, word, ScalarKind::Uint, Some(WIDE))
        };
        let by = splat(new, Literal::U32(31), size);
        let sign = binary(new, BinaryOperator::ShiftRight, value, by);
        let (low, high) = (unsigned(new, value), unsigned(new, sign));
        let by = splat(new, Literal::U32(32), size);
        let high = binary(new, BinaryOperator::ShiftLeft, high, by);
        let whole = binary(new, BinaryOperator::InclusiveOr, high, low);
        match kind {
            ScalarKind::Uint => whole,
            _ => convert(new, whole, kind, None),
        }
    }

    /// Rounds `value` to the nearest integer, ties to even.
    fn round(&self, new: &mut Rebuild<'_>, value: Value) -> Value {
        let size = self.size(value);
        let value = new.value(value);
        let constant = |new: &mut Rebuild<'_>, number| splat(new, Literal::F64(number), size);
        let floor = |new: &mut Rebuild<'_>, arg| {
            let fun = MathFunction::Floor;
            new.append(Expression::Math { fun, arg, arg1: None, arg2: None, arg3: None })
        };
        let (one, half) = (constant(new, 1.0), constant(new, 0.5));
        let below = floor(new, value);
        // Exact, and zero from 2^52 on.
        let rest = binary(new, BinaryOperator::Subtract, value, below);
        let above = binary(new, BinaryOperator::Add, below, one);
        let halved = binary(new, BinaryOperator::Multiply, below, half);
        let even = floor(new, halved);
        let even = binary(new, BinaryOperator::Equal, halved, even);
        let up = binary(new, BinaryOperator::Greater, rest, half);
        let up_from_the_middle = binary(new, BinaryOperator::GreaterEqual, rest, half);
        let condition =
            new.append(Expression::Select { condition: even, accept: up, reject: up_from_the_middle });
        new.append(Expression::Select { condition, accept: above, reject: below })
    }
}

fn binary(new: &mut Rebuild<'_>, op: BinaryOperator, left: Value, right: Value) -> Value {
    new.append(Expression::Binary { op, left, right })
}

/// `min`, `max` or `clamp` by comparisons.
fn limited(new: &mut Rebuild<'_>, fun: MathFunction, operands: [Value; 2], high: Option<Value>) -> Value {
    let ([a, b], high) = (operands.map(|operand| new.value(operand)), high.map(|high| new.value(high)));
    match (fun, high) {
        (MathFunction::Min, _) => extreme(new, a, b, false),
        (_, None) => extreme(new, a, b, true),
        (_, Some(high)) => {
            let above = extreme(new, a, b, true);
            extreme(new, above, high, false)
        }
    }
}

/// The larger or the smaller of two integers.
fn extreme(new: &mut Rebuild<'_>, a: Value, b: Value, is_larger: bool) -> Value {
    let (left, right) = if is_larger { (a, b) } else { (b, a) };
    let condition = binary(new, BinaryOperator::Less, left, right);
    new.append(Expression::Select { condition, accept: b, reject: a })
}

/// A power with an exponent of 2, 3 or 4.
fn power(new: &mut Rebuild<'_>, base: Value, exponent: u8) -> Value {
    let base = new.value(base);
    let square = binary(new, BinaryOperator::Multiply, base, base);
    match exponent {
        3 => binary(new, BinaryOperator::Multiply, square, base),
        4 => binary(new, BinaryOperator::Multiply, square, square),
        _ => square,
    }
}

/// A constant; for vectors, in each component.
fn splat(new: &mut Rebuild<'_>, literal: Literal, size: Option<VectorSize>) -> Value {
    let value = new.append(Expression::Literal(literal));
    size.map_or(value, |size| new.append(Expression::Splat { size, value }))
}

/// Converts `expr` to a kind and width; without a width, reinterprets its bits.
fn convert(new: &mut Rebuild<'_>, expr: Value, kind: ScalarKind, convert: Option<u8>) -> Value {
    new.append(Expression::As { expr, kind, convert })
}

impl Change for Fixups<'_> {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        self.fix(&self.function.expressions[old]).map(|fix| fix(new))
    }
}

/// The module with fixes applied, to be validated again; `None` if none is needed.
///
/// # Errors
/// `Unsupported` for expressions that kernels do not use.
pub(crate) fn fixed_up(program: &Program) -> Result<Option<Module>> {
    let module = &program.module;
    let fixups = || program.functions().map(|(function, info)| Fixups { module, function, info });
    if !fixups().any(|change| change.applies()) {
        return Ok(None);
    }
    let mut fixed = module.clone();
    for (new, change) in blocks::functions_mut(&mut fixed).zip(fixups()) {
        if change.applies() {
            *new = Rebuild::function(change.function, &change)?;
        }
    }
    Ok(Some(fixed))
}

#[cfg(test)]
mod tests {
    use spirv::{GlslStd450Op, Op};

    use crate::print::spirv::{instructions, is};
    use crate::{Checks, Program, Specialisation};

    /// Whether the SPIR-V has a `&` of integers.
    fn masks(shift: &str) -> bool {
        let code = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             @group(0) @binding(1) var<storage, read_write> y: array<u64>;
             @compute @workgroup_size(1) fn main() {{ {shift} }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::Bounded).unwrap();
        instructions(&words).any(|(_, instruction)| is(instruction[0], Op::BitwiseAnd))
    }

    /// The numbers of the extended instructions in the SPIR-V.
    fn extended_instructions(code: &str) -> Vec<u32> {
        let program = Program::parse(code, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::Unchecked).unwrap();
        let extended = instructions(&words).filter(|(_, words)| is(words[0], Op::ExtInst));
        // The fourth operand.
        extended.map(|(_, words)| words[4]).collect()
    }

    #[test]
    fn no_absolute_value_of_integers_is_left() {
        let code = "@group(0) @binding(0) var<storage, read_write> x: array<i32>;
                    @group(0) @binding(1) var<storage, read_write> y: array<i64>;
                    @group(0) @binding(2) var<storage, read_write> z: array<f32>;
                    @compute @workgroup_size(1) fn main() {
                        x[0] = abs(x[1]) + abs(vec2(x[2], x[3])).y;
                        y[0] = abs(y[1]);
                        z[0] = abs(z[1]);
                    }";
        assert_eq!(extended_instructions(code), [GlslStd450Op::FAbs as u32]);
    }

    #[test]
    fn no_sign_of_a_64_bit_integer_is_left() {
        let code = "@group(0) @binding(0) var<storage, read_write> x: array<i32>;
                    @group(0) @binding(1) var<storage, read_write> y: array<i64>;
                    @compute @workgroup_size(1) fn main() {
                        x[0] = sign(x[1]);
                        y[0] = sign(y[1]) + sign(vec2(y[2], y[3])).y;
                    }";
        use GlslStd450Op::{SMax, SMin, SSign};
        let ids = [SSign, SMax, SMin, SMax, SMin].map(|op| op as u32);
        assert_eq!(extended_instructions(code), ids);
    }

    #[test]
    fn no_integer_minimum_is_left() {
        let code = "@group(0) @binding(0) var<storage, read_write> x: array<i32>;
                    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
                    @compute @workgroup_size(1) fn main() {
                        x[0] = min(x[1], max(x[2], clamp(x[3], x[4], x[5])));
                        x[1] = min(vec2(x[6]), vec2(x[7], x[8])).y;
                        y[0] = max(y[1], y[2]);
                    }";
        assert_eq!(extended_instructions(code), [GlslStd450Op::UMax as u32]);
    }

    #[test]
    fn small_whole_powers_are_products() {
        let code = "const CUBE = 3.0;
                    const CUBES = vec3(3.0);
                    const SQUARES = vec2<f32>(2.0, 2.0);
                    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
                    @compute @workgroup_size(1) fn main() {
                        x[0] = pow(x[1], 2.0) + pow(x[2], CUBE) + pow(vec2(x[3], x[4]), vec2(4.0)).y;
                        x[1] = pow(x[5], 2.5) + pow(vec2(x[6]), vec2(2.0, 3.0)).y + pow(x[7], x[8]);
                        x[2] = pow(vec3(x[9]), CUBES).y + pow(vec2(x[9]), SQUARES).y;
                    }";
        assert_eq!(extended_instructions(code), [GlslStd450Op::Pow as u32; 3]);
    }

    #[test]
    fn shift_amounts_are_taken_modulo_the_width() {
        assert!(masks("x[0] = x[1] << x[2];"));
        assert!(masks("y[0] = y[1] >> x[2];"));
        assert!(masks("y[0] = (vec2(y[1]) >> vec2(x[2], 1u)).x;"));
        assert!(!masks("x[0] = x[1] << 31u; y[0] = y[1] >> 63u;"));
    }
}
