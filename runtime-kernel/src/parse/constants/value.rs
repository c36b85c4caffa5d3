//! Scalars, vectors and matrices as values.

use half::f16;
use naga::{Scalar, ScalarKind};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    AbstractInt,
    AbstractFloat,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Kind {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "i32" => Self::I32,
            "u32" => Self::U32,
            "i64" => Self::I64,
            "u64" => Self::U64,
            "f16" => Self::F16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return None,
        })
    }

    pub(super) fn of_scalar(scalar: Scalar) -> Option<Self> {
        Some(match (scalar.kind, scalar.width) {
            (ScalarKind::Bool, _) => Self::Bool,
            (ScalarKind::Sint, 4) => Self::I32,
            (ScalarKind::Uint, 4) => Self::U32,
            (ScalarKind::Sint, 8) => Self::I64,
            (ScalarKind::Uint, 8) => Self::U64,
            (ScalarKind::Float, 2) => Self::F16,
            (ScalarKind::Float, 4) => Self::F32,
            (ScalarKind::Float, 8) => Self::F64,
            _ => return None,
        })
    }

    /// The type with a suffix of literals, whose single letters are those of vectors, too.
    pub(super) fn of_suffix(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "i" => Self::I32,
            "u" => Self::U32,
            "li" => Self::I64,
            "lu" => Self::U64,
            "h" => Self::F16,
            "f" => Self::F32,
            "lf" => Self::F64,
            _ => return None,
        })
    }

    pub(super) const fn is_float(self) -> bool {
        matches!(self, Self::AbstractFloat | Self::F16 | Self::F32 | Self::F64)
    }

    pub(super) const fn is_integer(self) -> bool {
        self.bounds().is_some()
    }

    pub(super) const fn is_abstract(self) -> bool {
        matches!(self, Self::AbstractInt | Self::AbstractFloat)
    }

    /// The least and the largest integer of the type.
    pub(super) const fn bounds(self) -> Option<[i128; 2]> {
        match self {
            Self::AbstractInt | Self::I64 => Some([i64::MIN as i128, i64::MAX as i128]),
            Self::I32 => Some([i32::MIN as i128, i32::MAX as i128]),
            Self::U32 => Some([0, u32::MAX as i128]),
            Self::U64 => Some([0, u64::MAX as i128]),
            _ => None,
        }
    }

    /// Bits of a number.
    pub(super) const fn width(self) -> u32 {
        match self {
            Self::F16 => 16,
            Self::AbstractInt | Self::AbstractFloat | Self::I64 | Self::U64 | Self::F64 => 64,
            _ => 32,
        }
    }

    /// The type that two operands are converted to.
    pub(super) fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            _ if self == other => Some(self),
            (Self::AbstractInt, to) | (to, Self::AbstractInt) if to != Self::Bool => Some(to),
            (Self::AbstractFloat, to) | (to, Self::AbstractFloat) if to.is_float() => Some(to),
            _ => None,
        }
    }

    /// The type of a value that is used as a floating-point number.
    pub(super) const fn as_float(self) -> Option<Self> {
        match self {
            Self::AbstractInt => Some(Self::AbstractFloat),
            kind if kind.is_float() => Some(kind),
            _ => None,
        }
    }

    /// The type without abstract ones.
    pub(super) const fn concrete(self) -> Self {
        match self {
            Self::AbstractInt => Self::I32,
            Self::AbstractFloat => Self::F32,
            kind => kind,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::AbstractInt | Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::AbstractFloat | Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// A number: integers and booleans as integers, which hold those of all types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(super) const fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    pub(super) const fn int(self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// The number in a type, rounded; `None` if the type does not have it.
    pub(super) fn fit(self, kind: Kind) -> Option<Self> {
        match (self, kind) {
            (Self::Int(value), Kind::F32) => Some(Self::Float(f64::from(value as f32))),
            (Self::Int(value), Kind::Bool) => (0..=1).contains(&value).then_some(self),
            (Self::Int(value), _) if !kind.is_float() => {
                let [least, most] = kind.bounds()?;
                (least..=most).contains(&value).then_some(self)
            }
            (Self::Float(_), _) if !kind.is_float() => None,
            _ => rounded(self.float(), kind).map(Self::Float),
        }
    }
}

/// A number rounded to a floating-point type; `None` if it is too large.
pub(super) fn rounded(value: f64, kind: Kind) -> Option<f64> {
    let value = match kind {
        Kind::F32 => f64::from(value as f32),
        // Also what would be rounded to the largest one.
        Kind::F16 if value.abs() > f16::MAX.to_f64() => return None,
        Kind::F16 => f16::from_f64(value).to_f64(),
        _ => value,
    };
    value.is_finite().then_some(value)
}

/// The integer of a type with the lowest bits of a number.
pub(super) const fn wrapped(value: i128, kind: Kind) -> i128 {
    match kind {
        Kind::I32 => value as i32 as i128,
        Kind::U32 => value as u32 as i128,
        Kind::I64 => value as i64 as i128,
        Kind::U64 => value as u64 as i128,
        _ => value,
    }
}

/// Columns and rows: a scalar is 1 × 1, a vector 1 × n.
pub(super) type Shape = (usize, usize);

/// A scalar, a vector or a matrix.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::parse) struct Value {
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    /// Column by column.
    pub(super) parts: Vec<Number>,
}

