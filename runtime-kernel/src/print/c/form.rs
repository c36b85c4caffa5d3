//! How an operation is spelled: as an operator of C, or as a call of a library function.

/// C's operator precedence.
pub(crate) mod level {
    /// Allows any expression except one with a comma operator.
    pub(crate) const ANY: u8 = 0;
    /// `a ? b : c`
    pub(crate) const CONDITION: u8 = 2;
    pub(crate) const OR: u8 = 3;
    pub(crate) const AND: u8 = 4;
    pub(crate) const BIT_OR: u8 = 5;
    pub(crate) const BIT_XOR: u8 = 6;
    pub(crate) const BIT_AND: u8 = 7;
    pub(crate) const EQUAL: u8 = 8;
    pub(crate) const COMPARE: u8 = 9;
    pub(crate) const SHIFT: u8 = 10;
    pub(crate) const ADD: u8 = 11;
    pub(crate) const MULTIPLY: u8 = 12;
    /// A cast or prefix operator.
    pub(crate) const UNARY: u8 = 13;
    /// A name, a call, a member, an element.
    pub(crate) const PRIMARY: u8 = 14;
}

/// The spelling of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The operand unchanged.
    Same,
    /// A binary operator.
    Infix(Infix),
    /// A prefix operator or cast.
    Prefix(String),
    /// A function call.
    Call(String),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Infix {
    pub(crate) sign: &'static str,
    pub(crate) level: u8,
    /// The minimum precedence of its left and right operands: higher than C requires where compilers warn.
    pub(crate) left: u8,
    pub(crate) right: u8,
}

impl Infix {
    /// `+ - * /` and comparisons.
    pub(crate) const fn arithmetic(sign: &'static str, level: u8) -> Form {
        Form::Infix(Self { sign, level, left: level, right: level + 1 })
    }

    /// Comparisons, shifts and bitwise operators, whose operands are parenthesised for clarity.
    pub(crate) const fn strict(sign: &'static str, level: u8, operands: u8) -> Form {
        Form::Infix(Self { sign, level, left: operands, right: operands })
    }
}

impl Form {
    /// A library function.
    pub(crate) const fn call(name: String) -> Self {
        Self::Call(name)
    }

    /// A cast to a type.
    pub(crate) fn cast(type_name: &str) -> Self {
        Self::Prefix(["(", type_name, ")"].concat())
    }

    /// The precedence of the whole; `operand` is that of the single operand of [`Form::Same`].
    pub(crate) const fn level(&self, operand: u8) -> u8 {
        match self {
            Self::Same => operand,
            Self::Infix(infix) => infix.level,
            Self::Prefix(_) => level::UNARY,
            Self::Call(_) => level::PRIMARY,
        }
    }

    /// The precedence that operand `index` must have.
    pub(crate) const fn operand_level(&self, index: usize) -> u8 {
        match self {
            Self::Same | Self::Call(_) => level::ANY,
            // `--a` would be another operator.
            Self::Prefix(sign) if matches!(sign.as_bytes(), [b'-']) => level::PRIMARY,
            Self::Prefix(_) => level::UNARY,
            Self::Infix(infix) => {
                if index == 0 {
                    infix.left
                } else {
                    infix.right
                }
            }
        }
    }

    /// Joins operands that already have the precedence of [`Form::operand_level`].
    pub(crate) fn join(&self, operands: &[String]) -> String {
        match (self, operands) {
            (Self::Infix(infix), [left, right]) => [left, " ", infix.sign, " ", right].concat(),
            (Self::Prefix(sign), [operand]) => [&sign[..], operand].concat(),
            (Self::Call(name), _) => {
                let length = operands.iter().map(|operand| operand.len() + 2).sum::<usize>();
                let mut text = String::with_capacity(name.len() + length + 2);
                text.extend([name, "("]);
                for (index, operand) in operands.iter().enumerate() {
                    text.extend([if index == 0 { "" } else { ", " }, operand]);
                }
                text.push(')');
                text
            }
            _ => operands.first().cloned().unwrap_or_default(),
        }
    }
}
