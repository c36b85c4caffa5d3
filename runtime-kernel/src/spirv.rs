//! SPIR-V for Vulkan: naga's writer, with what a compute runtime wants.

use naga::back::spv::{self, WriterFlags, ZeroInitializeWorkgroupMemoryMode};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::ValidationError;
use naga::{AddressSpace, Expression, Handle, MathFunction, Module, Scalar, Type, TypeInner, WithSpan};
use runtime_core::{Error, ErrorKind, Result};

use crate::parse::validate;
use crate::program::{Checks, Program};
use crate::{halves, immediates, widen};

/// The newest version that every Vulkan 1.1 device takes; subgroup operations need it.
const VERSION: (u8, u8) = (1, 3);

pub(crate) fn write(program: &Program, checks: Checks) -> Result<Vec<u32>> {
    refuse_wide_mathematics(program)?;
    let options = spv::Options {
        lang_version: VERSION,
        flags: WriterFlags::DEBUG,
        bounds_check_policies: policies(&program.module, checks),
        // WGSL asks for zeros; they cost a barrier in each kernel, and no other target has them.
        zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        // There is no shader input or output to hold an f16, and not every device has this capability.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    };
    let widened = widen::in_two_steps(program)?;
    let module = widened.as_ref().unwrap_or(&program.module);
    let packed = immediates::has_halves(module).then(|| halves::pack(module)).transpose()?;
    let written = match packed.as_ref().or(widened.as_ref()) {
        Some(changed) => {
            let invalid = |error: Box<WithSpan<ValidationError>>| {
                Error::new(ErrorKind::Internal, format!("writing SPIR-V: {}", error.into_inner()))
            };
            spv::write_vec(changed, &validate(changed).map_err(invalid)?, &options, None)
        }
        None => spv::write_vec(&program.module, &program.info, &options, None),
    };
    written.map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("{}: in SPIR-V: {error}", program.path()))
    })
}

/// naga cannot skip an atomic operation, nor keep a skipped load atomic: where atomics stand in arrays, an index is
/// clamped to the last element, which WGSL allows as well.
fn policies(module: &Module, checks: Checks) -> BoundsCheckPolicies {
    if checks == Checks::Unchecked {
        return BoundsCheckPolicies::default();
    }
    let policy = |is_space: fn(AddressSpace) -> bool| {
        let mut variables = module.global_variables.iter().filter(|(_, variable)| is_space(variable.space));
        match variables.any(|(_, variable)| has_atomic_elements(module, variable.ty, false)) {
            true => BoundsCheckPolicy::Restrict,
            false => BoundsCheckPolicy::ReadZeroSkipWrite,
        }
    };
    BoundsCheckPolicies {
        index: policy(|space| space == AddressSpace::WorkGroup),
        buffer: policy(|space| matches!(space, AddressSpace::Storage { .. })),
        ..BoundsCheckPolicies::default()
    }
}

fn has_atomic_elements(module: &Module, ty: Handle<Type>, in_array: bool) -> bool {
    match &module.types[ty].inner {
        TypeInner::Atomic(_) => in_array,
        TypeInner::Array { base, .. } => has_atomic_elements(module, *base, true),
        TypeInner::Struct { members, .. } => {
            members.iter().any(|member| has_atomic_elements(module, member.ty, in_array))
        }
        _ => false,
    }
}

/// naga writes instructions of GLSL that have no form for f64.
fn refuse_wide_mathematics(program: &Program) -> Result<()> {
    let module = &program.module;
    let functions = module.functions.iter().map(|(handle, function)| (function, &program.info[handle]));
    let entries = module.entry_points.iter().enumerate();
    let entries = entries.map(|(index, entry)| (&entry.function, program.info.get_entry_point(index)));
    for (function, info) in functions.chain(entries) {
        for (handle, expression) in function.expressions.iter() {
            let Expression::Math { fun, arg, .. } = *expression else { continue };
            let scalar = info[arg].ty.inner_with(&module.types).scalar();
            if scalar == Some(Scalar::F64) && is_narrow(fun) {
                let name = format!("{fun:?}").to_lowercase();
                return Err(program.unsupported(
                    format!("`{name}` of f64 in SPIR-V"),
                    function.expressions.get_span(handle),
                ));
            }
        }
    }
    Ok(())
}

const fn is_narrow(function: MathFunction) -> bool {
    use MathFunction as F;
    matches!(
        function,
        F::Cos
            | F::Cosh
            | F::Sin
            | F::Sinh
            | F::Tan
            | F::Tanh
            | F::Acos
            | F::Asin
            | F::Atan
            | F::Atan2
            | F::Asinh
            | F::Acosh
            | F::Atanh
            | F::Radians
            | F::Degrees
            | F::Exp
            | F::Exp2
            | F::Log
            | F::Log2
            | F::Pow
    )
}
