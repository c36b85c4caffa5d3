//! The time until a portable kernel is ready: compiled, from the code cache on disk, and when it is loaded already; and for
//! many kernels at once. `LOADING_DEVICES` (default: `host`) names the devices, `LOADING_KERNELS` (default: 50) the number of kernels.
#![allow(missing_docs, clippy::print_stdout, reason = "a benchmark that reports")]

use std::path::Path;
use std::time::{Duration, Instant};

use runtime_bench::{builder, is_measuring, measure_by_default};
use runtime_core::cache::{CacheOptions, CodeCache};
use runtime_core::{Device, ModuleSource, Runtime, read_write};

const CALLS: usize = 1000;
const ROUNDS: usize = 30;

fn main() {
    measure_by_default();
    let devices = std::env::var("LOADING_DEVICES").unwrap_or_else(|_| "host".to_owned());
    let kernels = std::env::var("LOADING_KERNELS").ok().and_then(|text| text.parse().ok());
    let kernels = kernels.unwrap_or(if is_measuring() { 50 } else { 2 });
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    println!(
        "| device | compiled | from disk, until the first result | from disk | loaded already | {kernels} kernels compiled | from disk |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for device in devices.split(',') {
        report(device, kernels);
    }
}

fn report(device: &str, kernels: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = || runtime(folder.path()).open(device);
    let opened = match open() {
        Ok(opened) => opened,
        Err(error) => return println!("| {device} | {error} | | | | | |"),
    };
    let compiled = time(|| first_result(&opened, &source(0)));
    // Another device, so that nothing is in memory.
    let again = open().expect("it opened before");
    let first = time(|| first_result(&again, &source(0)));
    let mut from_disk: Vec<_> = (0..ROUNDS).map(|_| time(|| drop(load(&again, &source(0))))).collect();
    from_disk.sort();
    let (kept, shared) = (load(&again, &source(0)), source(0));
    let in_memory = time(|| (0..CALLS).for_each(|_| drop(load(&again, &shared))));
    drop(kept);
    let all = |device: &Device| {
        time(|| drop((0..kernels).map(|at| load(device, &source(at + 1))).collect::<Vec<_>>()))
    };
    let cold = all(&opened);
    // Their modules would slow the driver down.
    drop((opened, again));
    let warm = all(&open().expect("it opened before"));
    let ms = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let each = in_memory.as_nanos() / CALLS as u128;
    println!(
        "| {device} | {} | {} | {} | {each} ns | {} | {} |",
        ms(compiled),
        ms(first),
        ms(from_disk[ROUNDS / 2]),
        ms(cold),
        ms(warm)
    );
}

/// A runtime with a code cache of its own in `folder`.
#[allow(unsafe_code, reason = "names the folder of a code cache")]
fn runtime(folder: &Path) -> Runtime {
    // SAFETY: only this program writes to the folder.
    let options = unsafe { CacheOptions::default().with_folder(folder) };
    builder().with_lowering(runtime_kernel::wgsl()).code_cache(CodeCache::with_options(options)).build()
}

/// A kernel like many: a polynomial of each element, which no other has.
fn source(number: usize) -> ModuleSource {
    ModuleSource::wgsl(&format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @compute @workgroup_size(64) fn polynomial(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&x) {{
                 let v = x[id.x];
                 var sum = {number}.0;
                 for (var i = 0; i < 8; i++) {{ sum = fma(sum, v, f32(i)); }}
                 x[id.x] = exp(sum) + sin(v) * sqrt(abs(sum));
             }}
         }}"
    ))
}

fn load(device: &Device, source: &ModuleSource) -> runtime_core::Kernel {
    device.kernel(source, "polynomial").expect("the kernel is right")
}

fn first_result(device: &Device, source: &ModuleSource) {
    let kernel = load(device, source);
    let x = device.tensor([64], &[0.0f32; 64]).expect("there is memory");
    let queue = device.queue().expect("a queue opens");
    queue.call(&kernel, (1, 64), (read_write(&x),)).expect("it runs");
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
