//! Library functions on integers: wrapping arithmetic and bit operations.

use naga::{Scalar, ScalarKind, Span};
use runtime_core::Result;

use crate::ir::declare::scalar_name;
use crate::print::c::writer::Writer;

/// The unsigned type of the same width.
pub(crate) const fn unsigned(scalar: Scalar) -> Scalar {
    Scalar { kind: ScalarKind::Uint, width: scalar.width }
}

impl Writer<'_> {
    /// The library function `operation` on an integer type, such as `i32_div`.
    pub(crate) fn integer(&mut self, operation: &str, scalar: Scalar) -> Result<String> {
        self.library(format!("{}_{operation}", scalar_name(scalar)), |writer, name| {
            writer.scalar(scalar)?;
            writer.scalar(unsigned(scalar))?;
            writer.scalar(Scalar::U32)?;
            let Some(template) = writer.template(operation, scalar) else {
                let what = format!("{operation} of {}", scalar_name(scalar));
                return Err(writer.unsupported(&what, Span::UNDEFINED));
            };
            for need in &template.needs {
                writer.integer(need, scalar)?;
            }
            Ok(writer.expand(template.text, name, scalar))
        })
    }

    /// The least value of a signed type, for which C has no literal.
    pub(crate) fn least(&self, scalar: Scalar) -> String {
        match scalar.width {
            8 => format!("(-9223372036854775807{} - 1)", self.dialect.long_suffix()),
            _ => "(-2147483647 - 1)".to_owned(),
        }
    }
}
