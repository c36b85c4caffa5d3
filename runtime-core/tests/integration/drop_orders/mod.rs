//! Drops the objects of a program in every order while work is in flight: nothing leaks or hangs, and no parent is closed
//! before its children. A layer over the null backend's table counts the objects.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code, and changes the table of a backend")]

mod ledger;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use ledger::{WORKERS, backend, counts};
use runtime_core::{Arg, DType, Geometry, ModuleSource, Options, Placement, Runtime};

/// How long the work takes: longer than the drops. Miri's clock counts its own, slow, steps.
const BUSY_US: i64 = if cfg!(miri) { 3_000_000 } else { 150 };
/// Miri tries one order of this many.
const MIRI_STRIDE: usize = 10_007;

type Objects = Vec<Option<Box<dyn Any>>>;
/// Opens the device `null:INDEX` with options, creates objects and keeps them busy; returns whether they are busy.
type Scene = fn(&Runtime, &Options) -> (Objects, bool);
type Worker = fn(Scene, usize, usize, &Options) -> usize;

/// Order number `index` of `count` objects.
fn order(mut index: usize, count: usize) -> Vec<usize> {
    let mut left: Vec<_> = (0..count).collect();
    (1..=count)
        .rev()
        .map(|remaining| {
            let next = left.remove(index % remaining);
            index /= remaining;
            next
        })
        .collect()
}

fn object(value: impl Any) -> Option<Box<dyn Any>> {
    Some(Box::new(value))
}

/// Queue, event, tensor, view, kernel, module, device, `Runtime`.
fn everything(runtime: &Runtime, options: &Options) -> (Objects, bool) {
    let device = runtime.open_with("null:0", options).unwrap();
    // SAFETY: the null device's builtins check their arguments.
    let module = device.load(&unsafe { ModuleSource::native("null", "scale_f32") }).unwrap();
    let kernel = module.kernel("scale_f32").unwrap();
    let tensor = device.allocate(DType::F32, &[4], &Placement::space("pinned")).unwrap();
    let view = tensor.slice(0, 1..3).unwrap();
    let queue = device.queue().unwrap();
    let launch = |tensor| {
        queue.launch(&kernel, Geometry::single(), &[Arg::read_write(tensor), Arg::scalar(2f32)]).ok()
    };
    let event = launch(&tensor);
    drop(launch(&view));
    let busy = event.as_ref().is_some_and(|event| event.is_done().is_ok_and(|done| !done));
    let objects = vec![
        object(queue),
        object(event),
        object(tensor),
        object(view),
        object(kernel),
        object(module),
        object(device),
        object(runtime.clone()),
    ];
    (objects, busy)
}

/// A native graph in flight, a mapping, two queues with an edge, a future with a waker, a frozen tensor, the device.
fn the_rest(runtime: &Runtime, options: &Options) -> (Objects, bool) {
    let device = runtime.open_with("null:1", options).unwrap();
    // SAFETY: as above.
    let module = device.load(&unsafe { ModuleSource::native("null", "saxpy_f32") }).unwrap();
    let saxpy = module.kernel("saxpy_f32").unwrap();
    let tensor = || device.allocate(DType::F32, &[4], &Placement::space("pinned")).unwrap();
    let (weights, result, mapped) = (tensor(), tensor(), tensor());
    weights.freeze().unwrap();
    let open_queue = || device.queue().unwrap();
    let (first, second) = (open_queue(), open_queue());
    let args = [Arg::read(&weights), Arg::read_write(&result), Arg::scalar(2f32)];
    let recorded = first.record(|recorder| recorder.launch(&saxpy, Geometry::single(), &args)).unwrap();
    let graph = first.instantiate(&recorded).unwrap();
    let event = first.replay(&graph).unwrap();
    second.wait_for(&event).unwrap();
    let mut future = second.launch(&saxpy, Geometry::single(), &args).unwrap();
    let pending = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())).is_pending();
    let mapping = mapped.map_mut().unwrap();
    let objects = vec![
        object(graph),
        object(mapping),
        object(first),
        object(second),
        object(future),
        object(weights),
        object(device),
    ];
    (objects, pending)
}

/// Worker `W` of `WORKERS`: its share of every `stride`th order of `count` objects. Returns how many scenes were busy.
fn work<const W: usize>(scene: Scene, count: usize, stride: usize, options: &Options) -> usize {
    let all: usize = (1..=count).product();
    let stride = if cfg!(miri) { stride.max(MIRI_STRIDE.min(all / 3)) } else { stride };
    let mut busy_scenes = 0;
    for index in (0..all).step_by(stride).skip(W).step_by(WORKERS) {
        let runtime = Runtime::builder().discover(false).register(backend::<W>()).build();
        let (mut objects, busy) = scene(&runtime, options);
        assert_eq!(objects.len(), count);
        drop(runtime);
        busy_scenes += usize::from(busy);
        let order = order(index, count);
        for &next in &order {
            objects[next] = None;
        }
        // The last drop may happen on the thread that wakes futures, a moment later.
        let deadline = Instant::now() + Duration::from_secs(20);
        while counts::<W>() != [0; 8] {
            assert!(Instant::now() < deadline, "order {order:?} with {options:?} leaves {:?}", counts::<W>());
            std::thread::sleep(Duration::from_micros(20));
        }
    }
    busy_scenes
}

fn in_every_order(scene: Scene, count: usize, stride: usize, options: &Options) -> usize {
    let busy = AtomicUsize::new(0);
    let workers: [Worker; WORKERS] =
        [work::<0>, work::<1>, work::<2>, work::<3>, work::<4>, work::<5>, work::<6>, work::<7>];
    std::thread::scope(|scope| {
        for worker in workers {
            let busy = &busy;
            scope.spawn(move || busy.fetch_add(worker(scene, count, stride, options), Ordering::Relaxed));
        }
    });
    busy.into_inner()
}

/// One test, since workers have their own counts and tests would share them.
#[test]
fn drops_in_every_order_leak_nothing() {
    let delayed = || Options::new().with("delay_us", BUSY_US);
    assert!(in_every_order(everything, 8, 1, &delayed()) > 0, "nothing was ever in flight");
    for options in [
        delayed().with("fail_ticket", 1),
        delayed().with("lose_after", 1),
        delayed().with("needs_flush", true).with("needs_signals", true),
        delayed().with("fail_call", "poll:3"),
        Options::new().with("out_of_order", true),
        Options::new().with("reorders", true),
        Options::new(),
    ] {
        in_every_order(everything, 8, 41, &options);
    }
    assert!(in_every_order(the_rest, 7, 1, &delayed()) > 0, "nothing was ever in flight");
    // A failed poll, wherever it occurs, leaks nothing either.
    for look in 1..=12 {
        in_every_order(everything, 8, 401, &delayed().with("fail_call", format!("poll:{look}")));
    }
    if cfg!(miri) {
        // Miri requires that every thread has ended; a wait thread checks twice a second whether its device is gone.
        std::thread::sleep(Duration::from_secs(2));
    }
}

#[test]
fn orders_are_complete_and_distinct() {
    let mut all: Vec<_> = (0..24).map(|index| order(index, 4)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 24);
    assert!(all.iter().all(|order| (0..4).all(|object| order.contains(&object))));
}
