//! SPIR-V for Vulkan: naga's writer, with what a compute runtime wants.

mod loops;

use naga::back::spv::{self, WriterFlags, ZeroInitializeWorkgroupMemoryMode};
use naga::{Expression, MathFunction, Scalar};
use runtime_core::{Error, ErrorKind, Result};

use crate::parse::validate_again;
use crate::program::{Checks, Program};
use crate::{guard, halves, immediates, mend};

/// The newest version that every Vulkan 1.1 device takes; subgroup operations need it.
const VERSION: (u8, u8) = (1, 3);

/// Writes a program: its accesses are checked by the module itself (`guard`).
pub(crate) fn write(program: &Program, checks: Checks) -> Result<Vec<u32>> {
    refuse_wide_mathematics(program)?;
    let mended = mended(program)?;
    let program = mended.as_ref().unwrap_or(program);
    let guarded = checks.are_made().then(|| guard::guarded(program, checks)).transpose()?;
    let module = guarded.as_ref().unwrap_or(&program.module);
    let packed = immediates::has_halves(module).then(|| halves::pack(module)).transpose()?;
    let written = match packed.as_ref().or(guarded.as_ref()) {
        Some(changed) => spv::write_vec(changed, &validate_again(changed)?, &options(), None),
        None => spv::write_vec(module, &program.info, &options(), None),
    };
    let mut words = written.map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("{}: in SPIR-V: {error}", program.path()))
    })?;
    loops::write_out(module, &mut words);
    Ok(words)
}

fn options() -> spv::Options<'static> {
    spv::Options {
        lang_version: VERSION,
        flags: WriterFlags::DEBUG,
        // WGSL asks for zeros; they cost a barrier in each kernel, and no other target has them.
        zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        // There is no shader input or output to hold an f16, and not every device has this capability.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    }
}

/// The program without what naga's writer does otherwise; `None` where it has nothing of it.
fn mended(program: &Program) -> Result<Option<Program>> {
    let Some(module) = mend::mended(program)? else { return Ok(None) };
    let info = validate_again(&module)?;
    Ok(Some(Program { module, info, ..program.clone() }))
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
