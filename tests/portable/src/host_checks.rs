//! The lowering of WGSL for the host with other checks than its own.

use std::sync::Arc;

use runtime_core::{CodeFormat, Lowering, Result};
use runtime_kernel::{CCode, Checks, Dialect, Program, Specialisation};

use crate::modified_lowering::modified_lowering;

/// Checks that are part of the module, as in SPIR-V: the host shows what they do out of range, where a driver that checks
/// by itself would hide it.
#[must_use]
pub fn in_module() -> Arc<dyn Lowering> {
    host_lowering(|program| program.guarded(Checks::Bounded)?.c(Dialect::Host, Checks::Unchecked))
}

/// No checks: a kernel that indexes out of range does what native code does then. For child processes, which may crash.
#[must_use]
pub fn unchecked() -> Arc<dyn Lowering> {
    host_lowering(|program| program.c(Dialect::Host, Checks::Unchecked))
}

/// A lowering for the host whose C is written by `write`.
fn host_lowering(write: fn(Program) -> Result<CCode>) -> Arc<dyn Lowering> {
    modified_lowering(Some(CodeFormat::C), move |source, _, lowered| {
        let constants = source.options.texts("constant").map(Specialisation::parse_constant);
        let element = source.options.text("element").map(str::parse).transpose()?;
        let specialisation = Specialisation { constants: constants.collect::<Result<_>>()?, element };
        lowered.code = write(Program::parse(source.code, source.path, &specialisation)?)?.text.into_bytes();
        Ok(())
    })
}
