//! The scalars in the structure of a `var<immediate>`, including those of its layouts.

use naga::proc::IndexableLength;
use naga::{Handle, Type, TypeInner};
use runtime_core::Result;

use super::writer::Writer;

impl Writer<'_> {
    /// Where the scalars of a variable called `name` are, in the order of the interface.
    pub(crate) fn scalar_places(&mut self, ty: Handle<Type>, name: String, places: &mut Vec<String>) {
        match &self.module().types[ty].inner {
            TypeInner::Struct { members, .. } => {
                for (index, member) in (0..).zip(members) {
                    let place = format!("{name}.{}", self.names.member(ty, index));
                    self.scalar_places(member.ty, place, places);
                }
            }
            TypeInner::Array { base, size, .. } => {
                for index in 0..self.known_length(*size) {
                    self.scalar_places(*base, format!("{name}.at[{index}]"), places);
                }
            }
            _ => places.push(name),
        }
    }

    /// The types of the scalars in a type, in the same order.
    pub(crate) fn scalar_types(&self, ty: Handle<Type>, types: &mut Vec<Handle<Type>>) {
        match &self.module().types[ty].inner {
            TypeInner::Struct { members, .. } => {
                members.iter().for_each(|member| self.scalar_types(member.ty, types));
            }
            TypeInner::Array { base, size, .. } => {
                (0..self.known_length(*size)).for_each(|_| self.scalar_types(*base, types));
            }
            _ => types.push(ty),
        }
    }

    /// A value of a type as an initialiser, from its scalars.
    pub(crate) fn composed_of_scalars(
        &mut self,
        ty: Handle<Type>,
        scalars: &mut impl Iterator<Item = String>,
    ) -> Result<String> {
        let parts: Vec<_> = match &self.module().types[ty].inner {
            TypeInner::Struct { members, .. } => members.iter().map(|member| member.ty).collect(),
            TypeInner::Array { base, size, .. } => vec![*base; self.known_length(*size) as usize],
            _ => return Ok(scalars.next().unwrap_or_default()),
        };
        let values = parts.into_iter().map(|part| self.composed_of_scalars(part, scalars));
        let values = values.collect::<Result<_>>()?;
        self.composed(ty, values)
    }

    fn known_length(&self, size: naga::ArraySize) -> u32 {
        match size.resolve(self.module().to_ctx()) {
            Ok(IndexableLength::Known(length)) => length,
            _ => 0,
        }
    }
}
