//! Views: launches, sizes beyond memory, and random views compared with a model.

#![allow(unsafe_code, reason = "loads code of the null device, and takes tensors back from DLPack")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod launches;
mod model;
mod random;
mod shapes;
mod sizes;
mod threads;

use std::sync::Arc;

use runtime_core::{CommonRuntime, Kernel, ModuleSource, Options, Queue, Runtime};

fn open(name: &str, options: &Options) -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    runtime.open_with(name, options).unwrap()
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    // SAFETY: the builtins check their arguments.
    device.kernel(&unsafe { ModuleSource::native("null", name) }, name).unwrap()
}

fn queue(device: &dyn CommonRuntime) -> Queue {
    device.queue().unwrap()
}
