//! The deleter is called exactly once, after the last work, on any thread, whatever is dropped first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtime_core::dlpack::FLAG_READ_ONLY;
use runtime_core::{
    Arg, CommonRuntime, DType, Geometry, Kernel, ModuleSource, Options, Placement, Queue, Tensor,
};

use super::producer::{Recipe, Watch, device, device_with, runtime};

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    // SAFETY: the null device's builtins check their arguments.
    device.kernel(&unsafe { ModuleSource::native("null", name) }, name).unwrap()
}

fn queue(device: &dyn CommonRuntime) -> Queue {
    device.queue().unwrap()
}

fn import(device: &dyn CommonRuntime, recipe: Recipe) -> (Tensor, Arc<Watch>) {
    let (managed, watch) = recipe.make();
    // SAFETY: valid, and nobody else uses the memory.
    (unsafe { device.import_dlpack(managed) }.unwrap(), watch)
}

/// Lets the device release what is no longer used.
fn reap(device: &dyn CommonRuntime) {
    device.empty::<u8>([1]).unwrap();
}

/// Waits for the first call of the deleter, possibly on the wait thread; returns the number of calls.
fn deletions(watch: &Watch) -> usize {
    let deadline = Instant::now() + Duration::from_secs(20);
    while watch.deletions() == 0 {
        assert!(Instant::now() < deadline, "the deleter is not called");
        std::thread::sleep(Duration::from_micros(100));
    }
    watch.deletions()
}

fn first_f32(watch: &Watch) -> f32 {
    let word = watch.last_word.load(Ordering::SeqCst);
    bytemuck::cast::<u64, [f32; 2]>(word)[0]
}

#[test]
fn views_and_clones_keep_the_memory() {
    let device = device();
    let (tensor, watch) = import(&*device, Recipe::f32(&[1.0, 2.0, 3.0]));
    let (clone, view) = (tensor.clone(), tensor.slice(0, 1..3).unwrap());
    drop(tensor);
    drop(clone);
    assert_eq!((watch.deletions(), view.to_vec::<f32>().unwrap()), (0, vec![2.0, 3.0]));
    drop(view);
    assert_eq!(watch.deletions(), 1);
}

#[test]
fn the_deleter_runs_without_further_calls_of_the_device() {
    let device = device();
    let queue = queue(&*device);
    let (tensor, watch) = import(&*device, Recipe::f32(&[3.0, 4.0]));
    queue.launch(&kernel(&*device, "spin"), Geometry::single(), &[Arg::scalar(5_000i64)]).unwrap();
    let scale = kernel(&*device, "scale_f32");
    queue.launch(&scale, Geometry::single(), &[Arg::read_write(&tensor), Arg::scalar(2f32)]).unwrap();
    drop(tensor);
    assert_eq!((deletions(&watch), first_f32(&watch)), (1, 6.0));
}

#[test]
fn the_deleter_waits_for_work_in_flight() {
    let device = device();
    let (spin, scale) = (kernel(&*device, "spin"), kernel(&*device, "scale_f32"));
    let queue = queue(&*device);
    let (tensor, watch) = import(&*device, Recipe::f32(&[3.0, 4.0]));
    let plain = Geometry::single();
    queue.launch(&spin, plain, &[Arg::scalar(20_000i64)]).unwrap();
    let scaled = queue.launch(&scale, plain, &[Arg::read_write(&tensor), Arg::scalar(2f32)]).unwrap();
    drop(tensor);
    scaled.wait().unwrap();
    reap(&*device);
    assert_eq!(deletions(&watch), 1);
    assert!((first_f32(&watch) - 6.0).abs() < f32::EPSILON, "deleted before the kernel had run");
    drop((queue, device));
    assert_eq!(deletions(&watch), 1);
}

#[test]
fn closing_the_device_calls_the_deleter_of_what_is_left() {
    let device = device();
    let (spin, scale) = (kernel(&*device, "spin"), kernel(&*device, "scale_f32"));
    let queue = queue(&*device);
    let (tensor, watch) = import(&*device, Recipe::f32(&[5.0, 4.0]));
    let plain = Geometry::single();
    queue.launch(&spin, plain, &[Arg::scalar(20_000i64)]).unwrap();
    queue.launch(&scale, plain, &[Arg::read_write(&tensor), Arg::scalar(2f32)]).unwrap();
    drop((tensor, spin, scale));
    drop(queue);
    drop(device);
    assert_eq!(deletions(&watch), 1);
    assert!((first_f32(&watch) - 10.0).abs() < f32::EPSILON);
}

