//! A repeated launch allocates nothing, whatever its calling convention.

#![allow(unsafe_code, reason = "counts allocations; loads native code")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::{Arg, CodeFormat, Geometry, ModuleSource, Runtime};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CODE: &str = "
int packed(void *args, int *codes, int n, void *ret, int *ret_code) { return n != 16; }
int __tvm_ffi_tagged(void *handle, const void *args, int n, void *result) { return n != 16; }
void plain(float *a, float *b, float *c, float *d, float *e, float *f, float *g, float *h, double i, double j,
           double k, double l, int m, int n, int o, int p) { a[0] += i + p; }
";

#[test]
fn nothing_is_allocated_up_to_sixteen_arguments() {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
    let host = runtime.open("host").unwrap();
    // SAFETY: the launches below match the functions' parameters.
    let source = || unsafe { ModuleSource::native(CodeFormat::C, CODE) };
    let (module, packed) = (source(), source().option("convention", "packed"));
    let (module, packed) = (host.load(&module).unwrap(), host.load(&packed).unwrap());
    let queue = host.queue().unwrap();
    let tensors: Vec<_> = (0..8).map(|_| host.tensor([2, 2, 2], &[0.0_f32; 8]).unwrap()).collect();
    let mut args: Vec<_> = tensors.iter().map(Arg::read_write).collect();
    args.extend([1.0_f64; 4].map(Arg::scalar));
    args.extend([1_i32; 4].map(Arg::scalar));
    for (module, name) in [(&module, "plain"), (&module, "tagged"), (&packed, "packed")] {
        let kernel = module.kernel(name).unwrap();
        let run = || {
            queue.call(&kernel, Geometry::single(), &args).unwrap();
            queue.launch(&kernel, Geometry::single(), &args).unwrap().wait().unwrap();
        };
        let round = || {
            let before = COUNT.load(Ordering::Relaxed);
            (0..100).for_each(|_| run());
            COUNT.load(Ordering::Relaxed) - before
        };
        // A worker that is preempted before it returns a submission makes the queue grow once. A launch that allocates
        // would do so in every round.
        let rounds: Vec<_> = (0..10).map(|_| round()).collect();
        assert!(rounds.contains(&0), "{name}: allocations in rounds of 100: {rounds:?}");
    }
}
