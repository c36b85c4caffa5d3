//! The launch path allocates nothing, on any thread, neither in core nor in the backend.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use runtime_bench::{Fixture, with_busy_queue};
use runtime_core::Runtime;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `realloc`'s contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations in 1000 calls of `operation`, after it was called often enough to have its buffers.
fn allocations(mut operation: impl FnMut()) -> usize {
    counted(5000, &mut operation);
    steady(|| counted(1000, &mut operation))
}

/// The minimum of several rounds: a thread may allocate when it first goes to sleep, which is not part of the launch path;
/// an allocation of the launch path would occur in every round.
fn steady(mut round: impl FnMut() -> usize) -> usize {
    (0..4).map(|_| round()).min().unwrap_or(0)
}

/// Allocations in `calls` calls of `operation`.
fn counted(calls: usize, mut operation: impl FnMut()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..calls {
        operation();
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// One test, so that no other one allocates meanwhile. The backends are linked in: a loaded library has an allocator of
/// its own, which nothing here could count.
#[test]
fn the_launch_path_allocates_nothing() {
    let runtime = Runtime::builder()
        .discover(false)
        .register(runtime_host::backend())
        .register(runtime_null::backend())
        .build();
    let boxes = allocations(|| drop(std::hint::black_box(Box::new(1))));
    assert!(boxes >= 1000, "the counter counts: {boxes}");

    let host = Fixture::open(&runtime, "host").unwrap();
    assert_eq!(allocations(|| host.call(3.0).unwrap()), 0, "synchronous host call");
    assert_eq!(host.result().unwrap().to_bits(), 4.0f32.to_bits(), "the kernel ran");
    let submit = || {
        drop(host.launch(3.0).unwrap());
        host.queue.wait_idle().unwrap();
    };
    assert_eq!(allocations(submit), 0, "host submit and wait");
    // A growing backlog needs memory. Behind a running kernel, it has the same depth each time.
    let deep = || {
        let count = with_busy_queue(&host, || Ok(counted(200, || drop(host.launch(3.0).unwrap())))).unwrap();
        host.queue.wait_idle().unwrap();
        count
    };
    assert_eq!(steady(deep), 0, "host submit to a running worker");

    let null = Fixture::open(&runtime, "null").unwrap();
    assert_eq!(allocations(|| drop(null.launch(3.0).unwrap())), 0, "accelerator launch, event dropped");
    assert_eq!(allocations(|| drop(null.submit(3.0).unwrap())), 0, "dispatch");
    assert_eq!(null.dispatcher.misses(), 1);
    let mut held = None;
    assert_eq!(allocations(|| held = Some(null.launch(3.0).unwrap())), 0, "accelerator launch, event kept");
    drop(held);
}
