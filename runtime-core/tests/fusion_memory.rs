//! Many fusions use no more memory than the first ones. Alone in its process, because it measures the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "shared with the other tests of fusion")]
#[path = "integration/fusion/lowering.rs"]
mod lowering;

use runtime_core::fusion::FusionOptions;
use runtime_core::{ModuleSource, Runtime, read, write};

/// Fusions; ten times as many in CI.
const FUSIONS: usize = 10_000;
/// After these, the memory must not grow any more, but for the allocator's own.
const FIRST: usize = FUSIONS / 10;
const TOLERANCE_BYTES: u64 = 4 << 20;

/// The resident memory of this process.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

#[test]
fn many_fusions_use_flat_memory() {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend());
    let device = runtime.with_lowering(lowering::joining()).build().open("null:0").unwrap();
    let copy = device.kernel(ModuleSource::wgsl("copy = copy_bytes"), "copy").unwrap();
    let queue = device.queue().unwrap();
    let (a, out) = (device.tensor([1], &[1.0f32]).unwrap(), device.empty::<f32>([1]).unwrap());
    let mut memory = 0;
    let mut kept = None;
    let fusions = if std::env::var_os("CI").is_some() { 10 * FUSIONS } else { FUSIONS };
    for n in 0..fusions {
        let fuser = queue.fuser(&FusionOptions::new().limit(2)).unwrap();
        let between = device.empty::<f32>([1]).unwrap();
        for _ in 0..2 {
            fuser.queue().launch(&copy, (1, 1), (read(&a), write(&between))).unwrap();
            kept = Some(fuser.queue().launch(&copy, (1, 1), (read(&between), write(&out))).unwrap());
        }
        drop(between);
        match n % 3 {
            0 => drop(fuser),
            1 => fuser.cancel().unwrap(),
            _ => drop(fuser.complete().unwrap()),
        }
        if n == FIRST {
            memory = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(memory);
    assert!(grown < TOLERANCE_BYTES, "{grown} bytes more");
    kept.unwrap().wait().unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [1.0]);
}
