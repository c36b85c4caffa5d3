//! Operators: C's own if they have WGSL's semantics, otherwise library functions.

use naga::{BinaryOperator, Scalar, ScalarKind, TypeInner, UnaryOperator};
use runtime_core::Result;

use crate::print::c::form::{Form, Infix, level};
use crate::print::c::library::matrix::Matrix;
use crate::print::c::library::vector::Shape;
use crate::print::c::writer::Writer;

/// What is known of the right operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Right {
    /// It is neither zero nor minus one.
    pub(crate) divides: bool,
    /// It is less than the number of bits.
    pub(crate) shifts: bool,
}

/// The name of an operator in library functions.
const fn word(operator: BinaryOperator) -> &'static str {
    use BinaryOperator as B;
    match operator {
        B::Add => "add",
        B::Subtract => "sub",
        B::Multiply => "mul",
        B::Divide => "div",
        B::Modulo => "rem",
        B::Equal => "eq",
        B::NotEqual => "ne",
        B::Less => "lt",
        B::LessEqual => "le",
        B::Greater => "gt",
        B::GreaterEqual => "ge",
        B::And | B::LogicalAnd => "and",
        B::ExclusiveOr => "xor",
        B::InclusiveOr | B::LogicalOr => "or",
        B::ShiftLeft => "shl",
        B::ShiftRight => "shr",
    }
}

/// The C operator for scalars on which it is defined.
const fn own(operator: BinaryOperator) -> Form {
    use BinaryOperator as B;
    match operator {
        B::Add => Infix::arithmetic("+", level::ADD),
        B::Subtract => Infix::arithmetic("-", level::ADD),
        B::Multiply => Infix::arithmetic("*", level::MULTIPLY),
        B::Divide => Infix::arithmetic("/", level::MULTIPLY),
        B::Modulo => Infix::strict("%", level::MULTIPLY, level::UNARY),
        B::Equal => Infix::strict("==", level::EQUAL, level::ADD),
        B::NotEqual => Infix::strict("!=", level::EQUAL, level::ADD),
        B::Less => Infix::strict("<", level::COMPARE, level::ADD),
        B::LessEqual => Infix::strict("<=", level::COMPARE, level::ADD),
        B::Greater => Infix::strict(">", level::COMPARE, level::ADD),
        B::GreaterEqual => Infix::strict(">=", level::COMPARE, level::ADD),
        B::And => Infix::strict("&", level::BIT_AND, level::UNARY),
        B::ExclusiveOr => Infix::strict("^", level::BIT_XOR, level::UNARY),
        B::InclusiveOr => Infix::strict("|", level::BIT_OR, level::UNARY),
        B::LogicalAnd => Infix::strict("&&", level::AND, level::EQUAL),
        B::LogicalOr => Infix::strict("||", level::OR, level::EQUAL),
        B::ShiftLeft => Infix::strict("<<", level::SHIFT, level::UNARY),
        B::ShiftRight => Infix::strict(">>", level::SHIFT, level::UNARY),
    }
}

/// Whether an operator returns a boolean.
const fn compares(operator: BinaryOperator) -> bool {
    use BinaryOperator as B;
    matches!(
        operator,
        B::Equal
            | B::NotEqual
            | B::Less
            | B::LessEqual
            | B::Greater
            | B::GreaterEqual
            | B::LogicalAnd
            | B::LogicalOr
    )
}

impl Writer<'_> {
    /// An operator on two scalars of one type (the right operand of a shift is a `u32`).
    pub(crate) fn binary(&mut self, operator: BinaryOperator, scalar: Scalar) -> Result<Form> {
        self.binary_with(operator, scalar, Right::default())
    }

    fn binary_with(&mut self, operator: BinaryOperator, scalar: Scalar, right: Right) -> Result<Form> {
        use BinaryOperator as B;
        let library = match (operator, scalar.kind) {
            (B::Modulo, ScalarKind::Float) => return self.float("rem", scalar).map(Form::Call),
            // On booleans C's `&` returns an int.
            (B::And, ScalarKind::Bool) => return Ok(own(B::LogicalAnd)),
            (B::InclusiveOr, ScalarKind::Bool) => return Ok(own(B::LogicalOr)),
            (B::ExclusiveOr, ScalarKind::Bool) => return Ok(own(B::NotEqual)),
            (B::Add | B::Subtract | B::Multiply, kind) => kind == ScalarKind::Sint,
            (B::Divide | B::Modulo, ScalarKind::Sint | ScalarKind::Uint) => !right.divides,
            (B::ShiftLeft, ScalarKind::Sint) => true,
            (B::ShiftLeft | B::ShiftRight, _) => !right.shifts,
            _ => false,
        };
        if library { self.integer(word(operator), scalar).map(Form::Call) } else { Ok(own(operator)) }
    }

    /// An operator on two values of any types that WGSL allows.
    pub(crate) fn operator(
        &mut self,
        operator: BinaryOperator,
        left: &TypeInner,
        right: &TypeInner,
        known: Right,
    ) -> Result<Form> {
        if [left, right].iter().any(|inner| matches!(inner, TypeInner::CooperativeMatrix { .. })) {
            return match operator {
                BinaryOperator::Add => self.cooperative_operator("+", [left, right]),
                BinaryOperator::Subtract => self.cooperative_operator("-", [left, right]),
                BinaryOperator::Multiply => self.cooperative_operator("*", [left, right]),
                _ => Err(self.unsupported("this operator on cooperative matrices", naga::Span::UNDEFINED)),
            };
        }
        let matrices = (Matrix::of(left), Matrix::of(right));
        match (operator, matrices) {
            (BinaryOperator::Multiply, (Some(_), _) | (_, Some(_))) => return self.product(left, right),
            (BinaryOperator::Add | BinaryOperator::Subtract, (Some(matrix), _)) => {
                return self.matrix_sum(matrix, word(operator));
            }
            _ => {}
        }
        let (Some(left), Some(right)) = (Shape::of(left), Shape::of(right)) else {
            return Err(self.unsupported("this operator", naga::Span::UNDEFINED));
        };
        let known = if left.size.is_some() { Right::default() } else { known };
        let form = self.binary_with(operator, left.scalar, known)?;
        let scalar = if compares(operator) { Scalar::BOOL } else { left.scalar };
        self.mapped(word(operator), &[left, right], scalar, form)
    }

    /// A prefix operator.
    pub(crate) fn unary(&mut self, operator: UnaryOperator, operand: &TypeInner) -> Result<Form> {
        let Some(shape) = Shape::of(operand) else {
            return Err(self.unsupported("this operator", naga::Span::UNDEFINED));
        };
        let (name, form) = match operator {
            UnaryOperator::Negate if shape.scalar.kind == ScalarKind::Float => {
                ("neg", Form::Prefix("-".to_owned()))
            }
            UnaryOperator::Negate => ("neg", Form::Call(self.integer("neg", shape.scalar)?)),
            UnaryOperator::LogicalNot => ("not", Form::Prefix("!".to_owned())),
            UnaryOperator::BitwiseNot => ("not", Form::Prefix("~".to_owned())),
        };
        self.mapped(name, &[shape], shape.scalar, form)
    }
}
