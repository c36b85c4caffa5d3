//! Tests of core with the null backend linked in, which `cargo xtask miri` runs to find undefined behaviour and leaks.
//!
//! They are small, because Miri runs them some hundred times slower, and use no files, libraries or `fork`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

mod embedded;
mod failures;
mod graphs;
mod joins;
mod queues;
mod sources;
mod tensors;
mod transfers;
mod waiting;

use std::sync::Arc;

use runtime_core::{
    Arg, CommonRuntime, Event, Geometry, Kernel, ModuleSource, Options, Queue, Result, Runtime, Tensor,
};

/// The duration of work that is in flight while the program continues. Miri's clock advances with its own slow steps.
const BUSY_US: i64 = if cfg!(miri) { 500_000 } else { 20_000 };

fn runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

fn open(device: &str, options: &Options) -> Arc<dyn CommonRuntime> {
    runtime().open_with(device, options).unwrap()
}

/// A device whose work ends late, so that queues are busy while the program continues.
fn slow() -> Arc<dyn CommonRuntime> {
    open("null:0", &Options::new().with("delay_us", BUSY_US))
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    // SAFETY: the null device's builtins check their arguments.
    let source = unsafe { ModuleSource::native("null", name) };
    device.kernel(&source, name).unwrap()
}

fn queue(device: &dyn CommonRuntime) -> Queue {
    device.queue().unwrap()
}

fn launch(queue: &Queue, kernel: &Kernel, args: &[Arg<'_>]) -> Result<Event> {
    queue.launch(kernel, Geometry::single(), args)
}

/// The number of calls of a queue's function, by its index in the null device's `counters`.
fn calls(device: &dyn CommonRuntime, queue: &Queue, function: usize) -> u64 {
    let counts = device.empty::<u64>([8]).unwrap();
    launch(queue, &kernel(device, "counters"), &[Arg::write(&counts)]).unwrap();
    counts.to_vec::<u64>().unwrap()[function]
}

fn floats(device: &dyn CommonRuntime, values: &[f32]) -> Tensor {
    device.tensor([values.len()], values).unwrap()
}
