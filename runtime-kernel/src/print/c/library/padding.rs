//! Stores in tensors of values that have padding: part by part, since WGSL leaves the bytes between the parts as they are.

use std::fmt::Write as _;

use naga::proc::IndexableLength;
use naga::{AddressSpace, Handle, StorageAccess, Type, TypeInner, VectorSize};
use runtime_core::Result;

use crate::print::c::types::Slot;
use crate::print::c::writer::Writer;

/// Where the parts of a value are in tensors.
const SPACE: AddressSpace = AddressSpace::Storage { access: StorageAccess::STORE };

impl Writer<'_> {
    /// Finds the types whose values have bytes that belong to none of their parts.
    pub(in crate::print::c) fn find_padding(&mut self) {
        for (ty, _) in self.module().types.iter() {
            let is_padded = match &self.module().types[ty].inner {
                TypeInner::Matrix { rows, .. } => *rows == VectorSize::Tri,
                TypeInner::Array { base, stride, .. } => {
                    self.has_padding[base.index()] || self.is_padded(*base, *stride)
                }
                TypeInner::Struct { members, span } => {
                    members.iter().any(|member| self.has_padding[member.ty.index()])
                        || self.has_gaps(members, *span)
                }
                _ => false,
            };
            self.has_padding.push(is_padded);
        }
    }

    /// The function that stores a value of this type in a tensor without its padding; `None` if it has none.
    pub(crate) fn padded_store(&mut self, ty: Handle<Type>) -> Result<Option<String>> {
        if !self.has_padding[ty.index()] {
            return Ok(None);
        }
        let own = self.type_name(ty)?;
        // A type may contain another many times, so each has a function.
        let define = |writer: &mut Self, name: &str| {
            let parts = writer.stores_of_parts(ty)?;
            let space = writer.dialect.space(SPACE);
            Ok(format!("void {name}({space}{own} *p, {own} v)\n{{\n{parts}}}"))
        };
        self.library(format!("{own}_store_"), define).map(Some)
    }

    /// The statements that store the parts of `v` in `*p`.
    fn stores_of_parts(&mut self, ty: Handle<Type>) -> Result<String> {
        let types = &self.module().types;
        Ok(match &types[ty].inner {
            TypeInner::Matrix { columns, .. } => each(*columns as u32, &assigned("c[i].value")),
            TypeInner::Array { base, size, stride } => {
                let Ok(IndexableLength::Known(length)) = size.resolve(self.module().to_ctx()) else {
                    return Err(self.unsupported("a value without a size", types.get_span(ty)));
                };
                let part = if self.is_padded(*base, *stride) { "at[i].value" } else { "at[i]" };
                each(length, &self.store_of_part(*base, part)?)
            }
            TypeInner::Struct { members, span } => {
                let mut text = String::new();
                for slot in self.slots(members, *span) {
                    let Slot::Member(index) = slot else { continue };
                    let part = self.names.member(ty, u32::try_from(index).unwrap_or_default()).to_owned();
                    let _ = writeln!(text, "    {}", self.store_of_part(members[index].ty, &part)?);
                }
                text
            }
            _ => String::new(),
        })
    }

    fn store_of_part(&mut self, ty: Handle<Type>, part: &str) -> Result<String> {
        Ok(match self.padded_store(ty)? {
            Some(store) => format!("{store}(&p->{part}, v.{part});"),
            None => assigned(part),
        })
    }
}

fn assigned(part: &str) -> String {
    format!("p->{part} = v.{part};")
}

/// A statement for each of the parts with an index.
fn each(count: u32, statement: &str) -> String {
    format!("    for (int i = 0; i < {count}; i++) {statement}\n")
}
