//! Fused kernels leave the same bits as the launches that they stand for, on OpenCL and Vulkan devices.

#[path = "../../../runtime-kernel/tests/fuse/cases.rs"]
mod cases;
#[path = "../../../runtime-kernel/tests/fuse/internalisation.rs"]
mod internalisation;
#[path = "../../../runtime-kernel/tests/fuse/lists.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod lists;
#[path = "../../../runtime-kernel/tests/fuse/support.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Trial};
use portable::required;
use runtime_core::{ErrorKind, Runtime};

fn main() -> ExitCode {
    let runtime = Arc::new(Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
    let trials = ["opencl", "vulkan", "cuda"].into_iter().flat_map(|device| {
        let runtime = Arc::clone(&runtime);
        cases::CASES.iter().chain(internalisation::CASES).map(move |(name, test)| {
            let runtime = Arc::clone(&runtime);
            Trial::ignorable_test(format!("{device}::{name}"), move || match runtime.open(device) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound)
                        && !required(device) =>
                {
                    Ok(Completion::ignored_with(format!("{device}: {error}")))
                }
                opened => {
                    test(&opened?);
                    Ok(Completion::Completed)
                }
            })
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
