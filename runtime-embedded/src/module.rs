//! The code of images, and its options. An image is flashed with its arguments, so there are no modules.

use std::convert::Infallible;

use runtime_core::backend::{Kernel, Module};
use runtime_core::{OptionSpec, Options, Result};

/// The formats that a board accepts, the preferred one first.
pub(crate) const FORMATS: [&str; 2] = ["c", "elf"];
/// Most calls of the kernel in a run.
const MAX_CALLS: i64 = 1 << 30;

/// The options of images.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module("entry", "", "Function to call; default: the only one that is not static."),
        OptionSpec::module("flags", "", "Additional flag for the C compiler; may be repeated."),
        OptionSpec::module("calls", 1, "Calls of the kernel per run; the count is that of all calls."),
        OptionSpec::module("debug", false, "Compile for a debugger."),
    ]
}

/// The number of calls per run.
pub(crate) fn calls(options: &Options) -> Result<u32> {
    let calls = options.integer_within("calls", 1, 1..=MAX_CALLS)?;
    Ok(u32::try_from(calls).unwrap_or(u32::MAX))
}

/// A module, of which there are none.
#[derive(Debug)]
pub struct NoModule(Infallible);

/// A kernel of a module, of which there are none.
#[derive(Debug)]
pub struct NoKernel(Infallible);

impl Module for NoModule {
    type Kernel = NoKernel;

    fn symbols(&self) -> &[String] {
        match self.0 {}
    }

    fn kernel(&self, _name: &str) -> Result<NoKernel> {
        match self.0 {}
    }
}

impl Kernel for NoKernel {}
