//! Library functions on floating-point numbers.

use naga::Scalar;
use runtime_core::Result;

use crate::ir::declare::scalar_name;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

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

/// Name, the library functions that it calls, definition; see the templates for integers. `$S` is the suffix of a
/// literal.
type Template = (&'static str, &'static [&'static str], &'static str);

/// These replace C functions that host compilers would call, or that C lacks, by code that becomes vector
/// instructions. A NaN yields the other operand, as in WGSL.
const HOST: &[Template] = &[
    ("min", &[], "$T $N($T a, $T b) { return b < a || a != a ? b : a; }"),
    ("max", &[], "$T $N($T a, $T b) { return a < b || a != a ? b : a; }"),
    ("fma", &[], "$T $N($T a, $T b, $T c) { return a * b + c; }"),
    ("inverseSqrt", &["sqrt"], "$T $N($T a) { return 1.0$S / $T_sqrt(a); }"),
];

const ANY: &[Template] = &[
    ("clamp", &["min", "max"], "$T $N($T a, $T low, $T high) { return $T_min($T_max(a, low), high); }"),
    ("saturate", &["clamp"], "$T $N($T a) { return $T_clamp(a, 0.0$S, 1.0$S); }"),
    ("degrees", &[], "$T $N($T a) { return a * 57.29577951308232$S; }"),
    ("radians", &[], "$T $N($T a) { return a * 0.017453292519943295$S; }"),
    ("fract", &["floor"], "$T $N($T a) { return a - $T_floor(a); }"),
    ("mix", &[], "$T $N($T a, $T b, $T t) { return a * (1.0$S - t) + b * t; }"),
    ("sign", &[], "$T $N($T a) { return a > 0.0$S ? 1.0$S : a < 0.0$S ? -1.0$S : 0.0$S; }"),
    (
        "smoothstep",
        &["saturate"],
        "$T $N($T low, $T high, $T a)\n{\n    const $T t = $T_saturate((a - low) / (high - low));\n    \
         return t * t * (3.0$S - 2.0$S * t);\n}",
    ),
    ("step", &[], "$T $N($T edge, $T a) { return edge <= a ? 1.0$S : 0.0$S; }"),
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
            let host = if writer.dialect == Dialect::Host { HOST } else { &[] };
            if let Some((_, needs, text)) = host.iter().chain(ANY).find(|template| template.0 == operation) {
                for need in *needs {
                    writer.float(need, scalar)?;
                }
                return Ok(writer.expand(text, name, scalar));
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
