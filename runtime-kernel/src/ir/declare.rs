//! Declarations in a module: types, their names, and variables.

use naga::common::wgsl::TryToWgsl as _;
use naga::{
    AddressSpace, GlobalVariable, Handle, MemoryDecorations, Module, Scalar, Span, StructMember, Type,
    TypeInner, UniqueArena,
};
use runtime_core::DType;

use crate::ir::Global;

/// The scalar types of tensors, arguments and aliases.
pub(crate) const ELEMENTS: [(DType, Scalar); 7] = [
    (DType::F32, Scalar::F32),
    (DType::F16, Scalar::F16),
    (DType::F64, Scalar::F64),
    (DType::I32, Scalar::I32),
    (DType::U32, Scalar::U32),
    (DType::I64, Scalar::I64),
    (DType::U64, Scalar::U64),
];

pub(crate) fn scalar_of(dtype: DType) -> Option<Scalar> {
    ELEMENTS.into_iter().find(|(known, _)| *known == dtype).map(|(_, scalar)| scalar)
}

pub(crate) fn dtype_of(scalar: Scalar) -> Option<DType> {
    ELEMENTS.into_iter().find(|(_, known)| *known == scalar).map(|(dtype, _)| dtype)
}

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

/// WGSL's name of a scalar type.
pub(crate) fn scalar_name(scalar: Scalar) -> &'static str {
    scalar.try_to_wgsl().unwrap_or("unknown")
}

/// Whether a type, or one that its values have parts of, has a property.
pub(crate) fn has_part(
    module: &Module,
    ty: Handle<Type>,
    is: &impl Fn(Handle<Type>, &TypeInner) -> bool,
) -> bool {
    let inner = &module.types[ty].inner;
    is(ty, inner)
        || match inner {
            TypeInner::Array { base, .. } => has_part(module, *base, is),
            TypeInner::Struct { members, .. } => members.iter().any(|member| has_part(module, member.ty, is)),
            _ => false,
        }
}

/// Whether a type contains an atomic.
pub(crate) fn has_atomics(module: &Module, ty: Handle<Type>) -> bool {
    has_part(module, ty, &|_, inner| matches!(inner, TypeInner::Atomic(_)))
}
