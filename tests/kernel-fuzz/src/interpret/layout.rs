//! Layout of types, in slots (one per scalar) and in bytes.

use naga::{ArraySize, Handle, Scalar, Type, TypeInner, VectorSize};
use runtime_kernel::naga;

use super::{Interpreter, Invalid};

/// A scalar of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its offset in bytes.
    pub offset: usize,
    /// Its type.
    pub scalar: Scalar,
}

impl Interpreter<'_> {
    pub(super) fn inner(&self, ty: Handle<Type>) -> &TypeInner {
        &self.module.types[ty].inner
    }

    /// The length of an array; `None` if it is run-time-sized.
    pub(super) fn count(&self, size: ArraySize) -> Result<Option<usize>, Invalid> {
        match size {
            ArraySize::Constant(count) => Ok(Some(count.get() as usize)),
            ArraySize::Dynamic => Ok(None),
            ArraySize::Pending(handle) => {
                let words = self.overrides.get(&handle).ok_or(Invalid::unknown("an override"))?;
                Ok(words.first().map(|word| *word as usize))
            }
        }
    }

    /// The number of slots of a type; 0 for a run-time-sized array.
    pub(super) fn width(&self, inner: &TypeInner) -> Result<usize, Invalid> {
        Ok(match inner {
            TypeInner::Scalar(_) | TypeInner::Atomic(_) => 1,
            TypeInner::Vector { size, .. } => *size as usize,
            TypeInner::Matrix { columns, rows, .. } => *columns as usize * *rows as usize,
            TypeInner::Array { base, size, .. } => {
                self.width(self.inner(*base))? * self.count(*size)?.unwrap_or(0)
            }
            TypeInner::Struct { members, .. } => {
                let widths = members.iter().map(|member| self.width(self.inner(member.ty)));
                widths.sum::<Result<usize, _>>()?
            }
            TypeInner::ValuePointer { .. } | TypeInner::Pointer { .. } => 0,
            _ => return Err(Invalid::unknown("a type")),
        })
    }

    /// The first slot of a structure member.
    pub(super) fn member(&self, members: &[naga::StructMember], index: usize) -> Result<usize, Invalid> {
        members[..index].iter().map(|member| self.width(self.inner(member.ty))).sum()
    }

    /// Appends the scalars of a type at byte `at`, with `dynamic` elements in a run-time-sized array.
    pub(super) fn slots(
        &self,
        ty: Handle<Type>,
        at: usize,
        dynamic: usize,
        slots: &mut Vec<Slot>,
    ) -> Result<(), Invalid> {
        match self.inner(ty) {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                slots.push(Slot { offset: at, scalar: *scalar });
            }
            TypeInner::Vector { size, scalar } => row(*scalar, *size, at, slots),
            TypeInner::Matrix { columns, rows, scalar } => {
                let stride = if *rows == VectorSize::Bi { 2 } else { 4 } * usize::from(scalar.width);
                (0..*columns as usize).for_each(|column| row(*scalar, *rows, at + column * stride, slots));
            }
            TypeInner::Array { base, size, stride } => {
                for index in 0..self.count(*size)?.unwrap_or(dynamic) {
                    self.slots(*base, at + index * *stride as usize, dynamic, slots)?;
                }
            }
            TypeInner::Struct { members, .. } => {
                for member in members {
                    self.slots(member.ty, at + member.offset as usize, dynamic, slots)?;
                }
            }
            _ => return Err(Invalid::unknown("a type in memory")),
        }
        Ok(())
    }

    /// The size of a tensor in bytes, with `dynamic` elements in its run-time-sized array.
    pub(super) fn bytes(&self, ty: Handle<Type>, dynamic: usize) -> Result<usize, Invalid> {
        Ok(match self.inner(ty) {
            TypeInner::Array { size, stride, .. } => self.count(*size)?.unwrap_or(dynamic) * *stride as usize,
            TypeInner::Struct { members, span } => {
                match members.last().map(|last| (last, self.inner(last.ty))) {
                    Some((last, TypeInner::Array { size: ArraySize::Dynamic, .. })) => {
                        last.offset as usize + self.bytes(last.ty, dynamic)?
                    }
                    _ => *span as usize,
                }
            }
            _ => {
                let mut slots = Vec::new();
                self.slots(ty, 0, dynamic, &mut slots)?;
                slots.last().map_or(0, |slot| slot.offset + usize::from(slot.scalar.width))
            }
        })
    }
}

fn row(scalar: Scalar, size: VectorSize, at: usize, slots: &mut Vec<Slot>) {
    let component = |index| Slot { offset: at + index * usize::from(scalar.width), scalar };
    slots.extend((0..size as usize).map(component));
}
