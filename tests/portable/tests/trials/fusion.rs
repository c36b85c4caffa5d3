//! Fused kernels leave the same bits as the launches that they stand for, on OpenCL and Vulkan devices.

#[path = "../../../../runtime-kernel/tests/trials/fuse/cases.rs"]
mod cases;
#[path = "../../../../runtime-kernel/tests/trials/fuse/internalisation.rs"]
mod internalisation;
#[path = "../../../../runtime-kernel/tests/trials/fuse/lists.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod lists;
#[path = "../../../../runtime-kernel/tests/trials/fuse/support.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::Arc;

use libtest_mimic::{Completion, Trial};
use portable::required;
use runtime_core::{ErrorKind, Runtime};

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Arc::new(Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
    let trials = ["opencl", "vulkan", "cuda"].into_iter().flat_map(|device| {
        let runtime = Arc::clone(&runtime);
        cases::CASES.iter().chain(internalisation::CASES).map(move |(name, test)| {
            let runtime = Arc::clone(&runtime);
            Trial::ignorable_test(format!("fusion::{device}::{name}"), move || match runtime.open(device) {
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
    trials.collect()
}
