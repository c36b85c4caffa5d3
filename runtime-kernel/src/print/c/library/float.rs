//! Library functions on floating-point numbers.

use naga::Scalar;
use runtime_core::Result;

use crate::ir::declare::scalar_name;
use crate::print::c::writer::Writer;

/// Functions of one operand with the same name in WGSL, C and OpenCL C.
const SAME: [&str; 20] = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "exp2", "floor", "log",
    "log2", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
];

/// Others: WGSL's name, the name in C and OpenCL C, the number of operands.
const NATIVE: [(&str, &str, usize); 9] = [
    ("abs", "fabs", 1),
    ("atan2", "atan2", 2),
    ("inverseSqrt", "rsqrt", 1),
    ("max", "fmax", 2),
    ("min", "fmin", 2),
    ("pow", "pow", 2),
    ("rem", "fmod", 2),
    ("round", "rint", 1),
    ("fma", "fma", 3),
];

/// The number of operands of functions that are not [`NATIVE`].
fn operands(operation: &str) -> usize {
    match operation {
        "clamp" | "mix" | "smoothstep" => 3,
        "step" => 2,
        _ => NATIVE.iter().find(|native| native.0 == operation).map_or(1, |native| native.2),
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Writer<'_> {
    /// The library function `operation` on a floating-point type, such as `f32_sqrt`.
    pub(crate) fn float(&mut self, operation: &str, scalar: Scalar) -> Result<String> {
        self.library(format!("{}_{operation}", scalar_name(scalar)), |writer, name| {
            writer.scalar(scalar)?;
            if scalar.width == 2 {
                return writer.through_f32(operation, name);
            }
            if let Some(template) = writer.template(operation, scalar) {
                for need in &template.needs {
                    writer.float(need, scalar)?;
                }
                return Ok(writer.expand(template.text, name, scalar));
            }
            writer.native_float(operation, name, scalar)
        })
    }

    fn native_float(&self, operation: &str, name: &str, scalar: Scalar) -> Result<String> {
        let (native, count) = match NATIVE.iter().find(|native| native.0 == operation) {
            Some(&(_, native, count)) => (native, count),
            None if SAME.contains(&operation) => (operation, 1),
            None => return Err(self.unsupported(&format!("{operation} of a float"), naga::Span::UNDEFINED)),
        };
        let native = self.dialect.float_function(native, scalar);
        let operands = &NAMES[..count];
        let parameters: Vec<_> = operands.iter().map(|operand| format!("$T {operand}")).collect();
        let (parameters, operands) = (parameters.join(", "), operands.join(", "));
        let text = format!("$T $N({parameters}) {{ return {native}({operands}); }}");
        Ok(self.expand(&text, name, scalar))
    }

    /// A function on `f16`, computed in `f32` and rounded.
    fn through_f32(&mut self, operation: &str, name: &str) -> Result<String> {
        let wide = self.float(operation, Scalar::F32)?;
        let (narrow, widen) =
            (self.conversion(Scalar::F32, Scalar::F16)?, self.conversion(Scalar::F16, Scalar::F32)?);
        let operands = &NAMES[..operands(operation)];
        let parameters: Vec<_> = operands.iter().map(|operand| format!("f16 {operand}")).collect();
        let operands: Vec<_> = operands.iter().map(|operand| widen.join(&[(*operand).to_owned()])).collect();
        let value = narrow.join(&[format!("{wide}({})", operands.join(", "))]);
        Ok(format!("f16 {name}({}) {{ return {value}; }}", parameters.join(", ")))
    }
}