#[test]
fn a_frozen_tensor_is_kept_for_the_queue_of_another_device() {
    let runtime = runtime();
    let (device, other) = (runtime.open("null:0").unwrap(), runtime.open("null:1").unwrap());
    let (tensor, watch) = import(&*device, Recipe { flags: FLAG_READ_ONLY, ..Recipe::f32(&[8.0, 9.0]) });
    let copy = other.empty::<f32>([2]).unwrap();
    let queue = queue(&*other);
    let spin = kernel(&*other, "spin");
    queue.launch(&spin, Geometry::single(), &[Arg::scalar(20_000i64)]).unwrap();
    let copied = queue.copy(&copy, &tensor).unwrap();
    drop(tensor);
    copied.wait().unwrap();
    assert_eq!(copy.to_vec::<f32>().unwrap(), [8.0, 9.0], "the memory was released while it was copied");
    reap(&*device);
    assert_eq!(deletions(&watch), 1);
}

#[test]
fn threads_may_drop_in_any_order() {
    let device = device();
    let scale = kernel(&*device, "scale_f32");
    let rounds = if cfg!(miri) { 2 } else { 50 };
    for _ in 0..rounds {
        let (tensor, watch) = import(&*device, Recipe::f32(&[1.0, 1.0]));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (tensor, device, scale) = (tensor.clone(), &device, &scale);
                scope.spawn(move || {
                    let queue = queue(&**device);
                    let args = [Arg::read_write(&tensor), Arg::scalar(2f32)];
                    queue.launch(scale, Geometry::single(), &args).unwrap();
                    drop(tensor);
                    queue.wait_idle().unwrap();
                });
            }
            drop(tensor);
        });
        reap(&*device);
        assert_eq!(deletions(&watch), 1);
        assert!((first_f32(&watch) - 16.0).abs() < f32::EPSILON);
    }
}

#[test]
fn the_deleter_runs_on_the_thread_that_finds_the_work_ended() {
    let device = device();
    let (tensor, watch) = import(&*device, Recipe::f32(&[1.0]));
    let thread = std::thread::spawn(move || {
        drop(tensor);
        std::thread::current().id()
    });
    let id = thread.join().unwrap();
    assert_eq!((watch.deletions(), *watch.thread.lock().unwrap()), (1, Some(id)));
}

#[test]
fn the_deleter_may_use_the_device_again() {
    let device = device();
    let (tensor, watch) = import(&*device, Recipe::f32(&[1.0]));
    let (inner, inner_watch) = import(&*device, Recipe::f32(&[2.0]));
    let again = device.clone();
    *watch.hook.lock().unwrap() = Some(Box::new(move || {
        drop(inner);
        let queue = queue(&*again);
        let tensor = queue.allocate(DType::F32, &[4], &Placement::default()).unwrap();
        tensor.fill(&[0; 4]).unwrap();
    }));
    let (spin, queue) = (kernel(&*device, "spin"), queue(&*device));
    let args = [Arg::scalar(2000i64)];
    let event = queue.launch(&spin, Geometry::single(), &args).unwrap();
    let noop = kernel(&*device, "noop");
    queue.launch(&noop, Geometry::single(), &[Arg::read(&tensor)]).unwrap();
    drop(tensor);
    event.wait().unwrap();
    queue.wait_idle().unwrap();
    // Reaped by an allocation in order with the queue: its lock must not be held then.
    queue.allocate(DType::F32, &[4], &Placement::default()).unwrap();
    assert_eq!((deletions(&watch), deletions(&inner_watch)), (1, 1));
}

#[test]
fn a_lost_device_gives_everything_back() {
    let device = device_with(&Options::new().with("lose_after", 2i64));
    let (noop, queue) = (kernel(&*device, "noop"), queue(&*device));
    let (tensor, watch) = import(&*device, Recipe::f32(&[1.0]));
    for _ in 0..4 {
        let _ = queue.launch(&noop, Geometry::single(), &[Arg::read(&tensor)]);
    }
    let _ = queue.wait_idle();
    drop(tensor);
    drop((noop, queue, device));
    assert_eq!(deletions(&watch), 1);
}

#[test]
fn a_null_deleter_is_accepted() {
    let device = device();
    let (managed, watch) = Recipe::f32(&[1.0]).make();
    // SAFETY: our own structure.
    let deleter = unsafe { (*managed).deleter.take() };
    // SAFETY: valid; it is given back below.
    let tensor = unsafe { device.import_dlpack(managed) }.unwrap();
    drop(tensor);
    drop(device);
    assert_eq!(watch.deletions(), 0);
    // SAFETY: nobody uses it any more.
    unsafe { deleter.unwrap()(managed) };
}
