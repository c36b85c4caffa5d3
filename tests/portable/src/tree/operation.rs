//! The operations of expressions.

use super::Value;

/// An operation; component-wise unless noted, and with operands of equal type unless noted.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A variable, by index.
    Input(usize),
    /// A scalar literal.
    Literal(Value),
    /// `-e` of integers; of floats too.
    Negate,
    /// `~e`.
    Complement,
    /// `!e`.
    Not,
    /// `a + b`; one may be a scalar beside a vector.
    Add,
    /// `a - b`, likewise.
    Subtract,
    /// `a * b`, likewise; of floats it is cut and rounded.
    Multiply,
    /// `a / b` of integers, likewise.
    Divide,
    /// `a % b` of integers, likewise.
    Remainder,
    /// `a & b` of integers and booleans.
    And,
    /// `a | b`.
    Or,
    /// `a ^ b` of integers.
    Xor,
    /// `a << b`.
    ShiftLeft,
    /// `a >> b`.
    ShiftRight,
    /// `a && b` of scalars.
    Both,
    /// `a || b` of scalars.
    Either,
    /// `a == b`, and so on.
    Equal,
    /// `a != b`.
    Unequal,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessEqual,
    /// `a > b`.
    Greater,
    /// `a >= b`.
    GreaterEqual,
    /// `select(f, t, c)`, with a scalar or vector `c`.
    Select,
    /// `min(a, b)`.
    Min,
    /// `max(a, b)`.
    Max,
    /// `clamp(e, low, high)` of integers.
    Clamp,
    /// `clamp(e, -8.5, 100.0)` of floats.
    ClampFloat,
    /// `abs(e)`.
    Abs,
    /// `sign(e)`.
    Sign,
    /// `countOneBits(e)`.
    CountOneBits,
    /// `countLeadingZeros(e)`.
    CountLeadingZeros,
    /// `countTrailingZeros(e)`.
    CountTrailingZeros,
    /// `firstLeadingBit(e)`.
    FirstLeadingBit,
    /// `firstTrailingBit(e)`.
    FirstTrailingBit,
    /// `reverseBits(e)`.
    ReverseBits,
    /// `extractBits(e, o, c)` with scalar `o` and `c`.
    ExtractBits,
    /// `insertBits(e, n, o, c)`.
    InsertBits,
    /// `dot(a, b)` of vectors; of floats it is cut and rounded.
    Dot,
    /// `all(e)` of a vector.
    All,
    /// `any(e)` of a vector.
    Any,
    /// `floor(e)`.
    Floor,
    /// `ceil(e)`.
    Ceil,
    /// `round(e)`: ties to even.
    Round,
    /// `trunc(e)`.
    Trunc,
    /// `fract(e)`.
    Fract,
    /// A conversion by a constructor; integers are truncated to their low byte before conversion to float.
    Convert,
    /// `bitcast` between integers.
    Bitcast,
    /// A swizzle: components by index.
    Swizzle(Vec<usize>),
    /// `v[i % width]` with an unsigned `i`.
    Index,
    /// A vector from scalars and vectors.
    Construct,
    /// A vector with equal components.
    Splat,
    /// `pack4xU8(v)`.
    PackU8,
    /// `pack4xI8(v)`.
    PackI8,
    /// `pack4xU8Clamp(v)`.
    PackU8Clamp,
    /// `pack4xI8Clamp(v)`.
    PackI8Clamp,
    /// `unpack4xU8(e)`.
    UnpackU8,
    /// `unpack4xI8(e)`.
    UnpackI8,
    /// `dot4U8Packed(a, b)`.
    DotU8,
    /// `dot4I8Packed(a, b)`.
    DotI8,
}

/// How the operands of an operation are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// All operands have the type of the result.
    Same(usize),
    /// Two operands of the type of the result, one of which may be a scalar.
    Mixed,
    /// The second operand is unsigned, of the same width.
    Shift,
    /// The first `n` arguments have the type of the result, two more are unsigned scalars.
    Bits(usize),
    /// Anything else.
    Special,
}

impl Operation {
    /// How the operands are typed.
    #[must_use]
    pub const fn group(&self) -> Group {
        match self {
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide | Self::Remainder => Group::Mixed,
            Self::And | Self::Or | Self::Xor | Self::Both | Self::Either | Self::Min | Self::Max => {
                Group::Same(2)
            }
            Self::Clamp => Group::Same(3),
            Self::ShiftLeft | Self::ShiftRight => Group::Shift,
            Self::ExtractBits => Group::Bits(1),
            Self::InsertBits => Group::Bits(2),
            Self::Negate
            | Self::Complement
            | Self::Not
            | Self::ClampFloat
            | Self::Abs
            | Self::Sign
            | Self::CountOneBits
            | Self::CountLeadingZeros
            | Self::CountTrailingZeros
            | Self::FirstLeadingBit
            | Self::FirstTrailingBit
            | Self::ReverseBits
            | Self::Floor
            | Self::Ceil
            | Self::Round
            | Self::Trunc
            | Self::Fract => Group::Same(1),
            _ => Group::Special,
        }
    }
}
