//! Constant values: zeros, literals, and initialisers at file scope.

use std::fmt::Write as _;

use naga::proc::TypeResolution;
use naga::{Constant, Expression, Handle, Literal, Span, Type, TypeInner, VectorSize};
use runtime_core::Result;

use super::form::level;
use super::types::Slot;
use super::writer::Writer;
use crate::ir::Value;
use crate::program::Dialect;

/// Maximum number of values in a constant.
const MAX_PARTS: u32 = 1 << 20;

impl Writer<'_> {
    /// The zero value of a type, with its precedence.
    pub(crate) fn zero(&mut self, ty: &TypeResolution, span: Span) -> Result<(String, u8)> {
        if let TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) = *ty.inner_with(&self.module().types) {
            return match Literal::zero(scalar) {
                Some(zero) => self.literal(zero),
                None => Err(self.unsupported("this zero value", span)),
            };
        }
        let name = self.resolved_name(ty, span)?;
        Ok((self.dialect.zero(&name), level::PRIMARY))
    }

    /// The name of a constant, which is defined on first use.
    pub(crate) fn constant(&mut self, constant: Handle<Constant>) -> Result<String> {
        let Constant { ty, init, .. } = self.module().constants[constant];
        let name = self.names.constant(constant).to_owned();
        if self.first(&name) {
            let scalar = matches!(self.module().types[ty].inner, TypeInner::Scalar(_));
            let mut parts = MAX_PARTS;
            if !self.is_within(init, &mut parts) {
                let span = self.module().constants.get_span(constant);
                return Err(self.unsupported(&format!("a constant of more than {MAX_PARTS} values"), span));
            }
            let type_name = self.type_name(ty)?;
            let value = self.initialiser(init)?;
            let before = self.dialect.constant(scalar);
            let _ = writeln!(self.constants, "{before}{type_name} {name} = {value};");
        }
        Ok(name)
    }

    /// Counts the values of a constant down from `left`; `false` if it has more. A few lines can expand to millions.
    fn is_within(&self, expression: Value, left: &mut u32) -> bool {
        let Some(less) = left.checked_sub(1) else { return false };
        *left = less;
        let module = self.module();
        match &module.global_expressions[expression] {
            Expression::Constant(constant) => self.is_within(module.constants[*constant].init, left),
            Expression::Compose { components, .. } => {
                components.iter().all(|&component| self.is_within(component, left))
            }
            _ => true,
        }
    }

    /// A constant expression as an initialiser: nested braces without types.
    pub(crate) fn initialiser(&mut self, expression: Value) -> Result<String> {
        let module = self.module();
        match &module.global_expressions[expression] {
            Expression::Literal(literal) => Ok(self.literal(*literal)?.0),
            Expression::Constant(constant) => self.initialiser(module.constants[*constant].init),
            Expression::ZeroValue(ty) => Ok(match module.types[*ty].inner {
                TypeInner::Scalar(_) => self.zero(&TypeResolution::Handle(*ty), Span::UNDEFINED)?.0,
                TypeInner::Vector { size, scalar } => {
                    let zero = self.literal_of(scalar, 0)?.0;
                    format!("{{{}}}", vec![zero; size as usize].join(", "))
                }
                _ if self.dialect == Dialect::Cuda => "{}".to_owned(),
                _ => "{0}".to_owned(),
            }),
            Expression::Splat { size, value } => {
                let value = self.initialiser(*value)?;
                Ok(format!("{{{}}}", vec![value; *size as usize].join(", ")))
            }
            Expression::Compose { ty, components } => {
                let mut values = Vec::with_capacity(components.len());
                for component in components {
                    let value = self.initialiser(*component)?;
                    let nested = matches!(module.types[*ty].inner, TypeInner::Vector { .. });
                    // Vectors inside a vector constructor contribute their components.
                    values.push(match value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
                        Some(inside) if nested => inside.to_owned(),
                        _ => value,
                    });
                }
                self.composed(*ty, values)
            }
            _ => {
                Err(self.unsupported("this kind of constant", module.global_expressions.get_span(expression)))
            }
        }
    }

    /// The parts of a composite in braces, including the padding that the C type has.
    pub(crate) fn composed(&mut self, ty: Handle<Type>, mut values: Vec<String>) -> Result<String> {
        let module = self.module();
        let wrap =
            |values: &mut [String]| values.iter_mut().for_each(|value| *value = format!("{{{value}}}"));
        Ok(match &module.types[ty].inner {
            TypeInner::Struct { members, span } => {
                let nothing = if self.dialect == Dialect::Cuda { "{}" } else { "{0}" };
                let slots = self.slots(members, *span);
                let texts = slots.iter().map(|slot| match slot {
                    Slot::Member(index) => values.get(*index).map_or(nothing, String::as_str),
                    Slot::Padding(_) => nothing,
                });
                format!("{{{}}}", texts.collect::<Vec<_>>().join(", "))
            }
            TypeInner::Array { base, stride, .. } => {
                if self.is_padded(*base, *stride) {
                    wrap(&mut values);
                }
                format!("{{{{{}}}}}", values.join(", "))
            }
            TypeInner::Matrix { rows, .. } => {
                if *rows == VectorSize::Tri {
                    wrap(&mut values);
                }
                format!("{{{{{}}}}}", values.join(", "))
            }
            _ => format!("{{{}}}", values.join(", ")),
        })
    }
}
