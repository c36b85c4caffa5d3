//! What naga's SPIR-V does otherwise than WGSL, said in other words.
//!
//! It extends 32-bit integers to 64-bit ones of the other sign as what they become, and their value is that of what they
//! are: each such conversion becomes two. It shifts by any number of bits, which SPIR-V leaves open from the width on, and WGSL
//! takes the number modulo the width. Its `RoundEven` of f64 is wrong in Mesa 22 on processors without AVX-512, where ties go
//! toward zero: rounding is made of `floor`.

use naga::valid::FunctionInfo;
use naga::{
    BinaryOperator, Expression, Function, Handle, Literal, MathFunction, Module, Scalar, ScalarKind,
    TypeInner,
};
use runtime_core::Result;

use crate::program::Program;
use crate::rebuild::{Change, Rebuild};

/// Bytes of a wide integer.
const WIDE: u8 = 8;

struct Mending<'a> {
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
}

impl Mending<'_> {
    fn inner(&self, expression: Handle<Expression>) -> &TypeInner {
        self.info[expression].ty.inner_with(&self.module.types)
    }

    fn has_work(&self) -> bool {
        let mut all = self.function.expressions.iter();
        all.any(|(_, expression)| {
            self.widened(expression).is_some()
                || self.shifted(expression).is_some()
                || self.rounded(expression).is_some()
        })
    }

    /// The kind of the integer that `expression` makes wider and of another sign, if it does that.
    fn widened(&self, expression: &Expression) -> Option<(Handle<Expression>, ScalarKind)> {
        let Expression::As { expr, kind, convert: Some(WIDE) } = *expression else { return None };
        let scalar = self.inner(expr).scalar()?;
        let other = matches!(
            (scalar.kind, kind),
            (ScalarKind::Uint, ScalarKind::Sint) | (ScalarKind::Sint, ScalarKind::Uint)
        );
        (other && scalar.width < WIDE).then_some((expr, scalar.kind))
    }

    /// The number of bits that `expression` shifts by, and the greatest one that it may be, if that is not certain.
    fn shifted(&self, expression: &Expression) -> Option<(Handle<Expression>, u32)> {
        let Expression::Binary { op: BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight, left, right } =
            *expression
        else {
            return None;
        };
        let most = u32::from(self.inner(left).scalar()?.width) * 8 - 1;
        let number = match self.function.expressions[right] {
            Expression::Literal(Literal::U32(number)) => Some(number),
            _ => None,
        };
        number.is_none_or(|number| number > most).then_some((right, most))
    }

    /// What `expression` rounds, if that is an f64.
    fn rounded(&self, expression: &Expression) -> Option<Handle<Expression>> {
        match *expression {
            Expression::Math { fun: MathFunction::Round, arg, .. } => {
                (self.inner(arg).scalar() == Some(Scalar::F64)).then_some(arg)
            }
            _ => None,
        }
    }

    /// `value`, rounded to the nearest integer, from the middle to the even one.
    fn round(&self, new: &mut Rebuild<'_>, value: Handle<Expression>) -> Handle<Expression> {
        let size = match *self.inner(value) {
            TypeInner::Vector { size, .. } => Some(size),
            _ => None,
        };
        let value = new.value(value);
        let constant = |new: &mut Rebuild<'_>, number: f64| {
            let value = new.append(Expression::Literal(Literal::F64(number)));
            size.map_or(value, |size| new.append(Expression::Splat { size, value }))
        };
        let binary =
            |new: &mut Rebuild<'_>, op, left, right| new.append(Expression::Binary { op, left, right });
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

impl Change for Mending<'_> {
    fn instead(&self, new: &mut Rebuild<'_>, old: Handle<Expression>) -> Option<Handle<Expression>> {
        let expression = &new.source.expressions[old];
        if let (Some((from, own)), &Expression::As { kind, convert, .. }) =
            (self.widened(expression), expression)
        {
            let expr = new.value(from);
            let expr = new.append(Expression::As { expr, kind: own, convert });
            return Some(new.append(Expression::As { expr, kind, convert }));
        }
        if let Some(value) = self.rounded(expression) {
            return Some(self.round(new, value));
        }
        let (by, most) = self.shifted(expression)?;
        let &Expression::Binary { op, left, .. } = expression else { return None };
        let mut mask = new.append(Expression::Literal(Literal::U32(most)));
        if let TypeInner::Vector { size, .. } = *self.inner(by) {
            mask = new.append(Expression::Splat { size, value: mask });
        }
        let (left, by) = (new.value(left), new.value(by));
        let right = new.append(Expression::Binary { op: BinaryOperator::And, left: by, right: mask });
        Some(new.append(Expression::Binary { op, left, right }))
    }
}

/// The module with what is to be said otherwise, which must be validated anew; `None` where there is nothing.
///
/// # Errors
/// `Unsupported` for an expression that no kernel has.
pub(crate) fn mended(program: &Program) -> Result<Option<Module>> {
    let module = &program.module;
    let mut new = None;
    for (handle, function) in module.functions.iter() {
        let change = Mending { module, function, info: &program.info[handle] };
        if change.has_work() {
            let new = new.get_or_insert_with(|| module.clone());
            *new.functions.get_mut(handle) = Rebuild::function(function, &change)?;
        }
    }
    for (index, entry) in module.entry_points.iter().enumerate() {
        let function = &entry.function;
        let change = Mending { module, function, info: program.info.get_entry_point(index) };
        if change.has_work() {
            let new = new.get_or_insert_with(|| module.clone());
            new.entry_points[index].function = Rebuild::function(function, &change)?;
        }
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use crate::{Checks, Program, Specialisation};

    /// Whether SPIR-V has a `&` of integers.
    fn masks(shift: &str) -> bool {
        let code = format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
             @group(0) @binding(1) var<storage, read_write> y: array<u64>;
             @compute @workgroup_size(1) fn main() {{ {shift} }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::Bounded).unwrap();
        crate::spirv::instructions(&words).any(|(_, instruction)| instruction[0] & 0xffff == 199)
    }

    #[test]
    fn a_number_of_bits_is_taken_modulo_the_width() {
        assert!(masks("x[0] = x[1] << x[2];"));
        assert!(masks("y[0] = y[1] >> x[2];"));
        assert!(masks("y[0] = (vec2(y[1]) >> vec2(x[2], 1u)).x;"));
        assert!(!masks("x[0] = x[1] << 31u; y[0] = y[1] >> 63u;"));
    }
}