impl Value {
    /// A value of parts that are rounded to the type; `None` if the type does not have one of them.
    pub(super) fn new(kind: Kind, shape: Shape, parts: impl IntoIterator<Item = Number>) -> Option<Self> {
        Self::of_parts(kind, shape, parts.into_iter().map(Some))
    }

    /// The same; `None` also if a part has no value.
    pub(super) fn of_parts(
        kind: Kind,
        shape: Shape,
        parts: impl IntoIterator<Item = Option<Number>>,
    ) -> Option<Self> {
        let parts: Option<Vec<_>> = parts.into_iter().map(|part| part?.fit(kind)).collect();
        let parts = parts.filter(|parts| parts.len() == shape.0 * shape.1)?;
        Some(Self { kind, shape, parts })
    }

    /// A constant of a module, by its columns and rows.
    pub(in crate::parse) fn of_components(scalar: Scalar, shape: Shape, components: &[f64]) -> Option<Self> {
        // `f64` does not hold all integers of 64 bits.
        let kind = Kind::of_scalar(scalar).filter(|kind| kind.is_float() || kind.width() < 64)?;
        let part =
            |part: &f64| if kind.is_float() { Number::Float(*part) } else { Number::Int(*part as i128) };
        Self::new(kind, shape, components.iter().map(part))
    }

    pub(super) fn scalar(kind: Kind, number: Number) -> Option<Self> {
        Self::new(kind, (1, 1), [number])
    }

    pub(super) fn bool(value: bool) -> Self {
        Self { kind: Kind::Bool, shape: (1, 1), parts: vec![Number::Int(value.into())] }
    }

    pub(super) fn zero(kind: Kind, shape: Shape) -> Option<Self> {
        Self::new(kind, shape, vec![Number::Int(0); shape.0 * shape.1])
    }

    pub(super) fn is_scalar(&self) -> bool {
        self.shape == (1, 1)
    }

    /// The parts as floating-point numbers.
    pub(super) fn floats(&self) -> Vec<f64> {
        self.parts.iter().map(|part| part.float()).collect()
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        (self.kind == Kind::Bool && self.is_scalar()).then(|| self.parts[0] != Number::Int(0))
    }

    pub(super) fn as_int(&self) -> Option<i128> {
        if self.is_scalar() && self.kind.is_integer() { self.parts[0].int() } else { None }
    }

    /// A value of the same type with one number in all parts.
    pub(super) fn filled(&self, number: f64) -> Self {
        let number = if self.kind.is_float() { Number::Float(number) } else { Number::Int(number as i128) };
        Self { kind: self.kind, shape: self.shape, parts: vec![number; self.parts.len()] }
    }

    /// The value after an automatic conversion.
    pub(super) fn automatic(&self, kind: Kind) -> Option<Self> {
        if self.kind.common(kind)? != kind {
            return None;
        }
        Self::new(kind, self.shape, self.parts.iter().copied())
    }

    /// The value as a concrete type.
    pub(super) fn concrete(&self) -> Option<Self> {
        self.automatic(self.kind.concrete())
    }

    /// The value after an explicit conversion such as `u32(x)`.
    pub(super) fn converted(&self, kind: Kind) -> Option<Self> {
        Self::of_parts(kind, self.shape, self.parts.iter().map(|part| self.converted_part(*part, kind)))
    }

    /// Real numbers out of range become the nearest one, integers of a type wrap, and other integers are an error.
    fn converted_part(&self, part: Number, kind: Kind) -> Option<Number> {
        Some(match (part, kind.bounds()) {
            (part, _) if kind == Kind::Bool => Number::Int(i128::from(part.float() != 0.0)),
            (Number::Float(value), Some([least, most])) => {
                Number::Int((value as i128).clamp(least, largest(most, self.kind)))
            }
            (Number::Int(value), Some(_)) if self.kind != Kind::AbstractInt => {
                Number::Int(wrapped(value, kind))
            }
            (part, _) => part,
        })
    }
}

/// The largest number of a floating-point type that is not above an integer.
fn largest(most: i128, kind: Kind) -> i128 {
    let is_wide = matches!(kind, Kind::F64 | Kind::AbstractFloat);
    let nearest = if is_wide { most as f64 } else { f64::from(most as f32) };
    let below = || if is_wide { nearest.next_down() } else { (nearest as f32).next_down().into() };
    if nearest as i128 > most { below() as i128 } else { nearest as i128 }
}
