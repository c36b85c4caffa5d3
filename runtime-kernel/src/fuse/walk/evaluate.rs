//! The values of expressions, and the places that pointers lead to.

use naga::{
    AddressSpace, Binding, Expression, Handle, Literal, RelationalFunction, ScalarKind, Type, TypeInner,
    UnaryOperator,
};
use runtime_core::DType;
use runtime_core::lowering::FusionArg;

use super::value::{Condition, Value};
use super::{Part, Walk};
use crate::analysis::proof::constant::literal;
use crate::fuse::linear::{Integer, Linear};

/// A place in a tensor.
pub(super) struct Place {
    pub(super) argument: usize,
    /// Bytes from the first element; `None` if they are unknown.
    pub(super) offset: Option<Integer>,
    /// Whether the offset is that of an object which contains the place.
    pub(super) is_coarse: bool,
    /// The size of that object.
    pub(super) bytes: i128,
    pub(super) part: Part,
}

impl<'a> Walk<'a> {
    pub(super) fn inner(&self, expression: Handle<Expression>) -> &'a TypeInner {
        self.body.info()[expression].ty.inner_with(&self.body.program.module.types)
    }

    /// Evaluates an expression whose operands are evaluated.
    pub(super) fn evaluate(&mut self, handle: Handle<Expression>) -> Value {
        let module = &self.body.program.module;
        let value = |operand: Handle<Expression>| self.values[operand.index()].clone();
        match self.function.expressions[handle] {
            Expression::Literal(_) | Expression::Constant(_) => {
                literal(module, &self.function.expressions, handle).map_or(Value::Unknown, of_literal)
            }
            Expression::ZeroValue(ty) => self.zero(ty),
            Expression::FunctionArgument(index) => {
                let argument = &self.function.arguments[index as usize];
                self.built_in_argument(&argument.binding, argument.ty)
            }
            Expression::Compose { ref components, .. } => {
                let parts = components.iter().flat_map(|component| match value(*component) {
                    Value::Parts(parts) => parts,
                    other => vec![other],
                });
                Value::Parts(parts.collect())
            }
            Expression::Splat { size, value: operand } => Value::Parts(vec![value(operand); size as usize]),
            Expression::Swizzle { size, vector, pattern } => {
                let vector = value(vector);
                Value::Parts(
                    pattern[..size as usize].iter().map(|part| vector.part(*part as usize)).collect(),
                )
            }
            Expression::AccessIndex { base, index } => value(base).part(index as usize),
            Expression::Load { pointer } => self.loaded(pointer),
            Expression::Binary { .. } | Expression::Math { .. } | Expression::Select { .. } => {
                self.operation(handle)
            }
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => {
                Value::condition(Condition::Not(value(expr)))
            }
            Expression::Unary { op: UnaryOperator::Negate, expr } => match value(expr) {
                Value::Number(number) => Value::Number(Linear::default().minus(&number)),
                _ => Value::Unknown,
            },
            Expression::Relational { fun, argument } => all_or_any(fun, value(argument)),
            Expression::As { expr, kind: ScalarKind::Sint | ScalarKind::Uint, convert } => {
                let is_integer = self.inner(expr).scalar().is_some_and(|scalar| {
                    matches!(scalar.kind, ScalarKind::Sint | ScalarKind::Uint) && scalar.width == 4
                });
                if is_integer && convert.is_none_or(|width| width == 4) {
                    value(expr)
                } else {
                    Value::Unknown
                }
            }
            Expression::ArrayLength(pointer) => self.array_length(pointer),
            _ => Value::Unknown,
        }
    }

    /// Evaluates an operation on several values.
    fn operation(&mut self, handle: Handle<Expression>) -> Value {
        let value = |operand: Handle<Expression>| self.values[operand.index()].clone();
        match self.function.expressions[handle] {
            Expression::Binary { op, left, right } => {
                let (operands, scalar) = ([value(left), value(right)], self.inner(left).scalar());
                self.binary(op, &operands, scalar)
            }
            Expression::Math { fun, arg, arg1: Some(first), arg2, .. } => {
                let operands = [value(arg), value(first), arg2.map(value).unwrap_or_default()];
                let scalar = self.inner(arg).scalar();
                self.math(fun, &operands, scalar)
            }
            Expression::Select { condition, accept, reject } => {
                let operands = [value(condition), value(accept), value(reject)];
                let scalar = self.inner(accept).scalar();
                self.select(&operands, scalar)
            }
            _ => Value::Unknown,
        }
    }

    fn built_in_argument(&self, binding: &Option<Binding>, ty: Handle<Type>) -> Value {
        match binding {
            Some(Binding::BuiltIn(built_in)) => self.built_in(*built_in),
            _ => match &self.body.program.module.types[ty].inner {
                TypeInner::Struct { members, .. } => {
                    let parts =
                        members.iter().map(|member| self.built_in_argument(&member.binding, member.ty));
                    Value::Parts(parts.collect())
                }
                _ => Value::Unknown,
            },
        }
    }

    pub(super) fn zero(&self, ty: Handle<Type>) -> Value {
        match self.body.program.module.types[ty].inner {
            TypeInner::Scalar(scalar) => Literal::zero(scalar).map_or(Value::Unknown, of_literal),
            TypeInner::Vector { size, scalar } => {
                let part = Literal::zero(scalar).map_or(Value::Unknown, of_literal);
                Value::Parts(vec![part; size as usize])
            }
            _ => Value::Unknown,
        }
    }

    fn loaded(&mut self, pointer: Handle<Expression>) -> Value {
        match self.function.expressions[pointer] {
            Expression::LocalVariable(local) => return self.locals[local.index()].clone(),
            Expression::AccessIndex { base, index } => match self.function.expressions[base] {
                Expression::LocalVariable(local) => return self.locals[local.index()].part(index as usize),
                Expression::GlobalVariable(global)
                    if self.body.program.module.global_variables[global].space == AddressSpace::Immediate =>
                {
                    return self.scalar(index as usize);
                }
                _ => {}
            },
            Expression::GlobalVariable(global)
                if self.body.program.module.global_variables[global].space == AddressSpace::Immediate =>
            {
                let count = self.body.interface().scalars.len();
                return Value::Parts((0..count).map(|index| self.scalar(index)).collect());
            }
            _ => {}
        }
        self.note_access(pointer, false);
        match *self.inner(pointer) {
            TypeInner::Pointer { base, .. } => match self.body.program.module.types[base].inner {
                TypeInner::Scalar(scalar) => self.any_of(scalar),
                _ => Value::Unknown,
            },
            TypeInner::ValuePointer { size: None, scalar, .. } => self.any_of(scalar),
            _ => Value::Unknown,
        }
    }

    /// The value of a scalar argument, which the result relies on.
    #[allow(clippy::cast_possible_truncation, reason = "the low bits hold the value")]
    fn scalar(&self, index: usize) -> Value {
        let argument = self.body.interface().tensors.len() + index;
        match self.arguments.get(argument) {
            Some(FusionArg::Scalar { dtype: DType::U32 | DType::I32, bits }) if argument < 64 => {
                Value::Number(Linear { relies: 1 << argument, ..Linear::constant(*bits as u32) })
            }
            _ => Value::Unknown,
        }
    }

    fn array_length(&mut self, pointer: Handle<Expression>) -> Value {
        let Some(place) = self.place(pointer) else { return Value::Unknown };
        self.found.lengths[place.argument] = true;
        let TypeInner::Pointer { base, .. } = *self.inner(pointer) else { return Value::Unknown };
        let TypeInner::Array { stride, .. } = self.body.program.module.types[base].inner else {
            return Value::Unknown;
        };
        let start = place.offset.filter(|offset| offset.terms.is_empty()).map(|offset| offset.constant);
        let bytes = self.tensor_bytes(place.argument).map(i128::from);
        let length =
            bytes.zip(start).map(|(bytes, start)| (bytes - start).max(0) / i128::from(stride.max(1)));
        match length.and_then(|length| u32::try_from(length).ok()) {
            Some(length) => Value::Number(Linear::constant(length)),
            None => Value::Unknown,
        }
    }

    /// The place in a tensor that a pointer leads to; `None` if it leads elsewhere.
    pub(super) fn place(&self, pointer: Handle<Expression>) -> Option<Place> {
        let (base, index) = match self.function.expressions[pointer] {
            Expression::GlobalVariable(global) => {
                let argument = self.argument(global)?;
                return Some(Place {
                    argument,
                    offset: Some(Integer::default()),
                    is_coarse: false,
                    bytes: self.tensor_bytes(argument)?.into(),
                    part: Part::Other,
                });
            }
            Expression::AccessIndex { base, index } => (base, Ok(index)),
            Expression::Access { base, index } => (base, Err(index)),
            _ => return None,
        };
        let mut place = self.place(base)?;
        let is_tensor = matches!(self.function.expressions[base], Expression::GlobalVariable(_));
        place.part = match place.part {
            Part::Other if is_tensor && index.is_err() => Part::Element,
            Part::Element => Part::OfElement,
            other => other,
        };
        if place.is_coarse || place.offset.is_none() {
            return Some(place);
        }
        let step = match index {
            Ok(index) => Some(Integer::constant(self.start_of(base, index)?)),
            Err(index) => {
                let number = self.values[index.index()].number();
                let number = number.and_then(|number| self.knowledge.integer(number));
                number
                    .zip(self.start_of(base, 1))
                    .map(|(number, stride)| Integer::default().plus_times(&number, stride))
            }
        };
        match step {
            Some(step) => {
                place.offset = place.offset.map(|offset| offset.plus_times(&step, 1));
                place.bytes = self.pointee_bytes(pointer)?;
            }
            None if is_tensor || self.is_runtime_sized(base) => place.offset = None,
            None => place.is_coarse = true,
        }
        Some(place)
    }

    fn is_runtime_sized(&self, pointer: Handle<Expression>) -> bool {
        let TypeInner::Pointer { base, .. } = *self.inner(pointer) else { return false };
        matches!(
            self.body.program.module.types[base].inner,
            TypeInner::Array { size: naga::ArraySize::Dynamic, .. }
        )
    }

    /// Bytes to a part of what a pointer leads to.
    fn start_of(&self, pointer: Handle<Expression>, index: u32) -> Option<i128> {
        let types = &self.body.program.module.types;
        let stride = match *self.inner(pointer) {
            TypeInner::Pointer { base, .. } => match &types[base].inner {
                TypeInner::Struct { members, .. } => return Some(members.get(index as usize)?.offset.into()),
                TypeInner::Array { stride, .. } => *stride,
                TypeInner::Vector { scalar, .. } => scalar.width.into(),
                TypeInner::Matrix { rows, scalar, .. } => {
                    let rows = if *rows == naga::VectorSize::Bi { 2 } else { 4 };
                    rows * u32::from(scalar.width)
                }
                _ => return None,
            },
            TypeInner::ValuePointer { scalar, .. } => scalar.width.into(),
            _ => return None,
        };
        Some(i128::from(stride) * i128::from(index))
    }

    fn pointee_bytes(&self, pointer: Handle<Expression>) -> Option<i128> {
        Some(match *self.inner(pointer) {
            TypeInner::Pointer { base, .. } => self.layouts[base].size.into(),
            TypeInner::ValuePointer { size, scalar, .. } => {
                i128::from(scalar.width) * size.map_or(1, |size| size as i128)
            }
            _ => return None,
        })
    }
}

fn of_literal(literal: Literal) -> Value {
    match literal {
        Literal::U32(value) => Value::Number(Linear::constant(value)),
        Literal::I32(value) => Value::Number(Linear::constant(value.cast_unsigned())),
        _ => Value::Unknown,
    }
}

fn all_or_any(fun: RelationalFunction, argument: Value) -> Value {
    let Value::Parts(parts) = argument else { return Value::Unknown };
    let join = |left, right| match fun {
        RelationalFunction::All => Value::condition(Condition::And(left, right)),
        _ => Value::condition(Condition::Or(left, right)),
    };
    match fun {
        RelationalFunction::All | RelationalFunction::Any => {
            parts.into_iter().reduce(join).unwrap_or_default()
        }
        _ => Value::Unknown,
    }
}
