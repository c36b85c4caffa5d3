//! Fused kernels leave the same bits in their tensors as the launches that they stand for, on the host.

mod cases;
mod internalisation;
#[allow(dead_code, reason = "`tests/kernel-fuzz` uses the rest")]
mod lists;
mod support;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use runtime_core::Runtime;

fn main() -> ExitCode {
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).discover(false);
    let device = runtime.register(runtime_host::backend()).build().open("host").expect("the host");
    let trials = cases::CASES.iter().chain(internalisation::CASES).map(|(name, test)| {
        let device = Arc::clone(&device);
        Trial::test(*name, move || {
            test(&device);
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
