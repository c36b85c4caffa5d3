//! Declarations in a module: types and variables.

use naga::{
    AddressSpace, GlobalVariable, Handle, MemoryDecorations, Module, Scalar, Span, StructMember, Type,
    TypeInner, UniqueArena,
};

use crate::ir::Global;

/// A type without a name.
pub(crate) fn ty(types: &mut UniqueArena<Type>, inner: TypeInner) -> Handle<Type> {
    types.insert(Type { name: None, inner }, Span::UNDEFINED)
}

/// The type `u32`.
pub(crate) fn word(types: &mut UniqueArena<Type>) -> Handle<Type> {
    ty(types, TypeInner::Scalar(Scalar::U32))
}

/// A variable without a binding and an initial value, to be appended.
pub(crate) fn variable(name: &str, space: AddressSpace, ty: Handle<Type>) -> GlobalVariable {
    GlobalVariable {
        name: Some(name.to_owned()),
        space,
        binding: None,
        ty,
        init: None,
        memory_decorations: MemoryDecorations::empty(),
    }
}

/// Appends a `var<immediate>` whose structure has these scalars, each at the next multiple of its size.
pub(crate) fn immediate(
    module: &mut Module,
    [name, type_name]: [&str; 2],
    scalars: impl Iterator<Item = (String, Scalar)>,
) -> Global {
    let (mut end, mut members) = (0_u32, Vec::new());
    for (name, scalar) in scalars {
        let (ty, width) = (ty(&mut module.types, TypeInner::Scalar(scalar)), u32::from(scalar.width));
        let offset = end.next_multiple_of(width);
        members.push(StructMember { name: Some(name), ty, binding: None, offset });
        end = offset + width;
    }
    let inner = TypeInner::Struct { members, span: end.next_multiple_of(8) };
    let ty = module.types.insert(Type { name: Some(type_name.to_owned()), inner }, Span::UNDEFINED);
    module.global_variables.append(variable(name, AddressSpace::Immediate, ty), Span::UNDEFINED)
}
