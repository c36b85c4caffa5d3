//! Maps WGSL's built-in functions to library functions.

use naga::common::wgsl::TryToWgsl as _;
use naga::proc::TypeResolution;
use naga::{MathFunction, Scalar, ScalarKind, Span, TypeInner};
use runtime_core::Result;

use super::matrix::Matrix;
use super::vector::Shape;
use crate::print::c::form::Form;
use crate::print::c::writer::Writer;

/// WGSL's name of a component-wise function.
fn componentwise(function: MathFunction) -> Option<&'static str> {
    use MathFunction as F;
    match function {
        F::Dot | F::Dot4I8Packed | F::Dot4U8Packed | F::Cross | F::Distance | F::Length => None,
        F::Normalize | F::FaceForward | F::Reflect | F::Refract | F::Modf | F::Frexp => None,
        F::Transpose | F::Determinant | F::Inverse | F::Outer => None,
        F::Pack4x8snorm | F::Pack4x8unorm | F::Pack2x16snorm | F::Pack2x16unorm | F::Pack2x16float => None,
        F::Unpack4x8snorm | F::Unpack4x8unorm | F::Unpack2x16snorm | F::Unpack2x16unorm => None,
        F::Pack4xI8 | F::Pack4xU8 | F::Pack4xI8Clamp | F::Pack4xU8Clamp => None,
        F::Unpack2x16float | F::Unpack4xI8 | F::Unpack4xU8 => None,
        _ => function.try_to_wgsl(),
    }
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
            F::Cross | F::Distance | F::Normalize | F::FaceForward | F::Reflect | F::Refract => {
                function.try_to_wgsl()
            }
            _ => None,
        };
        let Some(name) = name else { return Err(self.unsupported_function(function, span)) };
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
