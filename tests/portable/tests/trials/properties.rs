//! Random expressions and random kernels on every device, compared with the interpreters of this crate.

use std::sync::Arc;

use libtest_mimic::Trial;
use portable::batch::{self, Executor};
use portable::properties;

pub(crate) fn trials(executors: &[Arc<dyn Executor>]) -> Vec<Trial> {
    let mut modules = Vec::new();
    // The compiler of PoCL 3.1 may crash when it optimises group loops.
    for executor in executors.iter().filter(|executor| !executor.name().ends_with("/optimised_loops_4")) {
        // OpenCL compilers take minutes for what others do in seconds; lavapipe's is slow too.
        let amount = match executor.name() {
            name if name.starts_with("opencl") => properties::FEW,
            name if name.starts_with("vulkan") => properties::SOME,
            _ => properties::MANY,
        };
        modules.extend(properties::trials(executor, amount));
    }
    batch::in_order(modules)
}
