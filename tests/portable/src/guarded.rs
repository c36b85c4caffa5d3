//! Programs whose checks are part of their module, on the host, which makes no others: so it tells what SPIR-V does out of
//! range, where a driver that checks by itself would hide it.

use runtime_core::{CodeFormat, DeviceInfo, Lowered, Lowering, OptionSpec, Portable, Result};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};

/// The lowering of WGSL for a host device, with checks of its own.
#[derive(Debug)]
pub(crate) struct Guarded(pub(crate) std::sync::Arc<dyn Lowering>);

impl Lowering for Guarded {
    fn format(&self) -> CodeFormat {
        self.0.format()
    }

    fn options(&self) -> Vec<OptionSpec> {
        self.0.options()
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        self.0.target(device).filter(|format| *format == CodeFormat::C)
    }

    fn lower(&self, source: &Portable<'_>, device: &DeviceInfo) -> Result<Lowered> {
        let lowered = self.0.lower(source, device)?;
        let constants = source.options.texts("constant").map(Specialisation::parse_constant);
        let element = source.options.text("element").map(str::parse).transpose()?;
        let specialisation = Specialisation { constants: constants.collect::<Result<_>>()?, element };
        let program = Program::parse(source.code, source.path, &specialisation)?;
        let code = program.guarded(Checks::Bounded)?.c(Dialect::Host, Checks::Unchecked)?;
        Ok(Lowered { code: code.text.into_bytes(), ..lowered })
    }
}
