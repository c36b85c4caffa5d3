//! Loads, stores and products of cooperative matrices.

use naga::{
    AddressSpace, CooperativeData, Expression, Handle, Scalar, ScalarKind, StorageAccess, TypeInner,
    VectorSize,
};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::analysis::features::Feature;
use crate::analysis::proof::range::{self, Element};
use crate::analysis::proof::tile;
use crate::ir::cooperative::Rows;
use crate::print::c::form::level;
use crate::print::c::library::cooperative::{Direction, TileAccess};
use crate::program::Dialect;

impl<E: Environment> Printer<'_, '_, E> {
    /// The load of a matrix.
    pub(super) fn cooperative_load(
        &mut self,
        load: Handle<Expression>,
        data: CooperativeData,
    ) -> Result<String> {
        let access = self.tile_access(data);
        let function = self.writer.cooperative_load(self.context.inner(load), access, self.span(load))?;
        let place = self.cooperative_place(data)?;
        Ok(format!("{function}({place})"))
    }

    /// The statement that stores a matrix.
    pub(super) fn cooperative_store(
        &mut self,
        target: Handle<Expression>,
        data: CooperativeData,
    ) -> Result<()> {
        let (access, span) = (self.tile_access(data), self.span(data.pointer));
        let function = self.writer.cooperative_store(self.context.inner(target), access, span)?;
        let (matrix, place) = (self.value(target)?, self.cooperative_place(data)?);
        self.lines.line(&[&function, "(", &matrix, ", ", &place, ");"]);
        Ok(())
    }

    /// The product of two matrices plus a third.
    pub(super) fn cooperative_multiply_add(&mut self, operands: [Handle<Expression>; 3]) -> Result<String> {
        let types = operands.map(|operand| self.context.inner(operand));
        let function = self.writer.cooperative_multiply_add(types, self.span(operands[0]))?;
        let [a, b, c] = [self.value(operands[0])?, self.value(operands[1])?, self.value(operands[2])?];
        Ok(format!("{function}({a}, {b}, {c})"))
    }

    /// The function that loads a vector of a tensor that is only read, or zero if the condition does not hold.
    pub(super) fn conditional_vector_load(&mut self, pointer: Handle<Expression>) -> Result<Option<String>> {
        let space = self.context.inner(pointer).pointer_space();
        let is_read_only = space == Some(AddressSpace::Storage { access: StorageAccess::LOAD });
        match self.moved_vector(pointer).filter(|_| is_read_only) {
            Some(vector) => self.writer.conditional_vector_load(vector).map(Some),
            None => Ok(None),
        }
    }

    /// The function that loads or stores a vector as one word, where it is aligned.
    pub(super) fn vector_move(
        &mut self,
        direction: Direction,
        pointer: Handle<Expression>,
    ) -> Result<Option<String>> {
        self.moved_vector(pointer).map(|vector| self.writer.vector_move(direction, vector)).transpose()
    }

    /// The vector behind a pointer, if it is moved as one word: in kernels for matrix units, which narrower accesses are too
    /// slow to feed, and in structures, which CUDA aligns as WGSL does.
    fn moved_vector(&self, pointer: Handle<Expression>) -> Option<(VectorSize, Scalar)> {
        let is_aligned = self.writer.dialect == Dialect::Cuda
            && (self.writer.program.features().contains(&Feature::MatrixUnits)
                || self.is_in_structure(pointer));
        let space = self.context.inner(pointer).pointer_space();
        match (self.context.pointee(pointer), space) {
            (
                &TypeInner::Vector { size: size @ (VectorSize::Bi | VectorSize::Quad), scalar },
                Some(AddressSpace::Storage { .. } | AddressSpace::WorkGroup),
            ) if is_aligned && scalar.kind != ScalarKind::Bool && size as u8 * scalar.width <= 16 => {
                Some((size, scalar))
            }
            _ => None,
        }
    }

    /// Whether a pointer is to a member of a structure.
    fn is_in_structure(&self, pointer: Handle<Expression>) -> bool {
        match self.context.function.expressions[pointer] {
            Expression::AccessIndex { base, .. } => {
                matches!(self.context.pointee(base), TypeInner::Struct { .. })
            }
            _ => false,
        }
    }

    fn tile_access(&self, data: CooperativeData) -> TileAccess {
        TileAccess {
            rows: Rows::of(self.context.pointee(data.pointer), self.context.module.to_ctx()),
            row_major: data.row_major,
            is_shared: self.context.inner(data.pointer).pointer_space() == Some(AddressSpace::WorkGroup),
            is_checked: self.writer.checks.are_made()
                && (self.writer.program.asserts || !tile::is_in_range(self.context, data)),
        }
    }

    /// The array, the index, the stride, and the length of the array.
    fn cooperative_place(&mut self, data: CooperativeData) -> Result<String> {
        let element = Element::of(self.context.function, data.pointer);
        let limit = element.and_then(|element| range::length(self.context, element.base));
        let (Some(element), Some(limit)) = (element, limit) else {
            return Err(self.unsupported("a cooperative matrix outside of arrays", data.pointer));
        };
        let mut array = self.place(element.base)?;
        let pointee: &TypeInner = self.context.pointee(element.base);
        self.index(&mut array, pointee, "0")?;
        let index = match element.index {
            Some(index) => self.unsigned(index)?,
            None => format!("{}u", element.known),
        };
        let stride = self.operand(data.stride, level::UNARY)?;
        let length = match self.writer.checks.are_made() {
            true => self.limit_text(limit, element.base)?,
            false => "0u".to_owned(),
        };
        Ok(format!("{}, {index}, (u32){stride}, {length}", array.address()))
    }
}
