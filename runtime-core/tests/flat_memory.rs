//! A million submissions, many of which depend on the one before, use no more memory than the first ones. Alone in its process,
//! because it measures the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::{Event, Runtime};

const SUBMISSIONS: u64 = 1_000_000;
/// After these, the memory must not grow any more, but for the allocator's own.
const FIRST: u64 = SUBMISSIONS / 10;
const TOLERANCE_BYTES: u64 = 8 << 20;

/// The resident memory of this process.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

#[test]
fn a_million_dependent_submissions_use_flat_memory() {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let device = runtime.open("null:0").unwrap();
    let queues = [device.queue().unwrap(), device.queue().unwrap()];
    let (runs, kept) = (Arc::new(AtomicU64::new(0)), Arc::new(()));
    let (mut last, mut task, mut memory) = (Event::completed(), Event::completed(), 0);
    for (n, queue) in (0..SUBMISSIONS).zip(queues.iter().cycle()) {
        if n % 10 == 0 {
            queue.wait_for_all(&[&last]).unwrap();
        }
        last = queue.launch_noop().unwrap();
        if n % 1000 == 0 {
            let counted = runs.clone();
            let count = move || drop(counted.fetch_add(1, Ordering::Relaxed).to_string());
            // Waiting for the task bounds how many are queued.
            task.wait().unwrap();
            task = queue.host_task(&[&Event::all(&[&last, &task])], count).unwrap();
            queue.keep_until(&[&last], kept.clone()).unwrap();
            last = last.keeping(kept.clone());
        }
        if n == FIRST {
            memory = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(memory);
    assert!(grown < TOLERANCE_BYTES, "{grown} bytes more");
    Event::all(&[&last, &task]).wait().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), SUBMISSIONS / 1000);
}
