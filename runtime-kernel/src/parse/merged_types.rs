//! Makes one type of those that differ in name only: WGSL has nominal structures and nothing else, but naga keeps the name
//! of an alias on the type (since gfx-rs/wgpu 4733), so that `alias Row = array<f32, 4>` and `array<f32, 4>` are two types
//! for it.

use naga::{
    AddressSpace, Expression, Function, Handle, Module, PredeclaredType, Type, TypeInner, UniqueArena,
};

use super::constants;
use super::textures::packed_dtype;
use crate::ir::blocks::functions_mut;
use crate::ir::declare::scalar_name;

/// Merges the types of a parsed module that differ in the names of aliases, also inside other types.
pub(super) fn merge(module: &mut Module) {
    let is_alias = |ty: &Type| ty.name.is_some() && !matches!(ty.inner, TypeInner::Struct { .. });
    // Entry points of other stages, which have types of their own, are refused later.
    let is_compute = module.entry_points.iter().all(|entry| entry.mesh_info.is_none());
    let results = results(module);
    if is_compute && (!results.is_empty() || module.types.iter().any(|(_, ty)| is_alias(ty))) {
        let variables = module.global_variables.iter();
        let immediates: Vec<_> = variables
            .filter(|(_, variable)| variable.space == AddressSpace::Immediate)
            .map(|(_, variable)| variable.ty)
            .collect();
        let merged = Merged::of(&mut module.types, &immediates, &results);
        merged.renew_module(module);
    }
}

/// The structures that naga has made for `frexp` and `modf`, and the names of those that constants have in the text.
fn results(module: &Module) -> Vec<(Handle<Type>, String)> {
    let named = module.special_types.predeclared_types.iter().filter_map(|(kind, ty)| {
        let (function, size, scalar) = match *kind {
            PredeclaredType::FrexpResult { size, scalar } => ("frexp", size, scalar),
            PredeclaredType::ModfResult { size, scalar } => ("modf", size, scalar),
            PredeclaredType::AtomicCompareExchangeWeakResult(_) => return None,
        };
        Some((
            *ty,
            constants::result_name(function, size.map_or(1, |size| size as usize), scalar_name(scalar)),
        ))
    });
    let is_in_text = |name: &str| module.types.iter().any(|(_, ty)| ty.name.as_deref() == Some(name));
    named.filter(|(_, name)| is_in_text(name)).collect()
}

/// Gives a structure of two members the layout that a text has; naga's has a vector of three right behind another.
fn lay_out(inner: &mut TypeInner) {
    if let TypeInner::Struct { members, span } = inner
        && let [_, second] = &mut members[..]
    {
        second.offset = second.offset.next_power_of_two();
        *span = 2 * second.offset;
    }
}

/// By old type: the merged one.
struct Merged(Vec<Handle<Type>>);

impl Merged {
    /// Scalars of the structures in `immediates` keep the names of their aliases, which signatures tell.
    fn of(
        types: &mut UniqueArena<Type>,
        immediates: &[Handle<Type>],
        results: &[(Handle<Type>, String)],
    ) -> Self {
        let (mut new, mut merged) = (UniqueArena::new(), Self(Vec::with_capacity(types.len())));
        for (old, ty) in types.iter() {
            let Type { mut name, mut inner } = ty.clone();
            match &mut inner {
                TypeInner::Array { base, .. }
                | TypeInner::Pointer { base, .. }
                | TypeInner::BindingArray { base, .. } => merged.renew(base),
                TypeInner::Struct { members, .. } => {
                    for member in members {
                        let own = &types[member.ty];
                        if immediates.contains(&old) && matches!(own.inner, TypeInner::Scalar(_)) {
                            member.ty = new.insert(own.clone(), types.get_span(member.ty));
                        } else {
                            merged.renew(&mut member.ty);
                        }
                    }
                }
                _ => {}
            }
            // The name of a texture's buffer says what is packed in its words.
            let is_packed = name.as_deref().is_some_and(|name| packed_dtype(name).is_some());
            if !is_packed && !matches!(inner, TypeInner::Struct { .. }) {
                name = None;
            }
            if let Some((_, result)) = results.iter().find(|(ty, _)| *ty == old) {
                name = Some(result.clone());
                lay_out(&mut inner);
            }
            merged.0.push(new.insert(Type { name, inner }, types.get_span(old)));
        }
        *types = new;
        merged
    }

    fn renew(&self, ty: &mut Handle<Type>) {
        *ty = self.0[ty.index()];
    }

    fn renew_module(&self, module: &mut Module) {
        let special = &mut module.special_types;
        let rays = [&mut special.ray_desc, &mut special.ray_intersection, &mut special.ray_vertex_return];
        rays.into_iter().flatten().for_each(|ty| self.renew(ty));
        special.predeclared_types.values_mut().for_each(|ty| self.renew(ty));
        module.constants.iter_mut().for_each(|(_, constant)| self.renew(&mut constant.ty));
        module.overrides.iter_mut().for_each(|(_, constant)| self.renew(&mut constant.ty));
        module.global_variables.iter_mut().for_each(|(_, variable)| self.renew(&mut variable.ty));
        module.global_expressions.iter_mut().for_each(|(_, value)| self.renew_expression(value));
        functions_mut(module).for_each(|function| self.renew_function(function));
    }

    fn renew_function(&self, function: &mut Function) {
        function.arguments.iter_mut().for_each(|argument| self.renew(&mut argument.ty));
        function.result.iter_mut().for_each(|result| self.renew(&mut result.ty));
        function.local_variables.iter_mut().for_each(|(_, variable)| self.renew(&mut variable.ty));
        function.expressions.iter_mut().for_each(|(_, value)| self.renew_expression(value));
    }

    fn renew_expression(&self, expression: &mut Expression) {
        if let Expression::Compose { ty, .. }
        | Expression::ZeroValue(ty)
        | Expression::AtomicResult { ty, .. }
        | Expression::WorkGroupUniformLoadResult { ty }
        | Expression::SubgroupOperationResult { ty } = expression
        {
            self.renew(ty);
        }
    }
}
