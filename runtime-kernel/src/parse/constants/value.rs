//! Values of constants: scalars, vectors and matrices, and the structures that `modf` and `frexp` return.

use half::f16;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    AbstractInt,
    AbstractFloat,
    I32,
    U32,
    F16,
    F32,
}

impl Kind {
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "i32" | "i" => Self::I32,
            "u32" | "u" => Self::U32,
            "f16" | "h" => Self::F16,
            "f32" | "f" => Self::F32,
            _ => return None,
        })
    }

    pub(super) const fn is_float(self) -> bool {
        matches!(self, Self::AbstractFloat | Self::F16 | Self::F32)
    }

    pub(super) const fn is_integer(self) -> bool {
        matches!(self, Self::AbstractInt | Self::I32 | Self::U32)
    }

    const fn is_abstract(self) -> bool {
        matches!(self, Self::AbstractInt | Self::AbstractFloat)
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

    const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F16 => "f16",
            _ => "f32",
        }
    }
}

/// A number: integers and booleans as integers, which hold those of all types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(super) const fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    pub(super) const fn int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// The number in a type, rounded; `None` if the type does not have it.
    pub(super) fn fit(self, kind: Kind) -> Option<Self> {
        match (self, kind) {
            (Self::Int(value), Kind::I32) => i32::try_from(value).ok().map(|_| self),
            (Self::Int(value), Kind::U32) => u32::try_from(value).ok().map(|_| self),
            (Self::Int(_), Kind::AbstractInt | Kind::Bool) => Some(self),
            (Self::Float(_), kind) if !kind.is_float() => None,
            (_, kind) => rounded(self.float(), kind).map(Self::Float),
        }
    }
}

/// A number rounded to a floating-point type; `None` if it is too large.
pub(super) fn rounded(value: f64, kind: Kind) -> Option<f64> {
    let value = match kind {
        Kind::F32 => f64::from(value as f32),
        Kind::F16 => f16::from_f64(value).to_f64(),
        _ => value,
    };
    value.is_finite().then_some(value)
}

/// Columns and rows: a scalar is 1 × 1, a vector 1 × n.
pub(super) type Shape = (usize, usize);

