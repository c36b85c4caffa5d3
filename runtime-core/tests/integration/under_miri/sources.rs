//! Work that depends on a queue that does not respond, or on a closed device.

use std::sync::Arc;
use std::time::Duration;

use runtime_core::{Arg, CommonRuntime, ErrorKind, Options};

use super::{BUSY_US, floats, kernel, launch, queue, runtime};

/// Longer than any response takes.
const PATIENCE: Duration = Duration::from_secs(1);

/// A device whose queues report no progress, and another device.
fn silent_and_other() -> [Arc<dyn CommonRuntime>; 2] {
    let (here, silent) = (runtime(), Options::new().with("panic_in", "poll"));
    [here.open_with("null:0", &silent).unwrap(), here.open("null:1").unwrap()]
}

#[test]
fn work_that_depends_on_a_leaked_device_is_cancelled() {
    let [source, device] = silent_and_other();
    let (asked, waiter) = (queue(&*source), queue(&*device));
    let event = launch(&asked, &kernel(&*source, "noop"), &[]).unwrap();
    waiter.wait_for(&event).unwrap();
    let dependent = waiter.launch_noop().unwrap();
    drop((event, asked, source));
    let error = dependent.wait_timeout(PATIENCE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(error.to_string().contains("other work depends on it"), "{error}");
}

#[test]
fn a_device_closed_normally_blocks_nothing() {
    let here = runtime();
    let late = Options::new().with("delay_us", BUSY_US);
    let (source, device) = (here.open_with("null:0", &late).unwrap(), here.open("null:1").unwrap());
    let (ended, busy, waiter) = (queue(&*source), queue(&*device), queue(&*device));
    let event = launch(&ended, &kernel(&*source, "noop"), &[]).unwrap();
    waiter.wait_for(&event).unwrap();
    let spin = launch(&busy, &kernel(&*device, "spin"), &[Arg::scalar(5 * BUSY_US)]).unwrap();
    waiter.wait_for(&spin).unwrap();
    let dependent = waiter.launch_noop().unwrap();
    drop((event, ended, source));
    assert!(!dependent.is_done().unwrap());
    dependent.wait().unwrap();
}

#[test]
fn results_that_depend_on_a_silent_queue_fail() {
    let [source, device] = silent_and_other();
    let (asked, waiter) = (queue(&*source), queue(&*device));
    let event = launch(&asked, &kernel(&*source, "fail"), &[]).unwrap();
    let y = floats(&*device, &[1.0]);
    waiter.wait_for(&event).unwrap();
    launch(&waiter, &kernel(&*device, "scale_f32"), &[Arg::read_write(&y), Arg::scalar(2f32)]).unwrap();
    drop(waiter);
    // Submissions and new queues remove closed ones.
    for _ in 0..3 {
        queue(&*device).launch_noop().unwrap().wait().unwrap();
    }
    let error = y.to_vec::<f32>().unwrap_err();
    assert!(error.to_string().contains("other work depends on it"), "{error}");
}
