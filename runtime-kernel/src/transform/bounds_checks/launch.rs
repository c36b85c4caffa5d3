//! Evaluates launch preconditions in 32-bit arithmetic, since few devices need to support any other.
//!
//! A side of `left <= right` that does not fit 32 bits is replaced: on the left by the largest number, which makes
//! the result false, on the right by a number below the true one. So the result is never wrongly true.

use naga::{
    BinaryOperator, Binding, BuiltIn, Expression, FunctionArgument, Literal, Scalar, ScalarKind, TypeInner,
    VectorSize,
};

use super::body::Body;
use crate::analysis::proof::launch_precondition::Preconditions;
use crate::analysis::proof::polynomial::LaunchParameter;
use crate::ir::body_writer::WriteBody;
use crate::ir::{Value, built_ins};

/// If the product of two numbers, computed in f32, is below this, it fits into 32 bits: 2³² − 2¹⁹. Three roundings
/// change it by less than one part in 2²².
const FITS: f32 = 4_294_443_008.0;

/// Otherwise the product is above this: 2³² − 2²⁰.
const BELOW: u32 = 0xfff0_0000;

impl Body<'_, '_> {
    /// Whether all polynomials are at most zero in the current launch.
    pub(super) fn preconditions_hold(&mut self, preconditions: &Preconditions) -> Value {
        let mut all = None;
        for precondition in preconditions {
            let [left, right] = precondition.sides();
            let (left, right) = (self.sum(&left, u32::MAX), self.sum(&right, BELOW));
            let most = self.number(u32::MAX);
            let holds = self.binary(BinaryOperator::LessEqual, left, right);
            let fits = self.binary(BinaryOperator::Less, left, most);
            let one = self.binary(BinaryOperator::LogicalAnd, holds, fits);
            all = Some(match all {
                Some(all) => self.binary(BinaryOperator::LogicalAnd, all, one),
                None => one,
            });
        }
        all.unwrap_or_else(|| self.constant(Expression::Literal(Literal::Bool(true))))
    }

    /// A sum of products; a product of two numbers that does not fit is replaced by `too_large`.
    fn sum(&mut self, products: &[(u32, Vec<LaunchParameter>)], too_large: u32) -> Value {
        let mut sum = None;
        for (factor, parameters) in products {
            let mut product = None;
            for &parameter in parameters {
                let parameter = self.parameter(parameter);
                product = Some(match product {
                    Some(product) => self.times(product, parameter, too_large),
                    None if *factor == 1 => parameter,
                    None => self.times_constant(parameter, *factor),
                });
            }
            let product = product.unwrap_or_else(|| self.number(*factor));
            sum = Some(match sum {
                Some(sum) => self.plus(sum, product),
                None => product,
            });
        }
        sum.unwrap_or_else(|| self.number(0))
    }

    fn plus(&mut self, left: Value, right: Value) -> Value {
        let most = self.number(u32::MAX);
        let sum = self.binary(BinaryOperator::Add, left, right);
        let wraps = self.binary(BinaryOperator::Less, sum, left);
        self.append(Expression::Select { condition: wraps, accept: most, reject: sum })
    }

    fn times_constant(&mut self, value: Value, factor: u32) -> Value {
        let [most, factor, largest] = [u32::MAX, factor, u32::MAX / factor.max(1)].map(|n| self.number(n));
        let product = self.binary(BinaryOperator::Multiply, value, factor);
        let wraps = self.binary(BinaryOperator::Greater, value, largest);
        self.append(Expression::Select { condition: wraps, accept: most, reject: product })
    }

    fn times(&mut self, left: Value, right: Value, too_large: u32) -> Value {
        let limit = self.constant(Expression::Literal(Literal::F32(FITS)));
        let too_large = self.number(too_large);
        let product = self.binary(BinaryOperator::Multiply, left, right);
        let [left, right] = [left, right]
            .map(|expr| self.append(Expression::As { expr, kind: ScalarKind::Float, convert: Some(4) }));
        let approximately = self.binary(BinaryOperator::Multiply, left, right);
        let fits = self.binary(BinaryOperator::Less, approximately, limit);
        self.append(Expression::Select { condition: fits, accept: product, reject: too_large })
    }

    /// A launch parameter as an unsigned number.
    fn parameter(&mut self, parameter: LaunchParameter) -> Value {
        let module = self.source.context.module;
        match parameter {
            LaunchParameter::Length(variable) => {
                let base = self.constant(Expression::GlobalVariable(variable));
                let array = match &module.types[module.global_variables[variable].ty].inner {
                    TypeInner::Struct { members, .. } => {
                        let index = u32::try_from(members.len().saturating_sub(1)).unwrap_or(u32::MAX);
                        self.append(Expression::AccessIndex { base, index })
                    }
                    _ => base,
                };
                self.append(Expression::ArrayLength(array))
            }
            LaunchParameter::Scalar(variable, index) => {
                let ty = module.global_variables[variable].ty;
                let signed = match &module.types[ty].inner {
                    TypeInner::Struct { members, .. } => {
                        module.types[members[index as usize].ty].inner == TypeInner::Scalar(Scalar::I32)
                    }
                    _ => false,
                };
                let base = self.constant(Expression::GlobalVariable(variable));
                let pointer = self.append(Expression::AccessIndex { base, index });
                let expr = self.append(Expression::Load { pointer });
                match signed {
                    true => self.append(Expression::As { expr, kind: ScalarKind::Uint, convert: None }),
                    false => expr,
                }
            }
            LaunchParameter::Groups(axis) => {
                let base = self.groups();
                self.append(Expression::AccessIndex { base, index: axis })
            }
        }
    }

    /// The number of work-groups; adds it to the arguments of the entry point if it is missing.
    fn groups(&mut self) -> Value {
        let types = &self.source.context.module.types;
        let found = built_ins::argument(types, &self.out.function.arguments, BuiltIn::NumWorkGroups);
        let (argument, member) = found.unwrap_or_else(|| (self.add_groups(), None));
        let base = self.constant(Expression::FunctionArgument(argument));
        match member {
            Some(index) => self.append(Expression::AccessIndex { base, index }),
            None => base,
        }
    }

    fn add_groups(&mut self) -> u32 {
        let ty = self.type_of(TypeInner::Vector { size: VectorSize::Tri, scalar: Scalar::U32 });
        let binding = Some(Binding::BuiltIn(BuiltIn::NumWorkGroups));
        let number = u32::try_from(self.out.function.arguments.len()).unwrap_or(u32::MAX);
        self.out.function.arguments.push(FunctionArgument { name: None, ty, binding });
        number
    }
}
