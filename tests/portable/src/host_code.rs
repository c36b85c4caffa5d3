//! The lowering of WGSL for the host with other checks than its own.

use std::fmt;
use std::sync::Arc;

use runtime_core::{CodeFormat, DeviceInfo, Lowered, Lowering, OptionSpec, Portable, Result};
use runtime_kernel::{CCode, Checks, Dialect, Program, Specialisation};

/// How a program becomes C.
type Write = fn(Program) -> Result<CCode>;

/// A lowering of WGSL for the host whose C is written by a function of the test.
struct HostCode {
    lowering: Arc<dyn Lowering>,
    write: Write,
}

/// Checks that are part of the module, as in SPIR-V: the host shows what they do out of range, where a driver that checks
/// by itself would hide it.
#[must_use]
pub fn guarded() -> Arc<dyn Lowering> {
    host_code(|program| program.guarded(Checks::Bounded)?.c(Dialect::Host, Checks::Unchecked))
}

/// No checks: a kernel that indexes out of range does what native code does then. For child processes, which may crash.
#[must_use]
pub fn unchecked() -> Arc<dyn Lowering> {
    host_code(|program| program.c(Dialect::Host, Checks::Unchecked))
}

fn host_code(write: Write) -> Arc<dyn Lowering> {
    Arc::new(HostCode { lowering: runtime_kernel::wgsl(), write })
}

impl fmt::Debug for HostCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostCode").field(&self.lowering).finish()
    }
}

// SAFETY: code that another lowering made, with a check more; without checks, only tests that expect a crash use it.
#[allow(unsafe_code, reason = "vouches for the lowered code")]
unsafe impl Lowering for HostCode {
    fn format(&self) -> CodeFormat {
        self.lowering.format()
    }

    fn options(&self) -> Vec<OptionSpec> {
        self.lowering.options()
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        self.lowering.target(device).filter(|format| *format == CodeFormat::C)
    }

    fn lower(&self, source: &Portable<'_>, device: &DeviceInfo) -> Result<Lowered> {
        let lowered = self.lowering.lower(source, device)?;
        let constants = source.options.texts("constant").map(Specialisation::parse_constant);
        let element = source.options.text("element").map(str::parse).transpose()?;
        let specialisation = Specialisation { constants: constants.collect::<Result<_>>()?, element };
        let code = (self.write)(Program::parse(source.code, source.path, &specialisation)?)?;
        Ok(Lowered { code: code.text.into_bytes(), ..lowered })
    }
}
