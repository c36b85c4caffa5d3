//! Lowerings of WGSL with other bounds checks than the default, and to code that takes little time to compile.

use std::sync::Arc;

use runtime_core::lowering::{Lowered, Lowering, PortableSource};
use runtime_core::{CodeFormat, Result};
use runtime_kernel::{CCode, Checks, Dialect, Program, Specialisation};

use crate::modified_lowering::{modified, modified_lowering};

/// Bounds checks in the module, as for SPIR-V. The host shows their effect on accesses out of range, which a driver
/// with its own checks would hide.
#[must_use]
pub fn in_module() -> Arc<dyn Lowering> {
    let write =
        |program: Program| program.with_bounds_checks(Checks::Bounded)?.c(Dialect::Host, Checks::Unchecked);
    modified_lowering(Some(CodeFormat::C), move |source, _, lowered| {
        rewrite(source, lowered, write)?;
        compile_quickly(lowered);
        Ok(())
    })
}

/// A lowering with code that takes little time to compile.
#[must_use]
pub fn quick_to_compile(lowering: Arc<dyn Lowering>) -> Arc<dyn Lowering> {
    modified(lowering, None, |_, _, lowered| {
        compile_quickly(lowered);
        Ok(())
    })
}

/// Turns the compiler's optimisations off, for a sixth of the time to compile: for checks that no user runs, and for options of
/// which a similar one is tested with optimised code.
fn compile_quickly(lowered: &mut Lowered) {
    if lowered.format == CodeFormat::C {
        lowered.options.push("flags", "-O0");
    } else if lowered.format == CodeFormat::OPENCL_C {
        lowered.options.push("build_options", "-cl-opt-disable");
    }
}

/// No bounds checks: an index out of range has undefined behaviour. Only for child processes, which may crash.
#[must_use]
pub fn unchecked() -> Arc<dyn Lowering> {
    modified_lowering(Some(CodeFormat::C), |source, _, lowered| {
        rewrite(source, lowered, |program| program.c(Dialect::Host, Checks::Unchecked))
    })
}

/// Replaces the code by what `write` makes of the program.
fn rewrite(
    source: &PortableSource<'_>,
    lowered: &mut Lowered,
    write: impl Fn(Program) -> Result<CCode>,
) -> Result<()> {
    let specialisation = Specialisation::of_options(source.options)?;
    lowered.code = write(Program::parse(source.code, source.path, &specialisation)?)?.text.into_bytes();
    Ok(())
}
