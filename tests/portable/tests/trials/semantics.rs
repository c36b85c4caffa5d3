//! The tables of expressions and the annotated kernels, on every device that accepts WGSL.

use std::sync::Arc;

use libtest_mimic::Trial;
use portable::batch::{self, Executor};
use portable::programs;

pub(crate) fn trials(executors: &[Arc<dyn Executor>]) -> Vec<Trial> {
    let mut modules = Vec::new();
    for executor in executors {
        for (topic, programs) in programs::all() {
            if applies(executor.name(), topic) {
                modules.extend(batch::trials(executor, topic, programs));
            }
        }
    }
    batch::in_order(modules)
}

/// Whether a topic tests what distinguishes an executor from its device: checks of indices are no matter of arithmetic.
fn applies(executor: &str, topic: &str) -> bool {
    let (device, variant) = executor.split_once('/').unwrap_or((executor, ""));
    match variant {
        // PoCL 3.1 miscompiles barriers in a second variant.
        "two" => topic == "ranges" || topic == "groups" && !device.starts_with("opencl"),
        "asserted" | "coarsened" | "loops_1" => !programs::is_table(topic),
        // As with one work-item, but for what work-items share.
        "loops_4" => ["groups", "memory", "schedule", "sums", "zeros"].contains(&topic),
        // LLVM 15 in PoCL 3.1 crashes in its pass for LCSSA when it optimises `groups::reverse_in_group`.
        "optimised_loops_4" => ["memory", "schedule", "sums", "zeros"].contains(&topic),
        // PoCL takes long to compile, and the same without optimisation.
        "debug" if device.starts_with("opencl") => !programs::is_table(topic),
        _ => device != "guarded" || !programs::is_table(topic),
    }
}
