//! The kernel of the backend itself, which does nothing.

#![allow(unsafe_code, reason = "loads code through the driver")]

use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::Primary;
use crate::driver::Raw;
use crate::driver::handle::{Function, Owned, Program};
use crate::module;

const CODE: &str = "kernel void empty(void) {}";

/// Programs of [`CODE`], by the device that they are built for.
#[derive(Debug, Default)]
pub(crate) struct Builtins(Mutex<Vec<(usize, Owned<Program>)>>);

impl Builtins {
    /// A kernel that does nothing, for a device of the context.
    pub(crate) fn empty(&self, primary: &Primary, device: Raw) -> Result<Owned<Function>> {
        let mut programs = self.0.lock();
        let known = programs.iter().position(|(known, _)| *known == device.addr());
        let at = match known {
            Some(at) => at,
            None => {
                programs.push((device.addr(), build(primary, device)?));
                programs.len() - 1
            }
        };
        let program = &programs[at].1;
        let raw = primary.driver.make("clCreateKernel", |calls, code| {
            // SAFETY: the program is built, and the name terminated.
            Some(unsafe { (calls.clCreateKernel?)(program.raw(), c"empty".as_ptr(), code) })
        })?;
        // SAFETY: it was just made.
        Ok(unsafe { Owned::new(primary.driver, raw) })
    }
}

fn build(primary: &Primary, device: Raw) -> Result<Owned<Program>> {
    let program = module::with_source(primary, CODE.as_bytes())?;
    module::build(primary, &program, device, "")?;
    Ok(program)
}
