//! Conversions between scalars, by value and by bits, and literals.

use naga::proc::min_max_float_representable_by;
use naga::{Literal, Scalar, ScalarKind, Span};
use runtime_core::Result;

use crate::ir::declare::scalar_name;
use crate::print::c::form::{Form, level};
use crate::print::c::writer::Writer;
use crate::program::Dialect;

impl Writer<'_> {
    /// Converts a value of one scalar type to another.
    pub(crate) fn conversion(&mut self, from: Scalar, to: Scalar) -> Result<Form> {
        if from == to {
            return Ok(Form::Same);
        }
        let to_name = self.scalar(to)?;
        self.scalar(from)?;
        let half = self.dialect == Dialect::Cuda && (from == Scalar::F16 || to == Scalar::F16);
        match (from.kind, to.kind) {
            (_, ScalarKind::Bool) => self.truth(from),
            (ScalarKind::Float, ScalarKind::Sint | ScalarKind::Uint) => self.saturating(from, to),
            _ if half => self.half_conversion(from, to),
            _ => Ok(Form::cast(to_name)),
        }
    }

    fn truth(&mut self, from: Scalar) -> Result<Form> {
        let zero = self.literal_of(from, 0)?.0;
        let type_name = scalar_name(from);
        let name = format!("bool_from_{type_name}");
        let define =
            |_: &mut Self, name: &str| Ok(format!("bool {name}({type_name} a) {{ return a != {zero}; }}"));
        self.library(name, define).map(Form::call)
    }

    /// Truncates and saturates; a NaN becomes zero.
    fn saturating(&mut self, from: Scalar, to: Scalar) -> Result<Form> {
        let (from_name, to_name) = (scalar_name(from), scalar_name(to));
        let name = format!("{to_name}_from_{from_name}");
        let through = if from.width == 2 { Scalar::F32 } else { from };
        let widen = self.conversion(from, through)?;
        let (low, high) = min_max_float_representable_by(from, to);
        let (low, high) = (self.wide_literal(low)?, self.wide_literal(high)?);
        let wide = self.scalar(through)?;
        let define = |_: &mut Self, name: &str| {
            let value = widen.join(&["a".to_owned()]);
            Ok(format!(
                "{to_name} {name}({from_name} a)\n{{\n    {wide} b = {value};\n    b = b != b ? 0 : b;\n    \
                 b = b < {low} ? {low} : b;\n    b = b > {high} ? {high} : b;\n    return ({to_name})b;\n}}"
            ))
        };
        self.library(name, define).map(Form::call)
    }

    /// A literal of the type in which saturation is computed.
    fn wide_literal(&mut self, literal: Literal) -> Result<String> {
        let literal = match literal {
            Literal::F16(value) => Literal::F32(value.to_f32()),
            other => other,
        };
        Ok(self.literal(literal)?.0)
    }

    /// CUDA's half type has no casts of its own.
    fn half_conversion(&mut self, from: Scalar, to: Scalar) -> Result<Form> {
        if (from, to) == (Scalar::F16, Scalar::F32) || (from, to) == (Scalar::F32, Scalar::F16) {
            return Ok(Form::Call(format!("{}_from_{}", scalar_name(to), scalar_name(from))));
        }
        let (from_name, to_name) = (scalar_name(from), scalar_name(to));
        self.scalar(Scalar::F32)?;
        let value = if to == Scalar::F16 { "f16_from_f32((float)a)" } else { "f32_from_f16(a)" };
        let define =
            |_: &mut Self, name: &str| Ok(format!("{to_name} {name}({from_name} a) {{ return {value}; }}"));
        self.library(format!("{to_name}_from_{from_name}"), define).map(Form::call)
    }

    /// Reinterprets the bits of a value as another type of the same width.
    pub(crate) fn bitcast(&mut self, from: Scalar, to: Scalar) -> Result<Form> {
        if from == to {
            return Ok(Form::Same);
        }
        let (from_name, to_name) = (self.scalar(from)?, self.scalar(to)?);
        if from.kind != ScalarKind::Float && to.kind != ScalarKind::Float {
            return Ok(Form::cast(to_name));
        }
        let define = |writer: &mut Self, name: &str| {
            let body = match writer.dialect {
                Dialect::OpenCl => format!("return as_{}(a);", as_name(to)),
                Dialect::Cuda => format!("return {}(a);", cuda_bits(from, to)),
                Dialect::Host => format!("{to_name} b; __builtin_memcpy(&b, &a, sizeof b); return b;"),
            };
            Ok(format!("{to_name} {name}({from_name} a) {{ {body} }}"))
        };
        self.library(format!("{to_name}_bitcast_{from_name}"), define).map(Form::call)
    }

    /// A literal, with its precedence.
    ///
    /// # Errors
    /// `Unsupported` for types that no dialect has.
    pub(crate) fn literal(&mut self, literal: Literal) -> Result<(String, u8)> {
        self.scalar(literal.scalar())?;
        let long = self.dialect.long_suffix();
        let text = match literal {
            // Without a header C has no boolean literals.
            Literal::Bool(value) if self.dialect == Dialect::Host => u8::from(value).to_string(),
            Literal::Bool(value) => value.to_string(),
            Literal::I32(i32::MIN) => self.least(Scalar::I32),
            Literal::I64(i64::MIN) => self.least(Scalar::I64),
            Literal::I32(value) => value.to_string(),
            Literal::U32(value) => format!("{value}u"),
            Literal::I64(value) => format!("{value}{long}"),
            Literal::U64(value) => format!("{value}U{long}"),
            Literal::F32(value) if value.is_finite() => format!("{value:?}f"),
            Literal::F64(value) if value.is_finite() => format!("{value:?}"),
            Literal::F16(value) if self.dialect == Dialect::Cuda => {
                format!("f16{{{:#06x}}}", value.to_bits())
            }
            Literal::F16(value) => return Ok((format!("(f16){:?}f", value.to_f32()), level::UNARY)),
            _ => return Err(self.unsupported("this kind of literal", Span::UNDEFINED)),
        };
        // A sign binds like a prefix operator, and must not be adjacent to another one.
        let level = if text.starts_with('-') { level::MULTIPLY } else { level::PRIMARY };
        Ok((text, level))
    }

    /// A small number as a literal of a scalar type.
    pub(crate) fn literal_of(&mut self, scalar: Scalar, value: u8) -> Result<(String, u8)> {
        match Literal::new(value, scalar) {
            Some(literal) => self.literal(literal),
            None if scalar == Scalar::BOOL => self.literal(Literal::Bool(value != 0)),
            None => Err(self.unsupported("this kind of literal", Span::UNDEFINED)),
        }
    }
}

const fn as_name(scalar: Scalar) -> &'static str {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Sint, 8) => "long",
        (ScalarKind::Uint, 8) => "ulong",
        (ScalarKind::Float, 8) => "double",
        (ScalarKind::Sint, _) => "int",
        (ScalarKind::Uint, _) => "uint",
        _ => "float",
    }
}

const fn cuda_bits(from: Scalar, to: Scalar) -> &'static str {
    match (from.kind, to.kind, to.width) {
        (_, ScalarKind::Sint, 4) => "__float_as_int",
        (_, ScalarKind::Uint, 4) => "__float_as_uint",
        (ScalarKind::Sint, _, 4) => "__int_as_float",
        (_, _, 4) => "__uint_as_float",
        (_, ScalarKind::Float, _) => "__longlong_as_double",
        _ => "__double_as_longlong",
    }
}
