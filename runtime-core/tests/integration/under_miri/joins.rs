//! Work that waits for other queues: on the device if it can, otherwise on the calling thread; not at all for work that has
//! ended.

use std::time::Duration;

use runtime_core::{Arg, CommonRuntime, ErrorKind, Geometry, Kernel, Options, Queue};

use super::{BUSY_US, calls, floats, kernel, launch, open, queue, runtime, slow};

/// A device that runs calls on the caller's thread.
const INLINE: &str = "null:0.0";
/// A device that cannot wait for other queues.
const WAITLESS: &str = "null:0.1";
/// How long work takes that a busy machine must not outlast between two calls.
const LONG_US: i64 = 10 * BUSY_US;
/// Indices in `counters`.
const LAUNCH: usize = 0;
const POLL: usize = 3;
const WAIT_FOR: usize = 5;

fn call(queue: &Queue, kernel: &Kernel, args: &[Arg<'_>]) -> runtime_core::Result<()> {
    queue.call(kernel, Geometry::single(), args)
}

fn waits(device: &dyn CommonRuntime, queue: &Queue) -> u64 {
    calls(device, queue, WAIT_FOR)
}

#[test]
fn an_idle_queue_runs_a_call_on_this_thread_and_launches_on_the_device() {
    let device = open(INLINE, &Options::new());
    let (queue, scale, spin) = (queue(&*device), kernel(&*device, "scale_f32"), kernel(&*device, "spin"));
    let x = floats(&*device, &[1.0]);
    for _ in 0..3 {
        call(&queue, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
    }
    queue.call_noop().unwrap();
    assert_eq!(calls(&*device, &queue, LAUNCH), 1, "only `counters` was submitted");
    let event = launch(&queue, &spin, &[Arg::scalar(LONG_US)]).unwrap();
    assert_eq!(event.wait_timeout(Duration::ZERO).unwrap_err().kind(), ErrorKind::Timeout);
    // Busy: submitted, and waited for.
    call(&queue, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
    assert!(event.is_done().unwrap());
    assert_eq!(x.to_vec::<f32>().unwrap(), [16.0]);
}

#[test]
fn no_call_ends_before_a_failure_that_may_reach_it() {
    let device = open(INLINE, &Options::new());
    let (fail, noop) = (kernel(&*device, "fail"), kernel(&*device, "noop"));
    let (broken, other) = (queue(&*device), queue(&*device));
    // It has already failed, but has not been polled.
    let origin = launch(&broken, &fail, &[]).unwrap();
    other.wait_for(&origin).unwrap();
    assert_eq!(call(&other, &noop, &[]).unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn a_call_that_may_run_on_this_thread_waits_on_it() {
    let device = open(INLINE, &Options::new());
    let (scale, spin) = (kernel(&*device, "scale_f32"), kernel(&*device, "spin"));
    let (first, second) = (queue(&*device), queue(&*device));
    let x = floats(&*device, &[1.0]);
    launch(&first, &spin, &[Arg::scalar(BUSY_US)]).unwrap();
    launch(&first, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
    call(&second, &scale, &[Arg::read_write(&x), Arg::scalar(3f32)]).unwrap();
    assert_eq!(waits(&*device, &second), 0);
    assert_eq!(x.to_vec::<f32>().unwrap(), [6.0]);
}

#[test]
fn the_calling_thread_waits_for_queues_that_cannot() {
    let device = open(WAITLESS, &Options::new());
    let (scale, spin) = (kernel(&*device, "scale_f32"), kernel(&*device, "spin"));
    let (first, second) = (queue(&*device), queue(&*device));
    let x = floats(&*device, &[1.0]);
    launch(&first, &spin, &[Arg::scalar(BUSY_US)]).unwrap();
    let doubled = launch(&first, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
    launch(&second, &scale, &[Arg::read_write(&x), Arg::scalar(3f32)]).unwrap();
    doubled.wait_timeout(Duration::ZERO).unwrap();
    let busy = launch(&first, &spin, &[Arg::scalar(BUSY_US)]).unwrap();
    second.wait_for(&busy).unwrap();
    busy.wait_timeout(Duration::ZERO).unwrap();
    assert_eq!(waits(&*device, &second), 0);
    assert_eq!(x.to_vec::<f32>().unwrap(), [6.0]);
}

#[test]
fn a_wait_of_the_calling_thread_returns_the_failure() {
    let device = open(WAITLESS, &Options::new());
    let fail = kernel(&*device, "fail");
    let (broken, other) = (queue(&*device), queue(&*device));
    // It has already failed, but has not been polled.
    let origin = launch(&broken, &fail, &[]).unwrap();
    assert_eq!(other.wait_for(&origin).unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(waits(&*device, &other), 0);
}

#[test]
fn work_waits_for_the_latest_of_two_tickets_of_a_queue() {
    let device = open("null:0", &Options::new());
    let (add, scale, spin) =
        (kernel(&*device, "add_f32"), kernel(&*device, "scale_f32"), kernel(&*device, "spin"));
    let (first, second) = (queue(&*device), queue(&*device));
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    // Their order in memory, in which dependencies are found, is not known.
    for (early, late) in [(&x, &y), (&y, &x)] {
        [&x, &y].iter().for_each(|tensor| tensor.write(&[1f32]).unwrap());
        let sum = floats(&*device, &[0.0]);
        launch(&first, &scale, &[Arg::read_write(early), Arg::scalar(2f32)]).unwrap();
        launch(&first, &spin, &[Arg::scalar(BUSY_US)]).unwrap();
        launch(&first, &scale, &[Arg::read_write(late), Arg::scalar(2f32)]).unwrap();
        launch(&second, &add, &[Arg::read(&x), Arg::read(&y), Arg::write(&sum)]).unwrap();
        assert_eq!(sum.to_vec::<f32>().unwrap(), [4.0]);
    }
}

#[test]
fn a_later_wait_for_the_order_keeps_the_failure_of_an_earlier_one() {
    let device = open("null:0", &Options::new());
    let (fail, noop) = (kernel(&*device, "fail"), kernel(&*device, "noop"));
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    // Their order in memory, in which dependencies are found, is not known.
    for (written, read) in [(&x, &y), (&y, &x)] {
        let (broken, other) = (queue(&*device), queue(&*device));
        // Both have already ended, but have not been polled.
        launch(&broken, &fail, &[Arg::write(written)]).unwrap();
        launch(&broken, &noop, &[Arg::read(read)]).unwrap();
        let event = launch(&other, &noop, &[Arg::read(written), Arg::write(read)]).unwrap();
        assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Failed);
        [&x, &y].iter().for_each(|tensor| tensor.write(&[1f32]).unwrap());
    }
}

#[test]
fn devices_wait_for_those_of_their_own_backend_that_can_wait() {
    let here = runtime();
    let device = here.open_with("null:0", &Options::new()).unwrap();
    let busy_on = |other: &dyn CommonRuntime| {
        let (queue, spin) = (queue(other), kernel(other, "spin"));
        launch(&queue, &spin, &[Arg::scalar(LONG_US)]).unwrap()
    };
    // The same library, but another instance of it, whose handles mean nothing here.
    let elsewhere = open("null:0", &Options::new());
    let (waitless, capable) = (here.open(WAITLESS).unwrap(), here.open("null:1").unwrap());
    for (waiter, other, on_the_device) in
        [(&device, &capable, 1), (&device, &waitless, 0), (&waitless, &device, 0), (&device, &elsewhere, 0)]
    {
        let (own, busy) = (queue(&**waiter), busy_on(&**other));
        own.wait_for(&busy).unwrap();
        let ended = busy.wait_timeout(Duration::ZERO).is_ok();
        assert_eq!((waits(&**waiter, &own), ended), (on_the_device, on_the_device == 0));
        busy.wait().unwrap();
    }
}

#[test]
fn ended_work_is_not_waited_for() {
    let device = slow();
    let scale = kernel(&*device, "scale_f32");
    let (first, second) = (queue(&*device), queue(&*device));
    let x = floats(&*device, &[1.0]);
    let args = [Arg::read_write(&x), Arg::scalar(2f32)];
    launch(&first, &scale, &args).unwrap().wait().unwrap();
    launch(&second, &scale, &args).unwrap();
    assert_eq!(waits(&*device, &second), 0);
    launch(&first, &scale, &args).unwrap();
    launch(&second, &scale, &args).unwrap();
    assert_eq!(waits(&*device, &second), 1);
}

#[test]
fn a_wait_is_not_repeated() {
    let device = slow();
    let (noop, scale) = (kernel(&*device, "noop"), kernel(&*device, "scale_f32"));
    let queues: [Queue; 3] = std::array::from_fn(|_| queue(&*device));
    let [first, second, waiter] = &queues;
    let tensors: [_; 3] = std::array::from_fn(|_| floats(&*device, &[1.0]));
    for (writer, x) in [(first, &tensors[0]), (first, &tensors[1]), (second, &tensors[2])] {
        launch(writer, &scale, &[Arg::read_write(x), Arg::scalar(2f32)]).unwrap();
    }
    // A later ticket, or the same ticket of another queue, needs a new wait.
    for at in [0, 0, 1, 0, 1, 2, 2, 1] {
        launch(waiter, &noop, &[Arg::read(&tensors[at])]).unwrap();
    }
    assert_eq!(waits(&*device, waiter), 3);
}

#[test]
fn a_wait_polls_its_source_once() {
    let device = slow();
    let (noop, scale) = (kernel(&*device, "noop"), kernel(&*device, "scale_f32"));
    let (writer, waiter) = (queue(&*device), queue(&*device));
    let x = floats(&*device, &[1.0]);
    for _ in 0..4 {
        launch(&writer, &scale, &[Arg::read_write(&x), Arg::scalar(1f32)]).unwrap();
        launch(&waiter, &noop, &[Arg::read(&x)]).unwrap();
    }
    let polls = calls(&*device, &writer, POLL);
    assert!(polls <= 4, "{polls}");
}

#[test]
fn the_end_of_one_queue_is_not_that_of_another() {
    let device = slow();
    let (fail, noop) = (kernel(&*device, "fail"), kernel(&*device, "noop"));
    let [first, second, waiter]: [Queue; 3] = std::array::from_fn(|_| queue(&*device));
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    // Both have ticket 1; the second ends later, and fails.
    let ended = launch(&first, &noop, &[Arg::write(&x)]).unwrap();
    std::thread::sleep(Duration::from_micros(BUSY_US.cast_unsigned() * 3 / 4));
    launch(&second, &fail, &[Arg::write(&y)]).unwrap();
    let event = launch(&waiter, &noop, &[Arg::read(&x), Arg::read(&y)]).unwrap();
    ended.wait().unwrap();
    // It polls what it waits for.
    let _ = event.is_done();
    assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn failed_work_is_waited_for_while_it_may_run() {
    let device = open("null:0", &Options::new().with("needs_signals", true));
    let (fail, noop, scale) =
        (kernel(&*device, "fail"), kernel(&*device, "noop"), kernel(&*device, "scale_f32"));
    let (broken, other) = (queue(&*device), queue(&*device));
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    let failed = launch(&broken, &fail, &[Arg::read(&x)]).unwrap();
    // Not signaled, so its end is not observable.
    drop(launch(&broken, &noop, &[Arg::read(&y)]).unwrap());
    failed.wait().unwrap_err();
    // Writing what was only read waits for the reader, and does not fail with it.
    launch(&other, &scale, &[Arg::read_write(&y), Arg::scalar(2f32)]).unwrap();
    assert_eq!(waits(&*device, &other), 1);
    launch(&other, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
    assert_eq!(waits(&*device, &other), 1);
    assert_eq!([x, y].map(|tensor| tensor.to_vec::<f32>().unwrap()), [[2.0], [2.0]]);
}

#[test]
fn the_failure_of_a_closed_queue_stays_with_what_it_wrote() {
    let device = slow();
    let (fail, noop, scale) =
        (kernel(&*device, "fail"), kernel(&*device, "noop"), kernel(&*device, "scale_f32"));
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    {
        let broken = queue(&*device);
        launch(&broken, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
        launch(&broken, &fail, &[Arg::write(&y)]).unwrap();
        broken.wait_idle().unwrap_err();
    }
    let other = queue(&*device);
    // Submissions remove the closed queue.
    for _ in 0..2 {
        launch(&other, &noop, &[]).unwrap().wait().unwrap();
    }
    launch(&other, &noop, &[Arg::read(&x)]).unwrap().wait().unwrap();
    assert_eq!(launch(&other, &noop, &[Arg::read(&y)]).unwrap_err().kind(), ErrorKind::Failed);
    launch(&other, &noop, &[Arg::read(&x)]).unwrap().wait().unwrap();
}
