//! How an operation is spelled: an operator of C, or a function of the library.

use std::fmt::Write as _;

/// How tightly an expression binds, as C has it.
pub(crate) mod level {
    /// Fits where an expression may be anything but a comma.
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
    /// A cast, or an operator before its operand.
    pub(crate) const UNARY: u8 = 13;
    /// A name, a call, a member, an element.
    pub(crate) const PRIMARY: u8 = 14;
}

/// The spelling of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The operand itself.
    Same,
    /// An operator between two operands.
    Infix(Infix),
    /// An operator or cast before its operand.
    Prefix(String),
    /// A function.
    Call(String),
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Infix {
    pub(crate) sign: &'static str,
    pub(crate) level: u8,
    /// What its left and right operands bind at least as tightly as: more than C demands where compilers warn.
    pub(crate) left: u8,
    pub(crate) right: u8,
}

impl Infix {
    /// `+ - * /` and the comparisons.
    pub(crate) const fn arithmetic(sign: &'static str, level: u8) -> Form {
        Form::Infix(Self { sign, level, left: level, right: level + 1 })
    }

    /// Comparisons, shifts and bitwise operators, whose operands are clearer in parentheses.
    pub(crate) const fn strict(sign: &'static str, level: u8, operands: u8) -> Form {
        Form::Infix(Self { sign, level, left: operands, right: operands })
    }
}

impl Form {
    /// A function of the library.
    pub(crate) const fn call(name: String) -> Self {
        Self::Call(name)
    }

    /// A cast to a type.
    pub(crate) fn cast(type_name: &str) -> Self {
        Self::Prefix(format!("({type_name})"))
    }

    /// How tightly the whole binds; `operand` is the level of the single operand of [`Form::Same`].
    pub(crate) const fn level(&self, operand: u8) -> u8 {
        match self {
            Self::Same => operand,
            Self::Infix(infix) => infix.level,
            Self::Prefix(_) => level::UNARY,
            Self::Call(_) => level::PRIMARY,
        }
    }

    /// The level that operand `index` has to have.
    pub(crate) const fn operand_level(&self, index: usize) -> u8 {
        match self {
            Self::Same | Self::Call(_) => level::ANY,
            // `--a` is another operator.
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

    /// Joins operands that are already as tight as [`Form::operand_level`] says.
    pub(crate) fn join(&self, operands: &[String]) -> String {
        match (self, operands) {
            (Self::Infix(infix), [left, right]) => format!("{left} {} {right}", infix.sign),
            (Self::Prefix(sign), [operand]) => format!("{sign}{operand}"),
            (Self::Call(name), _) => {
                let length = operands.iter().map(|operand| operand.len() + 2).sum::<usize>();
                let mut text = String::with_capacity(name.len() + length + 2);
                text.extend([name, "("]);
                for (index, operand) in operands.iter().enumerate() {
                    let _ = write!(text, "{}{operand}", if index == 0 { "" } else { ", " });
                }
                text.push(')');
                text
            }
            _ => operands.first().cloned().unwrap_or_default(),
        }
    }
}
