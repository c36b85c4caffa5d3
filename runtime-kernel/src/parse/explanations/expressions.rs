//! Errors of expressions.

use naga::common::wgsl::TryToWgsl as _;
use naga::valid::{ComposeError, ExpressionError, LiteralError, WidthError};
use naga::{BinaryOperator, Expression, Function, MathFunction, TypeInner, UnaryOperator};

use super::{Context, Explanation};
use crate::ir::Value;

impl Context<'_> {
    pub(super) fn of_expression(
        &self,
        function: &Function,
        value: Value,
        error: &ExpressionError,
    ) -> Explanation {
        let shown = |value: &Value| self.shown(function, *value);
        match error {
            ExpressionError::InvalidBinaryOperandTypes { op, lhs_type, rhs_type, .. } => {
                self.of_operands(*op, lhs_type, rhs_type)
            }
            ExpressionError::InvalidUnaryOperandType(op, operand) => {
                let (sign, remedy) = match op {
                    UnaryOperator::Negate => ("-", "convert it to a signed type, or subtract it from 0"),
                    UnaryOperator::LogicalNot => {
                        ("!", "compare it with 0; `~` inverts the bits of an integer")
                    }
                    UnaryOperator::BitwiseNot => ("~", "`!` inverts a `bool`"),
                };
                explain!("operator `{sign}` does not take {}", shown(operand); "{remedy}")
            }
            ExpressionError::Compose(error) => self.of_parts(function, value, error),
            ExpressionError::IndexOutOfBounds(base, index) => {
                explain!("index {index} is out of bounds of {}", shown(base))
            }
            ExpressionError::NegativeIndex(base) => explain!("an index of {} is negative", shown(base)),
            ExpressionError::InvalidIndexType(index) => {
                explain!("an index is an `i32` or a `u32`, not {}", shown(index); "convert it: `u32(…)`")
            }
            ExpressionError::InvalidBaseType(base) => explain!("{} has no elements or members", shown(base)),
            ExpressionError::InvalidArrayType(base) => {
                explain!(
                    "`arrayLength` takes a pointer to a tensor's array without a length, not {}",
                    shown(base)
                )
            }
            ExpressionError::InvalidPointerType(base) => {
                explain!("{} is not a value here", shown(base); "write `&` before it for a pointer")
            }
            other => self.of_operation(function, value, other),
        }
    }

    fn of_operation(&self, function: &Function, value: Value, error: &ExpressionError) -> Explanation {
        let text = || self.text_or_this(function, value);
        match error {
            ExpressionError::SelectConditionNotABool { actual } => explain!(
                "the condition of `select` is a `bool`, not {}", self.inner_name(actual);
                "compare it: `!= 0`"
            ),
            ExpressionError::InvalidBooleanVector(operand) => {
                let operand = self.shown(function, *operand);
                explain!("`any` and `all` take a `bool` or a vector of them, not {operand}")
            }
            ExpressionError::ShiftAmountTooLarge { lhs_type, .. } => {
                explain!("{}: {} is shifted by more bits than it has", text(), self.inner_name(lhs_type))
            }
            ExpressionError::DivideByZero => explain!("division by zero: {}", text()),
            ExpressionError::InvalidCooperativeOperand(_) => explain!(
                "the operands of {} do not fit together: a factor `A`, a factor `B` and a sum `C`, all of one size",
                text()
            ),
            ExpressionError::WrongArgumentCount(fun) => {
                explain!("`{}` has another number of arguments: {}", math_name(*fun), text())
            }
            ExpressionError::InvalidArgumentType(fun, _, argument) => {
                explain!("`{}` does not take {}", math_name(*fun), self.shown(function, *argument))
            }
            ExpressionError::UnsupportedWidth(fun, ..) => {
                explain!("`{}` is not available for the type of its argument: {}", math_name(*fun), text())
            }
            ExpressionError::Literal(LiteralError::Width(WidthError::Abstract)) => explain!(
                "{} does not fit the type of the other operand", text();
                "convert one of them"
            ),
            ExpressionError::MissingCapabilities(_) | ExpressionError::Literal(LiteralError::Width(_)) => {
                explain!("portable kernels do not have this: {}", text())
            }
            ExpressionError::Literal(LiteralError::NaN | LiteralError::Infinity) => {
                explain!("the value is beyond the range of its type: {}", text())
            }
            other => self.of_other(Some(function), other),
        }
    }

    /// An expression with its type.
    pub(super) fn shown(&self, function: &Function, value: Value) -> String {
        let text = self.text_of(function, value);
        match (text, self.value_type(function, value)) {
            (Some(text), Some(ty)) => format!("{text} (of type {ty})"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => "this".to_owned(),
        }
    }

    fn of_operands(&self, op: BinaryOperator, left: &TypeInner, right: &TypeInner) -> Explanation {
        let sign = naga::back::binary_operation_str(op);
        let (left_name, right_name) = (self.inner_name(left), self.inner_name(right));
        match (left.scalar(), right.scalar()) {
            (Some(from), Some(to)) if from != to => explain!(
                "operator `{sign}` does not take {left_name} and {right_name}";
                "WGSL converts nothing implicitly; convert one of them, for example by `{}(…)`", left_name.trim_matches('`')
            ),
            _ => explain!("operator `{sign}` does not take {left_name} and {right_name}"),
        }
    }

    fn of_parts(&self, function: &Function, value: Value, error: &ComposeError) -> Explanation {
        let (made, parts) = match &function.expressions[value] {
            Expression::Compose { ty, components } => (self.type_name(*ty), &components[..]),
            _ => ("it".to_owned(), &[][..]),
        };
        match error {
            ComposeError::ComponentCount { given, expected } => {
                explain!("{made} takes {expected} values, not {given}")
            }
            ComposeError::ComponentType { index } => {
                let part = parts.get(*index as usize);
                let part = part.map_or_else(|| "this".to_owned(), |part| self.shown(function, *part));
                explain!("{made} does not take {part}"; "convert it")
            }
            ComposeError::Type(_) => explain!("{made} cannot be made of values"),
        }
    }
}

/// The name of a mathematical function in WGSL.
fn math_name(function: MathFunction) -> &'static str {
    function.try_to_wgsl().unwrap_or("this function")
}
