//! Errors of expressions.

use naga::valid::{ComposeError, ExpressionError};
use naga::{BinaryOperator, Expression, Function, Handle, TypeInner, UnaryOperator};

use super::{Context, Explanation};

impl Context<'_> {
    pub(super) fn of_expression(
        &self,
        function: &Function,
        value: Handle<Expression>,
        error: &ExpressionError,
    ) -> Explanation {
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
                Explanation::new(format!(
                    "operator `{sign}` does not take {}",
                    self.shown(function, *operand)
                ))
                .remedy(remedy)
            }
            ExpressionError::Compose(error) => self.of_parts(function, value, error),
            ExpressionError::IndexOutOfBounds(base, index) => {
                Explanation::new(format!("index {index} is out of bounds of {}", self.shown(function, *base)))
            }
            ExpressionError::NegativeIndex(base) => {
                Explanation::new(format!("an index of {} is negative", self.shown(function, *base)))
            }
            ExpressionError::InvalidIndexType(index) => Explanation::new(format!(
                "an index is an `i32` or a `u32`, not {}",
                self.shown(function, *index)
            ))
            .remedy("convert it: `u32(…)`"),
            ExpressionError::InvalidBaseType(base) => {
                Explanation::new(format!("{} has no elements or members", self.shown(function, *base)))
            }
            ExpressionError::InvalidArrayType(base) => Explanation::new(format!(
                "`arrayLength` takes a pointer to a tensor's array without a length, not {}",
                self.shown(function, *base)
            )),
            ExpressionError::InvalidPointerType(base) => {
                Explanation::new(format!("{} is not a value here", self.shown(function, *base)))
                    .remedy("write `&` before it for a pointer")
            }
            other => self.of_operation(function, value, other),
        }
    }

    fn of_operation(
        &self,
        function: &Function,
        value: Handle<Expression>,
        error: &ExpressionError,
    ) -> Explanation {
        let text = || self.text_of(function, value).unwrap_or_else(|| "this".to_owned());
        match error {
            ExpressionError::SelectConditionNotABool { actual } => Explanation::new(format!(
                "the condition of `select` is a `bool`, not {}",
                self.inner_name(actual)
            ))
            .remedy("compare it: `!= 0`"),
            ExpressionError::InvalidBooleanVector(operand) => Explanation::new(format!(
                "`any` and `all` take a `bool` or a vector of them, not {}",
                self.shown(function, *operand)
            )),
            ExpressionError::ShiftAmountTooLarge { lhs_type, .. } => Explanation::new(format!(
                "{}: {} is shifted by more bits than it has",
                text(),
                self.inner_name(lhs_type)
            )),
            ExpressionError::DivideByZero => Explanation::new(format!("division by zero: {}", text())),
            ExpressionError::InvalidCooperativeOperand(_) => Explanation::new(format!(
                "the operands of {} do not fit together: a factor `A`, a factor `B` and a sum `C`, all of one size",
                text()
            )),
            other => self.of_other(Some(function), other),
        }
    }

    /// An expression with its type.
    pub(super) fn shown(&self, function: &Function, value: Handle<Expression>) -> String {
        let text = self.text_of(function, value);
        match (text, self.value_type(function, value)) {
            (Some(text), Some(ty)) => format!("{text} (of type {ty})"),
            (Some(text), None) | (None, Some(text)) => text,
            (None, None) => "this".to_owned(),
        }
    }

    fn of_operands(&self, op: BinaryOperator, left: &TypeInner, right: &TypeInner) -> Explanation {
        let sign = naga::back::binary_operation_str(op);
        let scalar = |ty: &TypeInner| ty.scalar();
        let (left_name, right_name) = (self.inner_name(left), self.inner_name(right));
        let explanation =
            Explanation::new(format!("operator `{sign}` does not take {left_name} and {right_name}"));
        match (scalar(left), scalar(right)) {
            (Some(from), Some(to)) if from != to => explanation.remedy(format!(
                "WGSL converts nothing implicitly; convert one of them, for example by `{}(…)`",
                left_name.trim_matches('`')
            )),
            _ => explanation,
        }
    }

    fn of_parts(&self, function: &Function, value: Handle<Expression>, error: &ComposeError) -> Explanation {
        let made = match function.expressions[value] {
            Expression::Compose { ty, .. } => self.type_name(ty),
            _ => "it".to_owned(),
        };
        match error {
            ComposeError::ComponentCount { given, expected } => {
                Explanation::new(format!("{made} takes {expected} values, not {given}"))
            }
            ComposeError::ComponentType { index } => {
                let part = match &function.expressions[value] {
                    Expression::Compose { components, .. } => components.get(*index as usize),
                    _ => None,
                };
                let part = part.map_or_else(|| "this".to_owned(), |part| self.shown(function, *part));
                Explanation::new(format!("{made} does not take {part}")).remedy("convert it")
            }
            ComposeError::Type(_) => Explanation::new(format!("{made} cannot be made of values")),
        }
    }
}
