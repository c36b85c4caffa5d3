//! Lowerings of WGSL to host C with other bounds checks than the default.

use std::sync::Arc;

use runtime_core::{CodeFormat, Lowering, Result};
use runtime_kernel::{CCode, Checks, Dialect, Program, Specialisation};

use crate::modified_lowering::modified_lowering;

/// Code that no user runs is compiled in a third of the time; how gcc optimises is tested with the code that users run.
const QUICK_TO_COMPILE: &str = "#pragma GCC optimize(\"O1\")\n";

/// Bounds checks in the module, as for SPIR-V. The host shows their effect on accesses out of range, which a driver
/// with its own checks would hide.
#[must_use]
pub fn in_module() -> Arc<dyn Lowering> {
    host_lowering(|program| {
        let code = program.with_bounds_checks(Checks::Bounded)?.c(Dialect::Host, Checks::Unchecked)?;
        Ok(CCode { text: format!("{QUICK_TO_COMPILE}{}", code.text), ..code })
    })
}

/// The default checks, in code that takes little time to compile.
#[must_use]
pub fn quick_to_compile() -> Arc<dyn Lowering> {
    modified_lowering(Some(CodeFormat::C), |_, _, lowered| {
        lowered.code.splice(0..0, QUICK_TO_COMPILE.bytes());
        Ok(())
    })
}

/// No bounds checks: an index out of range has undefined behaviour. Only for child processes, which may crash.
#[must_use]
pub fn unchecked() -> Arc<dyn Lowering> {
    host_lowering(|program| program.c(Dialect::Host, Checks::Unchecked))
}

/// A lowering for the host that writes its C with `write`.
fn host_lowering(write: fn(Program) -> Result<CCode>) -> Arc<dyn Lowering> {
    modified_lowering(Some(CodeFormat::C), move |source, _, lowered| {
        let specialisation = Specialisation::of_options(source.options)?;
        lowered.code = write(Program::parse(source.code, source.path, &specialisation)?)?.text.into_bytes();
        Ok(())
    })
}
