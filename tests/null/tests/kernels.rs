//! The builtins, launched through core from a statically linked backend.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test, which loads code")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::{
    Arg, CommonRuntime, ErrorKind, Geometry, Kernel, ModuleSource, Options, Placement, Queue, QueueOptions,
    Runtime,
};

/// Longer than any wait here takes.
const DEADLINE: Duration = Duration::from_secs(120);

fn open(device: &str, options: &Options) -> (Arc<dyn CommonRuntime>, Queue) {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let device = runtime.open_with(device, options).unwrap();
    let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() }).unwrap();
    (device, queue)
}

fn kernel(device: &dyn CommonRuntime, builtin: &str) -> Kernel {
    // SAFETY: the builtins stay within their arguments.
    let source = unsafe { ModuleSource::native("null", format!("k = {builtin}")) };
    device.kernel(&source, "k").unwrap()
}

fn run(queue: &Queue, kernel: &Kernel, geometry: &Geometry, args: &[Arg<'_>]) {
    queue.launch(kernel, *geometry, args).unwrap().wait_timeout(DEADLINE).unwrap();
}

#[test]
fn elements_are_found_through_strides() {
    let (device, queue) = open("null:0", &Options::new());
    let a = device.tensor([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let out = device.tensor([3, 2], &[0.0f32; 6]).unwrap();
    let turned = a.permute(&[1, 0]).unwrap();
    let args = [Arg::read(&turned), Arg::read(&turned), Arg::write(&out)];
    run(&queue, &kernel(&*device, "add_f32"), &Geometry::single(), &args);
    assert_eq!(out.to_vec::<f32>().unwrap(), [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]);
}

#[test]
fn nine_arguments_are_summed() {
    let (device, queue) = open("null:0.1", &Options::new());
    let out = device.tensor([1], &[0.0f64]).unwrap();
    let args = [
        Arg::scalar(0.5f64),
        Arg::scalar(1i64),
        Arg::scalar(0.25f64),
        Arg::scalar(-20i64),
        Arg::scalar(1000.0f64),
        Arg::scalar(30_000i64),
        Arg::scalar(0.125f64),
        Arg::scalar(4i64),
        Arg::write(&out),
    ];
    run(&queue, &kernel(&*device, "sum9_f64"), &Geometry::single(), &args);
    assert_eq!(out.to_vec::<f64>().unwrap(), [30_985.875]);
}

#[test]
fn every_work_item_runs_exactly_once() {
    let (device, queue) = open("null:0", &Options::new());
    let out = device.tensor([30], &[99u32; 30]).unwrap();
    run(&queue, &kernel(&*device, "group_ids_u32"), &Geometry::new([2, 2], [3, 2]), &[Arg::write(&out)]);
    let expected: Vec<u32> = (0..24).chain([99; 6]).collect();
    assert_eq!(out.to_vec::<u32>().unwrap(), expected);
}

#[test]
fn calls_are_counted() {
    let (device, queue) = open("null:0", &Options::new());
    let noop = kernel(&*device, "noop");
    let placement = Placement { space: Some("pinned".to_owned()), ..Placement::default() };
    let out = device.allocate(runtime_core::DType::U64, &[13], &placement).unwrap();
    for _ in 0..2 {
        drop(queue.launch(&noop, Geometry::single(), &[]).unwrap());
    }
    let _kept = queue.launch(&noop, Geometry::single(), &[]).unwrap();
    run(&queue, &kernel(&*device, "counters"), &Geometry::single(), &[Arg::write(&out)]);
    let counts = out.to_vec::<u64>().unwrap();
    assert_eq!((counts[0], counts[1]), (4, 1), "launches, and the signal of the one event that was kept");
}

#[test]
fn a_spinning_kernel_takes_its_time_by_the_devices_clock() {
    let (device, queue) = open("null:0", &Options::new());
    let before = queue.timestamp().unwrap();
    let began = Instant::now();
    drop(queue.launch(&kernel(&*device, "spin"), Geometry::single(), &[Arg::scalar(5000i64)]).unwrap());
    let after = queue.timestamp().unwrap();
    after.wait_timeout(DEADLINE).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(5));
    let took = queue.read_timestamp(&after).unwrap() - queue.read_timestamp(&before).unwrap();
    assert!(took >= 5_000_000, "{took} ns");
}

#[test]
fn selected_faults_occur() {
    let (_, queue) = open("null:0", &Options::new().with("fail_call", "noop:2:out_of_resources"));
    queue.launch_noop().unwrap();
    assert_eq!(queue.launch_noop().unwrap_err().kind(), ErrorKind::OutOfResources);
    queue.launch_noop().unwrap().wait_timeout(DEADLINE).unwrap();

    let (device, _) = open("null:0", &Options::new().with("out_of_memory_after_bytes", 1000i64));
    let kept = device.tensor([900], &[0u8; 900]).unwrap();
    assert_eq!(device.tensor([101], &[0u8; 101]).unwrap_err().kind(), ErrorKind::OutOfMemory);
    drop(kept);

    let (_, queue) = open("null:1", &Options::new().with("lose_after", 1i64));
    let event = queue.launch_noop().unwrap();
    assert_eq!(event.wait_timeout(DEADLINE).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(queue.launch_noop().unwrap_err().kind(), ErrorKind::DeviceLost);
}

#[test]
fn results_do_not_depend_on_batching_signals_or_order() {
    for options in ["needs_flush", "needs_signals", "out_of_order"] {
        let options = Options::new().with(options, true).with("delay_us", 200i64);
        let (device, first) = open("null:0", &options);
        let second = device.queue().unwrap();
        let (fill, add) = (kernel(&*device, "fill_f32"), kernel(&*device, "add_f32"));
        let tensor = || device.tensor([8], &[0.0f32; 8]).unwrap();
        let (x, y) = (tensor(), tensor());
        for round in 1..=4u8 {
            let v = f32::from(round);
            drop(first.launch(&fill, Geometry::single(), &[Arg::write(&x), Arg::scalar(v)]).unwrap());
            let args = [Arg::read(&x), Arg::read(&x), Arg::write(&y)];
            drop(second.launch(&add, Geometry::single(), &args).unwrap());
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), [8.0; 8], "{options:?}");
    }
}
