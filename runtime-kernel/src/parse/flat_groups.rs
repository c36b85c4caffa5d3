//! Validates modules whose work-groups of two or three dimensions use the built-in values of subgroups, which naga allows in one
//! dimension only (gfx-rs/wgpu#8598). WGSL leaves the order of the invocations to the device in any case.

use naga::valid::{EntryPointError, ModuleInfo, ValidationError, Validator, VaryingError};
use naga::{Module, WithSpan};

use super::f16_immediates;

/// Validates a module.
pub(super) fn validate(
    module: &Module,
    validator: &mut Validator,
) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    match f16_immediates::validate(module, validator) {
        Err(error) if is_about_dimensions(error.as_inner()) => {
            let mut flat = module.clone();
            for entry in &mut flat.entry_points {
                entry.workgroup_size[1..].iter_mut().for_each(|size| *size = (*size).min(1));
            }
            f16_immediates::validate(&flat, validator)
        }
        other => other,
    }
}

const fn is_about_dimensions(error: &ValidationError) -> bool {
    let ValidationError::EntryPoint { source, .. } = error else { return false };
    matches!(source, EntryPointError::Argument(_, VaryingError::InvalidMultiDimensionalSubgroupBuiltIn))
}
