//! Values as text that naga evaluates to them.

use half::f16;

use super::constant::{Composite, Constant, Origin};
use super::evaluate::Scopes;
use super::value::{Kind, Number, Shape, Value};

/// The name of the structure that `frexp` or `modf` of a scalar type, or of vectors of it, returns.
pub(in crate::parse) fn result_name(function: &str, rows: usize, scalar: &str) -> String {
    match rows {
        1 => format!("{function}_{scalar}_result"),
        rows => format!("{function}_vec{rows}_{scalar}_result"),
    }
}

impl<'a> Scopes<'a> {
    /// Text for a constant; `None` if there is none.
    pub(super) fn text(&self, constant: &Constant<'a>) -> Option<String> {
        let composite = match constant {
            Constant::Value(value) => return self.text_of(value),
            Constant::Composite(composite) => composite,
        };
        let (name, values) = self.result(composite)?;
        let texts: Vec<_> = values.iter().map(|value| self.text_of(value)).collect::<Option<_>>()?;
        Some(format!("{name}({})", texts.join(", ")))
    }

    /// The name of the structure that `frexp` or `modf` returns, which is defined from now on, and its members.
    pub(super) fn result(&self, composite: &Composite<'a>) -> Option<(String, Vec<Value>)> {
        let Origin::BuiltIn(function) = composite.origin else { return None };
        let concrete = |element: &Constant<'a>| element.value()?.concrete();
        let values: Vec<_> = composite.elements.iter().map(concrete).collect::<Option<_>>()?;
        let name = result_name(function, values[0].shape.1, values[0].kind.name());
        let member = |(name, value): (&&str, &Value)| {
            Some(format!("{name}: {}", self.type_name(value.kind, value.shape)?))
        };
        let members: Vec<_> = composite.names.iter().zip(&values).map(member).collect::<Option<_>>()?;
        let definition = format!("struct {name} {{ {} }}", members.join(", "));
        self.definitions.borrow_mut().insert(definition);
        Some((name, values))
    }

    fn text_of(&self, value: &Value) -> Option<String> {
        let parts: Vec<_> = value.parts.iter().map(|part| text_of(*part, value.kind)).collect();
        let list = parts.join(", ");
        if value.is_scalar() {
            Some(list)
        } else {
            Some(format!("{}({list})", self.type_name(value.kind, value.shape)?))
        }
    }

    /// The name of a type, or of its constructor if it is abstract; `None` if declarations of the text hide it.
    pub(super) fn type_name(&self, kind: Kind, (columns, rows): Shape) -> Option<String> {
        let is_free = |name: &str| !self.declared.contains(name);
        let stem = match (columns, rows) {
            (1, 1) => return Some(kind.name().to_owned()).filter(|name| is_free(name)),
            (1, rows) => format!("vec{rows}"),
            (columns, rows) => format!("mat{columns}x{rows}"),
        };
        if is_free(&stem) && kind.is_abstract() {
            return Some(stem);
        }
        if is_free(&stem) && is_free(kind.name()) {
            return Some(format!("{stem}<{}>", kind.name()));
        }
        let letter = Some(suffix(kind)).filter(|suffix| suffix.len() == 1)?;
        Some(stem + letter).filter(|name| is_free(name))
    }
}

/// A number as a literal of its type.
fn text_of(number: Number, kind: Kind) -> String {
    let text = match (number, kind) {
        (Number::Int(value), Kind::Bool) => return (value != 0).to_string(),
        // The sign is an operator, and the literal before it would be too large.
        (Number::Int(value), _) if value < 0 && kind.bounds().is_some_and(|[least, _]| value == least) => {
            let letters = suffix(kind);
            return format!("({}{letters} - 1{letters})", value + 1);
        }
        (Number::Int(value), _) => format!("{value}{}", suffix(kind)),
        (Number::Float(value), Kind::F32) => format!("{:?}f", value as f32),
        (Number::Float(value), Kind::F16) => format!("{:?}h", f16::from_f64(value).to_f32()),
        (Number::Float(value), _) => format!("{value:?}{}", suffix(kind)),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}

/// The suffix of literals.
const fn suffix(kind: Kind) -> &'static str {
    match kind {
        Kind::I32 => "i",
        Kind::U32 => "u",
        Kind::I64 => "li",
        Kind::U64 => "lu",
        Kind::F16 => "h",
        Kind::F32 => "f",
        Kind::F64 => "lf",
        Kind::Bool | Kind::AbstractInt | Kind::AbstractFloat => "",
    }
}
