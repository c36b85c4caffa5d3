//! The backend's own kernel, which does nothing: for launches that measure overhead.

use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::SharedContext;
use crate::driver::Raw;
use crate::driver::handle::{self, Owned, Program};
use crate::program;

const SOURCE: &str = "kernel void empty(void) {}";

/// Programs built from [`SOURCE`], by device.
#[derive(Debug, Default)]
pub(crate) struct BuiltinKernels(Mutex<Vec<(usize, Owned<Program>)>>);

impl BuiltinKernels {
    /// A kernel that does nothing, for a device of the context.
    pub(crate) fn noop(&self, context: &SharedContext, device: Raw) -> Result<Owned<handle::Kernel>> {
        let mut programs = self.0.lock();
        let known = programs.iter().position(|(known, _)| *known == device.addr());
        let index = match known {
            Some(index) => index,
            None => {
                programs.push((device.addr(), build(context, device)?));
                programs.len() - 1
            }
        };
        program::create_kernel(context, programs[index].1.raw(), c"empty")
    }
}

fn build(context: &SharedContext, device: Raw) -> Result<Owned<Program>> {
    let program = program::create_with_source(context, SOURCE.as_bytes())?;
    program::build(context, &program, device, ("", &[]))?;
    Ok(program)
}
