//! Work of several launches in the timing loop, on a simulated accelerator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use runtime_core::evaluate::{Clock, Measurement, TimedWork, Turns, Validation, Warmup};
use runtime_core::{
    CommonRuntime, Error, ErrorKind, Kernel, ModuleSource, Result, Runtime, Tensor, read_write,
};

fn device() -> Arc<dyn CommonRuntime> {
    Runtime::builder().discover(false).register(runtime_null::backend()).build().open("null:0").unwrap()
}

fn scale(device: &dyn CommonRuntime) -> (Kernel, Tensor) {
    // SAFETY: the null device's builtins check their arguments.
    let source = unsafe { ModuleSource::native("null", "scale_f32") };
    (device.kernel(&source, "scale_f32").unwrap(), device.tensor([1], &[1f32]).unwrap())
}

/// Three samples of two calls after one call of warm-up.
fn short(mut work: TimedWork<'_>, clock: Clock) -> TimedWork<'_> {
    work.timing.repeat = 3;
    work.timing.number = Some(2);
    work.timing.warmup = Warmup::Calls(1);
    work.timing.clock = clock.into();
    work
}

#[tokio::main(flavor = "current_thread")]
async fn measure(device: &dyn CommonRuntime, mut work: TimedWork<'_>) -> Result<Measurement> {
    device.time_work(&mut work).await
}

#[test]
fn every_clock_times_all_launches_of_a_call() {
    for clock in Clock::ALL.into_iter().filter(|clock| *clock != Clock::DeviceGraph) {
        let device = device();
        let ((kernel, x), calls) = (scale(&*device), AtomicU64::new(0));
        let mut work = TimedWork::new(|queue| {
            calls.fetch_add(1, Ordering::Relaxed);
            queue.launch(&kernel, (1, 1), (read_write(&x), 4f32))?;
            queue.launch(&kernel, (1, 1), (read_write(&x), 0.5f32))
        });
        work.cost.bytes = Some(16.0);
        let measurement = measure(&*device, short(work, clock)).unwrap();
        // One call of warm-up and six of samples, each doubling.
        assert_eq!((measurement.calls, calls.load(Ordering::Relaxed)), (7, 7), "{clock}");
        assert_eq!(x.to_vec::<f32>().unwrap(), [128.0], "{clock}");
        assert_eq!((measurement.samples_ns.len(), measurement.clock), (3, clock));
        assert_eq!(measurement.cost.bytes, Some(16.0));
        assert!(matches!(measurement.validation, Validation::Skipped { .. }));
    }
}

#[test]
fn a_clock_of_single_kernels_and_a_failure_of_the_work_are_errors() {
    let device = device();
    let (kernel, x) = scale(&*device);
    let work = TimedWork::new(|queue| queue.launch(&kernel, (1, 1), (read_write(&x), 2f32)));
    let error = measure(&*device, short(work, Clock::DeviceGraph)).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.message().contains("device_held"), "{error}");
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0], "nothing has run");
    let work = TimedWork::new(|_| Err(Error::invalid("no work today")));
    let error = measure(&*device, short(work, Clock::HostWall)).unwrap_err();
    assert!(error.to_string().contains("no work today"), "{error}");
}

#[tokio::test]
async fn works_take_turns() {
    let device = device();
    let (kernel, x) = scale(&*device);
    let (log, turns) = (Mutex::new(String::new()), Turns::new());
    let (kernel, x, log) = (&kernel, &x, &log);
    let timed = |name: char| {
        let work = TimedWork::new(move |queue| {
            log.lock().unwrap().push(name);
            queue.launch(kernel, (1, 1), (read_write(x), 1f32))
        });
        let mut work = short(work, Clock::HostWall);
        work.timing.number = Some(1);
        work.turn = Some(turns.join());
        let device = &device;
        async move { device.time_work(&mut work).await.unwrap().samples_ns.len() }
    };
    let (first, second) = (timed('a'), timed('b'));
    assert_eq!(tokio::join!(first, second), (3, 3));
    // A warm-up each; then an untimed call and a sample in each turn.
    assert_eq!(*log.lock().unwrap(), "abaabbaabbaabb");
}
