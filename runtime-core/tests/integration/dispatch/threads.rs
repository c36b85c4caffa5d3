//! Threads that need overloads at the same time.

use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use runtime_core::ErrorKind;
use runtime_core::dispatch::Dispatcher;

use super::{open, source};

#[test]
fn threads_compile_each_overload_once() {
    const THREADS: usize = 64;
    const KEYS: usize = 100;
    let compiled = Arc::new(AtomicUsize::new(0));
    let counter = compiled.clone();
    let scale = Dispatcher::builder("scale_f32")
        .source(source("scale_f32"))
        .on_compile(move |_| _ = counter.fetch_add(1, Ordering::Relaxed))
        .build()
        .unwrap();
    let device = open();
    let tensors: Vec<_> = (0..KEYS).map(|rank| device.tensor(vec![1; rank], &[1.0f32]).unwrap()).collect();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (scale, tensors, start) = (&scale, &tensors, &start);
            scope.spawn(move || {
                start.wait();
                for key in 0..KEYS {
                    scale.call(1, (&tensors[(key + thread) % KEYS], 1.0f32)).unwrap();
                }
            });
        }
    });
    assert_eq!(compiled.load(Ordering::Relaxed), KEYS);
    assert_eq!((scale.misses(), scale.overloads().len()), (KEYS as u64, KEYS));
}

#[test]
fn a_compilation_that_fails_wakes_all_who_wait_for_it() {
    const THREADS: usize = 16;
    let wrong = Dispatcher::new(source("no such builtin"), "f");
    let device = open();
    let x = device.zeros::<f32>([1]).unwrap();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                assert_eq!(wrong.call(1, (&x,)).unwrap_err().kind(), ErrorKind::CompileFailed);
            });
        }
    });
    assert_eq!(wrong.misses(), 1);
}
