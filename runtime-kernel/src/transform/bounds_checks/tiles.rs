//! Bounds checks of cooperative matrices: of a matrix as a whole.
//!
//! A matrix that is not completely in range, or that does not begin and continue at multiples of 16 bytes, is zero when
//! it is loaded, and is not stored. Devices require that alignment
//! (`VUID-RuntimeSpirv-OpCooperativeMatrixLoadKHR-08986`).

use naga::{
    BinaryOperator, CooperativeData, Expression, FastHashSet, Function, GatherMode, Statement, TypeInner,
};
use runtime_core::{Error, Result};

use super::body::Body;
use crate::analysis::proof::range::{self, Element, Limit};
use crate::analysis::proof::tile;
use crate::ir::Value;
use crate::ir::body_writer::WriteBody;
use crate::ir::cooperative::{self, EXTENT, MAX_STRIDE, Rows};

/// The pointers to matrices: their elements are not checked one by one.
pub(super) fn pointers(function: &Function) -> FastHashSet<Value> {
    cooperative::accesses(function).into_iter().map(|(data, _)| data.pointer).collect()
}

impl Body<'_, '_> {
    /// The condition that a matrix is in range, unless that is proven; and its place, with an index and a stride that are
    /// the same in the whole subgroup, as Vulkan requires.
    pub(super) fn tile(&mut self, data: CooperativeData) -> Result<(Option<Value>, CooperativeData)> {
        let context = self.source.context;
        let element = Element::of(context.function, data.pointer);
        let limit = element.and_then(|element| range::length(context, element.base));
        let (Some(element), Some(limit)) = (element, limit) else {
            return Err(Error::unsupported("a cooperative matrix outside of arrays is not supported"));
        };
        let (index, stride) = (self.subgroup_index(element)?, self.subgroup_uniform(data.stride)?);
        let base = self.value(element.base)?;
        let condition = if self.checker.report.is_none() && tile::is_in_range(context, data) {
            None
        } else {
            let length = match limit {
                Limit::Constant(length) => self.number(length),
                Limit::Runtime(_) => self.append(Expression::ArrayLength(base)),
            };
            let rows = Rows::of(context.pointee(data.pointer), context.module.to_ctx());
            Some(self.tile_condition([index, stride, length], rows))
        };
        let pointer = self.append(Expression::Access { base, index });
        Ok((condition, CooperativeData { pointer, stride, row_major: data.row_major }))
    }

    fn tile_condition(&mut self, [index, stride, length]: [Value; 3], rows: Rows) -> Value {
        use BinaryOperator as B;
        let begins = self.binary(B::Less, index, length);
        let most = self.number(MAX_STRIDE);
        let is_small = self.binary(B::LessEqual, stride, most);
        let (last_row, last) = (self.number(EXTENT - 1), self.number(rows.width - 1));
        let offset = self.binary(B::Multiply, stride, last_row);
        let offset = self.binary(B::Add, offset, last);
        let rest = self.binary(B::Subtract, length, index);
        let ends = self.binary(B::Less, offset, rest);
        let mut all = self.binary(B::LogicalAnd, begins, is_small);
        all = self.binary(B::LogicalAnd, all, ends);
        if rows.alignment_mask > 0 {
            let (mask, zero) = (self.number(rows.alignment_mask), self.number(0));
            let either = self.binary(B::InclusiveOr, index, stride);
            let low = self.binary(B::And, either, mask);
            let aligned = self.binary(B::Equal, low, zero);
            all = self.binary(B::LogicalAnd, all, aligned);
        }
        all
    }

    pub(super) fn tile_store(&mut self, target: Value, data: CooperativeData) -> Result<()> {
        let target = self.value(target)?;
        let (condition, data) = self.tile(data)?;
        let store = Statement::CooperativeStore { target, data };
        let statement = match condition {
            None => store,
            Some(condition) => {
                Statement::If { condition, accept: self.lone(store), reject: naga::Block::new() }
            }
        };
        self.push(statement);
        Ok(())
    }

    fn subgroup_index(&mut self, element: Element) -> Result<Value> {
        match element.index {
            Some(index) => self.subgroup_uniform(index),
            None => Ok(self.number(element.known)),
        }
    }

    /// A 32-bit integer as the subgroup's first invocation has it, as `u32`.
    fn subgroup_uniform(&mut self, value: Value) -> Result<Value> {
        let context = self.source.context;
        let argument = self.unsigned(value)?;
        if matches!(context.function.expressions[value], Expression::Literal(_) | Expression::Constant(_)) {
            return Ok(argument);
        }
        let ty = self.type_of(TypeInner::Scalar(naga::Scalar::U32));
        let result = self.constant(Expression::SubgroupOperationResult { ty });
        self.push(Statement::SubgroupGather { mode: GatherMode::BroadcastFirst, argument, result });
        Ok(result)
    }
}
