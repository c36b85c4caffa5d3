//! Loads, stores and products of cooperative matrices.

use naga::{AddressSpace, CooperativeData, TypeInner};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::analysis::proof::range::{self, Element};
use crate::analysis::proof::tile;
use crate::ir::Value;
use crate::ir::cooperative::Rows;
use crate::print::c::form::level;
use crate::print::c::library::cooperative::TileAccess;

impl<E: Environment> Printer<'_, '_, E> {
    /// The load of a matrix.
    pub(super) fn cooperative_load(&mut self, load: Value, data: CooperativeData) -> Result<String> {
        let access = self.tile_access(data);
        let function = self.writer.cooperative_load(self.context.inner(load), access, self.span(load))?;
        let place = self.cooperative_place(data)?;
        Ok(format!("{function}({place})"))
    }

    /// The statement that stores a matrix.
    pub(super) fn cooperative_store(&mut self, target: Value, data: CooperativeData) -> Result<()> {
        let (access, span) = (self.tile_access(data), self.span(data.pointer));
        let function = self.writer.cooperative_store(self.context.inner(target), access, span)?;
        let (matrix, place) = (self.value(target)?, self.cooperative_place(data)?);
        self.lines.line(&[&function, "(", &matrix, ", ", &place, ");"]);
        Ok(())
    }

    /// The product of two matrices plus a third.
    pub(super) fn cooperative_multiply_add(&mut self, operands: [Value; 3]) -> Result<String> {
        let types = operands.map(|operand| self.context.inner(operand));
        let function = self.writer.cooperative_multiply_add(types, self.span(operands[0]))?;
        let [a, b, c] = [self.value(operands[0])?, self.value(operands[1])?, self.value(operands[2])?];
        Ok(format!("{function}({a}, {b}, {c})"))
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
