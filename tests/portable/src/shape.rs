//! Scalar and vector types, and their memory layout.

use crate::scalar::Kind;

/// A scalar or vector type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The component type.
    pub kind: Kind,
    /// The number of components; 1 for a scalar.
    pub width: usize,
}

impl Shape {
    /// Parses a type: `i32`, `vec3<f32>`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let Some(rest) = name.strip_prefix("vec") else {
            return Some(Self { kind: Kind::parse(name)?, width: 1 });
        };
        let (width, kind) = rest.strip_suffix('>')?.split_once('<')?;
        Some(Self { kind: Kind::parse(kind)?, width: width.parse().ok()? })
    }

    /// The name in WGSL.
    #[must_use]
    pub fn name(self) -> String {
        self.of(self.kind.name())
    }

    /// The name of the same shape with another component type.
    fn of(self, kind: &str) -> String {
        if self.width == 1 { kind.to_owned() } else { format!("vec{}<{kind}>", self.width) }
    }

    /// The name of the type that represents it in memory.
    #[must_use]
    pub fn stored(self) -> String {
        if self.kind == Kind::Bool { self.of("u32") } else { self.name() }
    }

    /// The array stride in bytes.
    #[must_use]
    pub const fn stride(self) -> usize {
        let places = if self.width == 3 { 4 } else { self.width };
        places * self.kind.bytes()
    }

    /// Converts an expression of the memory type to this type.
    #[must_use]
    pub fn from_memory(self, stored: &str) -> String {
        match self.kind {
            Kind::Bool => format!("({stored} != {}(0u))", self.stored()),
            _ => stored.to_owned(),
        }
    }

    /// Converts `expression` to the memory type.
    #[must_use]
    pub fn to_memory(self, expression: &str) -> String {
        match self.kind {
            Kind::Bool => {
                format!("select({0}(0u), {0}(1u), {expression})", self.stored())
            }
            _ => expression.to_owned(),
        }
    }

    /// Parses the components of a value: `7`, or `(1, 2, 3)`.
    #[must_use]
    pub fn components(self, text: &str) -> Option<Vec<&str>> {
        let text = text.trim();
        if self.width == 1 {
            return Some(vec![text]);
        }
        let inner = text.strip_prefix('(')?.strip_suffix(')')?;
        let parts: Vec<_> = inner.split(',').map(str::trim).collect();
        (parts.len() == self.width).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_of_three_has_the_stride_of_four() {
        let shape = Shape::parse("vec3<f16>").unwrap();
        assert_eq!((shape.width, shape.stride(), shape.name().as_str()), (3, 8, "vec3<f16>"));
        assert_eq!(Shape::parse("i64").unwrap().stride(), 8);
        assert_eq!(shape.components("(1, -2,3)"), Some(vec!["1", "-2", "3"]));
        assert_eq!(shape.components("(1, 2)"), None);
    }
}
