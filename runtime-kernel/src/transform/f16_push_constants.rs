//! Packs f16 immediates into halves of u32 words, for SPIR-V: naga cannot write them, and few drivers support 16-bit
//! push constants.
//!
//! The bytes stay where they are; only the way the kernel reads them changes.

use naga::{
    AddressSpace, Expression, Handle, MathFunction, Module, Scalar, ScalarKind, StructMember, Type, TypeInner,
};
use runtime_core::Result;

use crate::ir::rebuild::{Change, Rebuild};
use crate::ir::{Global, Value, blocks, declare};

/// The location of a struct member after packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A member of its own type, at this index.
    Whole(u32),
    /// Half of a word; 0 is the low half.
    Half { word: u32, half: u32 },
}

/// An immediate variable with f16 members.
struct Packed {
    variable: Global,
    /// The struct as declared in the text.
    ty: Handle<Type>,
    places: Vec<Place>,
}

/// The module with its f16 immediates packed; it must be validated again.
///
/// # Errors
/// `Unsupported` for expressions that kernels do not use.
pub(crate) fn pack(module: &Module) -> Result<Module> {
    let mut packed = module.clone();
    for (variable, global) in module.global_variables.iter() {
        if global.space != AddressSpace::Immediate {
            continue;
        }
        let TypeInner::Struct { members, span } = &module.types[global.ty].inner else { continue };
        let word = declare::word(&mut packed.types);
        let (places, members) = places(module, members, word);
        let inner = TypeInner::Struct { members, span: span.next_multiple_of(4) };
        let ty = declare::ty(&mut packed.types, inner);
        packed.global_variables.get_mut(variable).ty = ty;
        let packing = Packed { variable, ty: global.ty, places };
        for function in blocks::functions_mut(&mut packed) {
            *function = Rebuild::function(function, &packing)?;
        }
    }
    Ok(packed)
}

fn places(module: &Module, members: &[StructMember], word: Handle<Type>) -> (Vec<Place>, Vec<StructMember>) {
    let mut packed: Vec<StructMember> = Vec::new();
    let place = members.iter().map(|member| {
        let is_half = module.types[member.ty].inner == TypeInner::Scalar(Scalar::F16);
        let offset = if is_half { member.offset & !3 } else { member.offset };
        if packed.last().is_none_or(|last| last.offset != offset) {
            let ty = if is_half { word } else { member.ty };
            packed.push(StructMember { name: member.name.clone(), ty, binding: None, offset });
        }
        let at = u32::try_from(packed.len() - 1).unwrap_or(u32::MAX);
        match is_half {
            true => Place::Half { word: at, half: member.offset / 2 % 2 },
            false => Place::Whole(at),
        }
    });
    (place.collect(), packed)
}

impl Change for Packed {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        match new.source.expressions[old] {
            Expression::AccessIndex { base, index } if self.is_variable(new, base) => {
                let (Place::Whole(index) | Place::Half { word: index, .. }) = self.places[index as usize];
                let base = new.value(base);
                Some(new.append(Expression::AccessIndex { base, index }))
            }
            Expression::Load { pointer } if self.is_variable(new, pointer) => Some(self.whole(new, pointer)),
            Expression::Load { pointer } => {
                let half = self.half(new, pointer)?;
                let pointer = new.value(pointer);
                let value = new.append(Expression::Load { pointer });
                Some(unpack(new, value, half))
            }
            _ => None,
        }
    }
}

impl Packed {
    fn is_variable(&self, new: &Rebuild<'_>, handle: Value) -> bool {
        matches!(new.source.expressions[handle], Expression::GlobalVariable(global) if global == self.variable)
    }

    /// The half of a word that `pointer` leads to; `None` if it leads to something else.
    fn half(&self, new: &Rebuild<'_>, pointer: Value) -> Option<u32> {
        match new.source.expressions[pointer] {
            Expression::AccessIndex { base, index } if self.is_variable(new, base) => {
                match self.places[index as usize] {
                    Place::Half { half, .. } => Some(half),
                    Place::Whole(_) => None,
                }
            }
            _ => None,
        }
    }

    /// The whole struct, loaded at once.
    fn whole(&self, new: &mut Rebuild<'_>, pointer: Value) -> Value {
        let pointer = new.value(pointer);
        let base = new.append(Expression::Load { pointer });
        let mut components = Vec::with_capacity(self.places.len());
        for &place in &self.places {
            components.push(match place {
                Place::Whole(index) => new.append(Expression::AccessIndex { base, index }),
                Place::Half { word, half } => {
                    let word = new.append(Expression::AccessIndex { base, index: word });
                    unpack(new, word, half)
                }
            });
        }
        new.append(Expression::Compose { ty: self.ty, components })
    }
}

fn unpack(new: &mut Rebuild<'_>, word: Value, half: u32) -> Value {
    let fun = MathFunction::Unpack2x16float;
    let base = new.append(Expression::Math { fun, arg: word, arg1: None, arg2: None, arg3: None });
    let expr = new.append(Expression::AccessIndex { base, index: half });
    new.append(Expression::As { expr, kind: ScalarKind::Float, convert: Some(2) })
}
