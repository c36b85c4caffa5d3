//! Loads and stores of vectors as one word.

use naga::{AddressSpace, Expression, Scalar, ScalarKind, StorageAccess, TypeInner, VectorSize};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::ir::Value;
use crate::print::c::library::vector_moves::Direction;
use crate::program::{Dialect, Feature};

impl<E: Environment> Printer<'_, '_, E> {
    /// The function that loads a vector of a tensor that is only read, or zero if the condition does not hold.
    pub(super) fn conditional_vector_load(&mut self, pointer: Value) -> Result<Option<String>> {
        let space = self.context.inner(pointer).pointer_space();
        let is_read_only = space == Some(AddressSpace::Storage { access: StorageAccess::LOAD });
        match self.moved_vector(pointer).filter(|_| is_read_only) {
            Some(vector) => self.writer.conditional_vector_load(vector).map(Some),
            None => Ok(None),
        }
    }

    /// The function that loads or stores a vector as one word, where it is aligned.
    pub(super) fn vector_move(&mut self, direction: Direction, pointer: Value) -> Result<Option<String>> {
        self.moved_vector(pointer).map(|vector| self.writer.vector_move(direction, vector)).transpose()
    }

    /// The vector behind a pointer, if it is moved as one word: in kernels for matrix units, which narrower accesses are too
    /// slow to feed, and in structures, which CUDA aligns as WGSL does.
    fn moved_vector(&self, pointer: Value) -> Option<(VectorSize, Scalar)> {
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
    fn is_in_structure(&self, pointer: Value) -> bool {
        match self.context.function.expressions[pointer] {
            Expression::AccessIndex { base, .. } => {
                matches!(self.context.pointee(base), TypeInner::Struct { .. })
            }
            _ => false,
        }
    }
}