/// A value of a constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    /// Column by column.
    pub(super) parts: Vec<Number>,
    /// The second member of a structure, with the names of both.
    pub(super) second: Option<([&'static str; 2], Box<Self>)>,
}

impl Value {
    /// A value of parts that are rounded to the type; `None` if the type does not have one of them.
    pub(super) fn new(kind: Kind, shape: Shape, parts: impl IntoIterator<Item = Number>) -> Option<Self> {
        let parts: Option<Vec<_>> = parts.into_iter().map(|part| part.fit(kind)).collect();
        let parts = parts.filter(|parts| parts.len() == shape.0 * shape.1)?;
        Some(Self { kind, shape, parts, second: None })
    }

    pub(super) fn scalar(kind: Kind, number: Number) -> Option<Self> {
        Self::new(kind, (1, 1), [number])
    }

    pub(super) fn bool(value: bool) -> Self {
        Self { kind: Kind::Bool, shape: (1, 1), parts: vec![Number::Int(value.into())], second: None }
    }

    pub(super) fn is_scalar(&self) -> bool {
        self.shape == (1, 1) && self.second.is_none()
    }

    /// The parts as floating-point numbers.
    pub(super) fn floats(&self) -> Vec<f64> {
        self.parts.iter().map(|part| part.float()).collect()
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        (self.kind == Kind::Bool && self.is_scalar()).then(|| self.parts[0] != Number::Int(0))
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        if self.is_scalar() && self.kind.is_integer() { self.parts[0].int() } else { None }
    }

    /// The value after an automatic conversion.
    pub(super) fn automatic(&self, kind: Kind) -> Option<Self> {
        if self.kind.common(kind)? != kind || self.second.is_some() {
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
        let convert = |part: &Number| -> Option<Number> {
            Some(match (kind, *part) {
                (Kind::Bool, part) => Number::Int(i64::from(part.float() != 0.0)),
                (Kind::I32 | Kind::U32, Number::Float(value)) => {
                    if self.kind == Kind::AbstractFloat {
                        // An abstract number out of range is an error.
                        return Number::Int(value.trunc() as i64).fit(kind);
                    }
                    let [low, high] = match kind {
                        Kind::I32 => [f64::from(i32::MIN), 2_147_483_520.0],
                        _ => [0.0, 4_294_967_040.0],
                    };
                    Number::Int(value.trunc().clamp(low, high) as i64)
                }
                (Kind::I32, Number::Int(value)) if self.kind == Kind::U32 => {
                    Number::Int(i64::from(value as u32 as i32))
                }
                (Kind::U32, Number::Int(value)) if self.kind == Kind::I32 => {
                    Number::Int(i64::from(value as i32 as u32))
                }
                (_, part) => part,
            })
        };
        let parts: Option<Vec<_>> = self.parts.iter().map(convert).collect();
        if self.second.is_some() { None } else { Self::new(kind, self.shape, parts?) }
    }

    /// The value of a literal.
    pub(super) fn of_literal(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        if let Some(hex) = lower.strip_prefix("0x") {
            if hex.contains(['.', 'p']) {
                return None;
            }
            let (digits, kind) = match hex.strip_suffix(['i', 'u']) {
                Some(digits) => (digits, if hex.ends_with('i') { Kind::I32 } else { Kind::U32 }),
                None => (hex, Kind::AbstractInt),
            };
            return Self::scalar(kind, Number::Int(i64::from_str_radix(digits, 16).ok()?));
        }
        let suffix = lower.chars().last().and_then(|last| Kind::of_name(last.encode_utf8(&mut [0; 4])));
        let digits = if suffix.is_some() { &lower[..lower.len() - 1] } else { &lower[..] };
        let is_float = digits.contains(['.', 'e']);
        let kind = suffix.unwrap_or(if is_float { Kind::AbstractFloat } else { Kind::AbstractInt });
        match kind.is_float() {
            // Parsed as the type: a number that is rounded twice may be another.
            true if kind == Kind::F32 => {
                Self::scalar(kind, Number::Float(digits.parse::<f32>().ok()?.into()))
            }
            true => Self::scalar(kind, Number::Float(digits.parse().ok()?)),
            false => Self::scalar(kind, Number::Int(digits.parse().ok()?)),
        }
    }

    /// The value as text that naga evaluates to it; `None` for a structure.
    pub(super) fn text(&self) -> Option<String> {
        let parts: Vec<_> = self.parts.iter().map(|part| text_of(*part, self.kind)).collect();
        let list = parts.join(", ");
        let element = if self.kind.is_abstract() { String::new() } else { format!("<{}>", self.kind.name()) };
        match (self.shape, &self.second) {
            (_, Some(_)) => None,
            ((1, 1), None) => Some(list),
            ((1, rows), None) => Some(format!("vec{rows}{element}({list})")),
            ((columns, rows), None) => Some(format!("mat{columns}x{rows}{element}({list})")),
        }
    }
}

/// A number as a literal of its type.
fn text_of(number: Number, kind: Kind) -> String {
    let text = match (number, kind) {
        (Number::Int(value), Kind::Bool) => return (value != 0).to_string(),
        (Number::Int(value), Kind::I32) if value == i64::from(i32::MIN) => return format!("i32({value})"),
        (Number::Int(i64::MIN), _) => return "(-9223372036854775807 - 1)".to_owned(),
        (Number::Int(value), Kind::I32) => format!("{value}i"),
        (Number::Int(value), Kind::U32) => format!("{value}u"),
        (Number::Int(value), _) => value.to_string(),
        (Number::Float(value), Kind::F32) => format!("{:?}f", value as f32),
        (Number::Float(value), Kind::F16) => format!("{:?}h", f16::from_f64(value).to_f32()),
        (Number::Float(value), _) => format!("{value:?}"),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}
