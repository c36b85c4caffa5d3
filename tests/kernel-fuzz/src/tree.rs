//! Syntax trees of kernels: text whose statements and expressions can be replaced, which is all that generating and
//! shrinking need.

use std::fmt;
use std::rc::Rc;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in WGSL")]
pub enum Scalar {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A scalar.
    Scalar(Scalar),
    /// Components, scalar.
    Vector(usize, Scalar),
    /// Columns, rows.
    Matrix(usize, usize, Scalar),
    /// Element type and length.
    Array(Box<Self>, usize),
    /// A structure.
    Struct(Rc<Struct>),
    /// The type of a call without a value.
    Nothing,
}

/// A structure.
#[derive(Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Names and types of its members.
    pub members: Vec<(String, Type)>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Its type.
    pub ty: Type,
    /// Its text and subexpressions.
    pub parts: Vec<Part>,
    /// Whether a compiler may evaluate it, so that WGSL's rules for constant expressions apply.
    pub constant: bool,
    /// Whether the shrinker may replace it with a value; false for references to memory.
    pub replaceable: bool,
}

/// A part of a statement or an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Fixed text.
    Text(String),
    /// A replaceable expression.
    Expression(Expression),
    /// A block of statements.
    Block(Vec<Statement>),
}

/// A statement, or a declaration at module scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement(pub Vec<Part>);

impl Scalar {
    /// Its name in WGSL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F16 => "f16",
            Self::F32 => "f32",
        }
    }

    /// The suffix of its literals.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Bool => "",
            Self::I32 => "i",
            Self::U32 => "u",
            Self::I64 => "li",
            Self::U64 => "lu",
            Self::F16 => "h",
            Self::F32 => "f",
        }
    }

    /// Whether it is a float.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }

    /// Whether it is an integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Whether it is a signed integer.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I32 | Self::I64)
    }

    /// Its width in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::F16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 => 64,
        }
    }

    /// A small number as a literal.
    #[must_use]
    pub fn literal(self, value: u32) -> String {
        match self {
            Self::Bool => (value != 0).to_string(),
            _ => format!("{value}{}", self.suffix()),
        }
    }
}

impl Type {
    /// The scalar type of a scalar, vector or matrix.
    #[must_use]
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) | Self::Vector(_, scalar) | Self::Matrix(_, _, scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// The type and number of its elements; `None` for scalars and structures.
    #[must_use]
    pub fn element(&self) -> Option<(Self, usize)> {
        match self {
            Self::Vector(count, scalar) => Some((Self::Scalar(*scalar), *count)),
            Self::Matrix(columns, rows, scalar) => Some((Self::Vector(*rows, *scalar), *columns)),
            Self::Array(element, count) => Some(((**element).clone(), *count)),
            _ => None,
        }
    }

    /// Whether the type is or contains `part`.
    #[must_use]
    pub fn has(&self, part: &Self) -> bool {
        self == part
            || self.element().is_some_and(|(element, _)| element.has(part))
            || matches!(self, Self::Struct(of) if of.members.iter().any(|(_, ty)| ty.has(part)))
    }

    /// Whether a pointer to a variable of this type, or to a part of it, has the target type `part`. There are no
    /// pointers to components of vectors.
    #[must_use]
    pub fn has_place(&self, part: &Self) -> bool {
        self == part
            || match self {
                Self::Struct(of) => of.members.iter().any(|(_, ty)| ty.has_place(part)),
                Self::Array(..) | Self::Matrix(..) => {
                    self.element().is_some_and(|(element, _)| element.has_place(part))
                }
                _ => false,
            }
    }

    /// Whether any of its scalars satisfies `test`.
    #[must_use]
    pub fn any(&self, test: fn(Scalar) -> bool) -> bool {
        match self {
            Self::Struct(of) => of.members.iter().any(|(_, ty)| ty.any(test)),
            Self::Array(element, _) => element.any(test),
            _ => self.scalar().is_some_and(test),
        }
    }

    /// The number of its scalars.
    #[must_use]
    pub fn width(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Struct(of) => of.members.iter().map(|(_, ty)| ty.width()).sum(),
            Self::Nothing => 0,
            _ => self.element().map_or(0, |(element, count)| element.width() * count),
        }
    }

    /// The text of its zero value.
    #[must_use]
    pub fn zero(&self) -> String {
        match self {
            Self::Scalar(scalar) => scalar.literal(0),
            _ => format!("{self}()"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => f.write_str(scalar.name()),
            Self::Vector(count, scalar) => write!(f, "vec{count}<{}>", scalar.name()),
            Self::Matrix(columns, rows, scalar) => write!(f, "mat{columns}x{rows}<{}>", scalar.name()),
            Self::Array(element, count) => write!(f, "array<{element}, {count}>"),
            Self::Struct(of) => f.write_str(&of.name),
            Self::Nothing => Ok(()),
        }
    }
}

impl Expression {
    /// An expression from a pattern, whose `@`s are replaced by `operands`.
    #[must_use]
    pub fn new(ty: Type, pattern: &str, operands: Vec<Self>) -> Self {
        let constant = operands.iter().all(|operand| operand.constant);
        Self { ty, parts: fill(pattern, operands), constant, replaceable: true }
    }

    /// Marks it as not evaluable by a compiler.
    #[must_use]
    pub fn runtime(mut self) -> Self {
        self.constant = false;
        self
    }

    /// Marks it as a reference to memory, which must not be replaced with a value.
    #[must_use]
    pub fn lvalue(mut self) -> Self {
        self.replaceable = false;
        self
    }
}

fn fill(pattern: &str, operands: Vec<Expression>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut operands = operands.into_iter();
    for (index, text) in pattern.split('@').enumerate() {
        if index > 0 {
            parts.extend(operands.next().map(Part::Expression));
        }
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
    }
    parts
}

impl Statement {
    /// A statement from a pattern, whose `@`s are replaced by `operands`. (The `@` of attributes is written `\u{1}`.)
    #[must_use]
    pub fn new(pattern: &str, operands: Vec<Expression>) -> Self {
        Self(fill(pattern, operands))
    }

    /// Appends text and a block.
    #[must_use]
    pub fn block(mut self, text: &str, block: Vec<Self>) -> Self {
        self.0.push(Part::Text(text.to_owned()));
        self.0.push(Part::Block(block));
        self
    }

    /// Appends text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.0.push(Part::Text(text.to_owned()));
        self
    }
}

/// The text of declarations or statements.
#[must_use]
pub fn text(statements: &[Statement]) -> String {
    let mut text = String::new();
    block(statements, 0, &mut text);
    text.replace('\u{1}', "@")
}

fn block(statements: &[Statement], depth: usize, text: &mut String) {
    for statement in statements {
        *text += &"    ".repeat(depth);
        parts(&statement.0, depth, text);
        *text += "\n";
    }
}

fn parts(pieces: &[Part], depth: usize, text: &mut String) {
    for part in pieces {
        match part {
            Part::Text(piece) => *text += piece,
            Part::Expression(expression) => parts(&expression.parts, depth, text),
            Part::Block(statements) => {
                *text += "{\n";
                block(statements, depth + 1, text);
                *text += &"    ".repeat(depth);
                *text += "}";
            }
        }
    }
}
