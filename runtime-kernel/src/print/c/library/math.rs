//! Maps WGSL's built-in functions to library functions.

use naga::proc::TypeResolution;
use naga::{MathFunction, Scalar, ScalarKind, Span, TypeInner};
use runtime_core::Result;

use super::matrix::Matrix;
use super::vector::Shape;
use crate::print::c::form::Form;
use crate::print::c::writer::Writer;

/// WGSL's name of a component-wise function.
const fn componentwise(function: MathFunction) -> Option<&'static str> {
    use MathFunction as F;
    Some(match function {
        F::Abs => "abs",
        F::Min => "min",
        F::Max => "max",
        F::Clamp => "clamp",
        F::Saturate => "saturate",
        F::Cos => "cos",
        F::Cosh => "cosh",
        F::Sin => "sin",
        F::Sinh => "sinh",
        F::Tan => "tan",
        F::Tanh => "tanh",
        F::Acos => "acos",
        F::Asin => "asin",
        F::Atan => "atan",
        F::Atan2 => "atan2",
        F::Asinh => "asinh",
        F::Acosh => "acosh",
        F::Atanh => "atanh",
        F::Radians => "radians",
        F::Degrees => "degrees",
        F::Ceil => "ceil",
        F::Floor => "floor",
        F::Round => "round",
        F::Fract => "fract",
        F::Trunc => "trunc",
        F::Ldexp => "ldexp",
        F::Exp => "exp",
        F::Exp2 => "exp2",
        F::Log => "log",
        F::Log2 => "log2",
        F::Pow => "pow",
        F::Sign => "sign",
        F::Fma => "fma",
        F::Mix => "mix",
        F::Step => "step",
        F::SmoothStep => "smoothstep",
        F::Sqrt => "sqrt",
        F::InverseSqrt => "inverseSqrt",
        F::QuantizeToF16 => "quantizeToF16",
        F::CountTrailingZeros => "countTrailingZeros",
        F::CountLeadingZeros => "countLeadingZeros",
        F::CountOneBits => "countOneBits",
        F::ReverseBits => "reverseBits",
        F::ExtractBits => "extractBits",
        F::InsertBits => "insertBits",
        F::FirstTrailingBit => "firstTrailingBit",
        F::FirstLeadingBit => "firstLeadingBit",
        _ => return None,
    })
}

impl Writer<'_> {
    /// A built-in function on operands of these types.
    ///
    /// # Errors
    /// `Unsupported` for what WGSL does not define.
    pub(crate) fn math(
        &mut self,
        function: MathFunction,
        operands: &[&TypeInner],
        result: &TypeResolution,
        span: Span,
    ) -> Result<Form> {
        use MathFunction as F;
        let shapes: Vec<_> = operands.iter().filter_map(|operand| Shape::of(operand)).collect();
        if let Some(name) = componentwise(function) {
            return self.on_components(function, name, &shapes);
        }
        if let Some(form) = self.packing(function)? {
            return Ok(form);
        }
        if let (Some(matrix), F::Transpose) = (Matrix::of(operands[0]), function) {
            return self.transpose(matrix);
        }
        if let (Some(matrix), F::Determinant) = (Matrix::of(operands[0]), function) {
            return self.determinant(matrix);
        }
        let Some(&first) = shapes.first() else { return Err(self.unsupported_function(function, span)) };
        match (function, result) {
            (F::Modf, TypeResolution::Handle(result)) => self.parted("modf", first, *result),
            (F::Frexp, TypeResolution::Handle(result)) => self.parted("frexp", first, *result),
            _ => self.on_vectors(function, first, span),
        }
    }

    fn unsupported_function(&self, function: MathFunction, span: Span) -> runtime_core::Error {
        self.unsupported(&format!("the function {function:?}"), span)
    }

    fn on_components(&mut self, function: MathFunction, name: &str, shapes: &[Shape]) -> Result<Form> {
        let scalar = shapes[0].scalar;
        let form = match (function, scalar.kind) {
            (MathFunction::QuantizeToF16, _) => self.packing(function)?.unwrap_or(Form::Same),
            (MathFunction::Ldexp, _) => self.scaled_by_power(scalar)?,
            (MathFunction::Abs, ScalarKind::Uint) => Form::Same,
            (_, ScalarKind::Float) => Form::Call(self.float(name, scalar)?),
            _ => Form::Call(self.integer(name, scalar)?),
        };
        self.mapped(name, shapes, scalar, form)
    }

    fn on_vectors(&mut self, function: MathFunction, first: Shape, span: Span) -> Result<Form> {
        use MathFunction as F;
        let Some(size) = first.size else {
            return match function {
                F::Length => self.float("abs", first.scalar).map(Form::Call),
                F::Distance => self.distance_of_scalars(first.scalar),
                _ => Err(self.unsupported_function(function, span)),
            };
        };
        let name = match function {
            F::Dot => return self.dot(size, first.scalar).map(Form::Call),
            F::Length => return self.length(size, first.scalar).map(Form::Call),
            F::Cross => "cross",
            F::Distance => "distance",
            F::Normalize => "normalize",
            F::FaceForward => "faceForward",
            F::Reflect => "reflect",
            F::Refract => "refract",
            _ => return Err(self.unsupported_function(function, span)),
        };
        self.geometric(name, size, first.scalar)
    }

    fn distance_of_scalars(&mut self, scalar: Scalar) -> Result<Form> {
        let type_name = self.scalar(scalar)?;
        let abs = self.float("abs", scalar)?;
        let define = |_: &mut Self, name: &str| {
            Ok(format!("{type_name} {name}({type_name} a, {type_name} b) {{ return {abs}(a - b); }}"))
        };
        self.library(format!("{type_name}_distance"), define).map(Form::call)
    }

    /// Converts values of one type to another, by value or bit by bit.
    pub(crate) fn cast(
        &mut self,
        from: &TypeInner,
        kind: ScalarKind,
        convert: Option<u8>,
        span: Span,
    ) -> Result<Form> {
        if let (Some(matrix), Some(width)) = (Matrix::of(from), convert) {
            if matrix.scalar.width == width {
                return Ok(Form::Same);
            }
            return self.converted_matrix(matrix, Scalar { kind, width });
        }
        let Some(shape) = Shape::of(from) else { return Err(self.unsupported("this conversion", span)) };
        let width = convert.unwrap_or(shape.scalar.width);
        let to = Scalar { kind, width };
        let (form, word) = match convert {
            Some(_) => (self.conversion(shape.scalar, to)?, "to"),
            None => (self.bitcast(shape.scalar, to)?, "bitcast"),
        };
        let name = format!("{word}_{}", shape.with(to).name());
        self.mapped(&name, &[shape], to, form)
    }
}
