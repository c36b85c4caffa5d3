//! Sets of counters: passes, values and misuse, on the null backend, whose counters follow from the launches.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use runtime_core::device::CounterReading;
use runtime_core::{CommonRuntime, Device, ErrorKind, Options, Runtime};

fn open(options: &Options) -> Device {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    runtime.open_with("null", options).unwrap()
}

fn launch(device: &dyn CommonRuntime, times: usize) -> runtime_core::Result<()> {
    let queue = device.queue()?;
    for _ in 0..times {
        queue.launch_noop()?;
    }
    queue.wait_idle()
}

fn values(readings: &[Option<CounterReading>]) -> Vec<Option<f64>> {
    readings.iter().map(|reading| reading.map(|reading| reading.value)).collect()
}

#[test]
fn a_set_that_needs_two_passes_runs_the_work_twice() {
    let device = open(&Options::new());
    let mut set = device.counter_set(&["ticks", "bytes", "misses", "stalls"]).unwrap();
    assert_eq!(set.passes(), 2);
    let mut calls = 0;
    let readings = set.measure(|| {
        calls += 1;
        launch(&*device, 3)
    });
    let readings = readings.unwrap();
    assert_eq!(calls, 2);
    assert_eq!(values(&readings), [Some(3000.0), Some(192.0), None, Some(30.0)]);
    assert_eq!(readings[3].unwrap().counted, 0.5);
    assert!(set.unavailable_reason(2).unwrap().contains("no cache"));
    assert!((0..9).filter(|&index| index != 2).all(|index| set.unavailable_reason(index).is_none()));
}

#[test]
fn each_measurement_starts_from_zero() {
    let device = open(&Options::new());
    let mut set = device.counter_set(&["launches"]).unwrap();
    for times in [5, 2, 0] {
        launch(&*device, 7).unwrap();
        let readings = set.measure(|| launch(&*device, times)).unwrap();
        assert_eq!(values(&readings), [Some(f64::from(u32::try_from(times).unwrap()))]);
    }
}

#[test]
fn work_that_fails_ends_the_pass() {
    let device = open(&Options::new());
    let mut set = device.counter_set(&["launches"]).unwrap();
    let failed = set.measure(|| Err(runtime_core::Error::invalid("the work failed"))).unwrap_err();
    assert_eq!(failed.message(), "the work failed");
    assert_eq!(values(&set.measure(|| launch(&*device, 1)).unwrap()), [Some(1.0)]);
}

#[test]
fn a_pass_that_failed_begins_again_from_the_first() {
    let device = open(&Options::new().with("fail_call", "end_counters:2"));
    let mut set = device.counter_set(&["ticks", "bytes"]).unwrap();
    set.begin().unwrap();
    set.end().unwrap();
    set.begin().unwrap();
    set.end().unwrap_err();
    assert_eq!(set.read().unwrap_err().kind(), ErrorKind::InvalidArgument, "no pass has ended");
    for _ in 0..2 {
        set.begin().unwrap();
        launch(&*device, 1).unwrap();
        set.end().unwrap();
    }
    assert_eq!(values(&set.read().unwrap()), [Some(1000.0), Some(64.0)]);
}

#[test]
fn an_unknown_counter_is_suggested() {
    let error = open(&Options::new()).counter_set(&["launch"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("did you mean \"launches\""), "{error}");
}

#[test]
fn an_embedded_device_has_no_counters() {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let device = runtime.open("null:2").unwrap();
    assert_eq!(device.counters().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(device.counter_set(&["launches"]).unwrap_err().kind(), ErrorKind::Unsupported);
}
