//! What a wait costs on the stand-in, whose device is the processor that waits.

use std::time::Instant;

use libtest_mimic::Failed;
use runtime_core::{Geometry, ModuleSource, Runtime};

/// A millisecond or so: a wait that polls would still be spinning.
const CODE: &str = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(16) fn spin(@builtin(global_invocation_id) id: vec3u) {
        var value = x[id.x % arrayLength(&x)];
        for (var i = 0u; i < 800u; i++) { value = value * 1664525u + 1013904223u; }
        x[id.x % arrayLength(&x)] = value;
    }";
const LAUNCHES: u32 = 100;
/// Of the time until kernels have ended, the part that this thread may use: it launches and is woken. A wait that polls uses more of it,
/// unless other processes take the time.
const SHARE: f64 = 0.25;

/// Nanoseconds that this thread has run.
fn own_ns() -> Result<f64, Failed> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

pub(crate) fn check() -> Result<(), Failed> {
    let device = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build().open("mppa")?;
    let (kernel, x) =
        (device.kernel(ModuleSource::wgsl(CODE), "spin")?, device.tensor([4096], &[1u32; 4096])?);
    let queue = device.queue()?;
    let run = || queue.launch(&kernel, Geometry::new(256, 16), (&x,))?.wait();
    // The first launch compiles.
    run()?;
    let (begin, before) = (Instant::now(), own_ns()?);
    for _ in 0..LAUNCHES {
        run()?;
    }
    let share = (own_ns()? - before) / begin.elapsed().as_secs_f64() / 1e9;
    let each_ms = begin.elapsed().as_secs_f64() * 1e3 / f64::from(LAUNCHES);
    match share < SHARE {
        true => Ok(()),
        false => Err(format!("{share:.2} of {each_ms:.2} ms per launch").into()),
    }
}
