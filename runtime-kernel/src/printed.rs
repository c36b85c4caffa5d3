//! The modules that the writers print, for tests that interpret them.

use naga::Module;
use runtime_core::Result;

use crate::interface::Interface;
use crate::parse::panic_guard;
use crate::print::{c, spirv};
use crate::program::{Checks, Dialect, Program};
use crate::transform::bounds_checks;
use crate::transform::inline::{Purpose, inline};
use crate::transform::pointer_arguments::{self, Parts};

/// A module after all transforms, as a writer prints it.
#[derive(Clone, Debug)]
pub struct PrintedModule {
    /// The language, and how it differs from another module for it.
    pub name: &'static str,
    /// The module.
    pub module: Module,
    /// Whether its own branches keep every access in range; otherwise the writer adds checks.
    pub is_checked: bool,
    /// Whether its own statements zero work-group memory; otherwise the writer does.
    pub is_zeroed: bool,
    /// The entry points whose invocations do the work of several.
    pub coarsened: Vec<Interface>,
}

impl Program {
    /// The modules that are printed in each language. For tests of the transforms: each module has the meaning of the
    /// program.
    ///
    /// # Errors
    /// Those of writing the code.
    pub fn printed_modules(&self) -> Result<Vec<PrintedModule>> {
        panic_guard::run("transforming the kernel", self.depth, || {
            let printed = |name, module, is_checked, is_zeroed| PrintedModule {
                name,
                module,
                is_checked,
                is_zeroed,
                coarsened: Vec::new(),
            };
            let host = c::prepare(self, Dialect::Host, Checks::Bounded)?;
            let device = c::prepare(self, Dialect::OpenCl, Checks::Bounded)?;
            let shader = spirv::prepare(self)?;
            let shader = bounds_checks::with_checks(shader.as_ref().unwrap_or(self), Checks::Bounded)?;
            let copied = pointer_arguments::by_value(self, Parts::Computed)?;
            let source = copied.as_ref().unwrap_or(self);
            let rolled = inline(&source.module, &source.info, Purpose::SpeedWithoutUnrolling)?;
            let coarse = self.clone().coarsened(Some(4))?;
            let coarsened = coarse.interfaces.iter().filter(|interface| interface.items_per_thread > 1);
            let coarsened = coarsened.cloned().collect();
            let prepared = spirv::prepare(&coarse)?;
            let coarse = bounds_checks::with_checks(prepared.as_ref().unwrap_or(&coarse), Checks::Bounded)?;
            let module_of =
                |program: Option<Self>| program.map_or_else(|| self.module.clone(), |it| it.module);
            Ok(vec![
                printed("host C", module_of(host), false, false),
                printed("host C without unrolling", rolled, false, false),
                printed("OpenCL C and CUDA C++", module_of(device), false, true),
                printed("SPIR-V", shader, true, true),
                PrintedModule { coarsened, ..printed("coarsened SPIR-V", coarse, true, true) },
            ])
        })
    }
}
