//! Fused kernels leave the same bits in their tensors as the launches that they stand for, on the host.

mod cases;
mod internalisation;
#[allow(dead_code, reason = "`tests/kernel-fuzz` uses the rest")]
mod lists;
mod support;

use std::sync::Arc;

use libtest_mimic::Trial;
use runtime_core::Runtime;

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).discover(false);
    let device = runtime.register(runtime_host::backend()).build().open("host").expect("the host");
    let cases = cases::CASES.iter().chain(internalisation::CASES).map(|(name, test)| {
        let device = Arc::clone(&device);
        Trial::test(format!("fuse::{name}"), move || {
            test(&device);
            Ok(())
        })
    });
    cases.collect()
}
