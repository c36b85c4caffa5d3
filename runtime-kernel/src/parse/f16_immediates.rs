//! Allows f16 scalar arguments, which naga's validator rejects in immediates.
//!
//! During validation such a variable is declared private, an address space that allows every type. A private
//! variable may be written, though, so that is checked here instead.

use naga::valid::{GlobalUse, ModuleInfo, ValidationError, Validator};
use naga::{AddressSpace, Module, Scalar, TypeInner, WithSpan};
use runtime_core::Result;

use super::diagnostics::{failed, location};
use crate::ir::Global;

/// The immediate variables with an f16 member.
fn f16_variables(module: &Module) -> Vec<Global> {
    let mut found = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let TypeInner::Struct { members, .. } = &module.types[variable.ty].inner else { continue };
        let is_f16 =
            |ty| matches!(module.types[ty].inner, TypeInner::Scalar(scalar) if scalar == Scalar::F16);
        if variable.space == AddressSpace::Immediate && members.iter().any(|member| is_f16(member.ty)) {
            found.push(handle);
        }
    }
    found
}

/// Whether a module has f16 immediates.
pub(crate) fn has_f16(module: &Module) -> bool {
    !f16_variables(module).is_empty()
}

/// The names of the variables that were made private; handles do not survive every step.
#[derive(Debug)]
pub(crate) struct MadePrivate(Vec<Option<String>>);

/// Turns immediates with f16 members into private variables.
pub(crate) fn make_private(module: &mut Module) -> MadePrivate {
    let names = f16_variables(module).into_iter().map(|handle| {
        let variable = module.global_variables.get_mut(handle);
        variable.space = AddressSpace::Private;
        variable.name.clone()
    });
    MadePrivate(names.collect())
}

impl MadePrivate {
    /// Turns them back into immediates.
    ///
    /// # Errors
    /// `CompileFailed`, with the variable's location in `code`, if an entry point writes one.
    pub(crate) fn restore(
        &self,
        module: &mut Module,
        info: &ModuleInfo,
        code: &str,
        path: &str,
    ) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let entries = module.entry_points.len();
        let is_written = |handle: Global| {
            (0..entries).any(|entry| info.get_entry_point(entry)[handle].contains(GlobalUse::WRITE))
        };
        let restored: Vec<_> = module
            .global_variables
            .iter()
            .filter(|(_, variable)| {
                variable.space == AddressSpace::Private && self.0.contains(&variable.name)
            })
            .map(|(handle, _)| handle)
            .collect();
        for handle in restored {
            if is_written(handle) {
                let place = location(code, path, module.global_variables.get_span(handle));
                let name = module.global_variables[handle].name.as_deref().unwrap_or_default();
                return Err(failed(format!(
                    "{place}: \"{name}\" is written; a var<immediate> can only be read"
                )));
            }
            module.global_variables.get_mut(handle).space = AddressSpace::Immediate;
        }
        Ok(())
    }
}

/// Validates a module that may have f16 immediates.
pub(crate) fn validate(
    module: &Module,
    validator: &mut Validator,
) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    if !has_f16(module) {
        return validator.validate(module).map_err(Box::new);
    }
    let mut copy = module.clone();
    make_private(&mut copy);
    validator.validate(&copy).map_err(Box::new)
}
