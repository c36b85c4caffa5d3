//! Events: polled, waited for, awaited, and dropped while pending.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use runtime_core::{Arg, ErrorKind};

use super::{BUSY_US, kernel, launch, queue, slow};

/// A minimal executor: its waker unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Gives the wait thread time to notice that its device is gone: Miri requires that every thread has ended.
fn let_wait_threads_end() {
    std::thread::sleep(Duration::from_millis(if cfg!(miri) { 1_500 } else { 0 }));
}

#[test]
fn an_event_is_polled_timed_out_and_waited_for() {
    let device = slow();
    let (queue, spin) = (queue(&*device), kernel(&*device, "spin"));
    let event = launch(&queue, &spin, &[Arg::scalar(2 * BUSY_US)]).unwrap();
    let later = launch(&queue, &spin, &[Arg::scalar(1i64)]).unwrap();
    assert_eq!(event.wait_timeout(Duration::ZERO).unwrap_err().kind(), ErrorKind::Timeout);
    event.wait().unwrap();
    assert!(event.is_done().unwrap());
    let copy = later.clone();
    drop((later, queue));
    copy.wait().unwrap();
    drop((device, spin));
    assert!(event.is_done().unwrap() && copy.is_done().unwrap(), "an event outlives its device");
}

#[test]
fn futures_are_awaited_dropped_and_outlive_their_device() {
    let device = slow();
    let (queue, spin) = (queue(&*device), kernel(&*device, "spin"));
    let start = |us: i64| launch(&queue, &spin, &[Arg::scalar(us)]).unwrap();
    block_on(start(100)).unwrap();
    let mut dropped = start(100);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    assert!(pin!(&mut dropped).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(dropped);
    let threads: Vec<_> =
        [start(100), start(200)].into_iter().map(|event| std::thread::spawn(|| block_on(event))).collect();
    let last = start(100);
    drop((queue, spin, device));
    for thread in threads {
        // The device ends its work before it is closed, so the event has succeeded.
        thread.join().unwrap().unwrap();
    }
    block_on(last).unwrap();
    let_wait_threads_end();
}

#[test]
fn timestamps_are_read_once() {
    let device = slow();
    let queue = queue(&*device);
    let (first, second) = (queue.timestamp().unwrap(), queue.timestamp().unwrap());
    queue.launch_noop().unwrap();
    queue.call_noop().unwrap();
    assert!(queue.read_timestamp(&first).unwrap() <= queue.read_timestamp(&second).unwrap());
    assert_eq!(queue.read_timestamp(&first).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_dropped_future_is_forgotten_at_once() {
    let device = slow();
    let (queue, spin) = (queue(&*device), kernel(&*device, "spin"));
    let task = Arc::new(Unpark(std::thread::current()));
    let waker = Waker::from(task.clone());
    // Outside Miri time passes while this thread is not run, too.
    let busy_us = if cfg!(miri) { 4 * BUSY_US } else { 500_000 };
    let mut event = launch(&queue, &spin, &[Arg::scalar(busy_us)]).unwrap();
    for _ in 0..3 {
        assert!(Pin::new(&mut event).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&task), 3, "one entry per future, however often it is polled");
    drop(event);
    assert_eq!(Arc::strong_count(&task), 2, "its waker is kept although the future was dropped");
    drop((queue, spin, device));
    let_wait_threads_end();
}

/// A task that owns its future, and is owned by its wakers only.
struct Task {
    future: Mutex<Option<runtime_core::Event>>,
    _alive: Arc<()>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_task_that_only_its_waker_holds_is_dropped_with_its_future() {
    let device = slow();
    let (queue, spin) = (queue(&*device), kernel(&*device, "spin"));
    let alive = Arc::new(());
    for us in [BUSY_US, 100] {
        let event = launch(&queue, &spin, &[Arg::scalar(us)]).unwrap();
        let task = Arc::new(Task { future: Mutex::new(Some(event)), _alive: alive.clone() });
        let waker = Waker::from(task.clone());
        let mut future = task.future.lock().unwrap();
        let event = future.as_mut().unwrap();
        let _ = Pin::new(event).poll(&mut Context::from_waker(&waker));
        drop(future);
        // Now the wait thread has the last reference: waking drops the task, its future and its registration.
        drop((task, waker));
    }
    queue.wait_idle().unwrap();
    let done = (0..20_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Arc::strong_count(&alive) == 1
    });
    assert!(done, "the wait thread is stuck");
    block_on(launch(&queue, &spin, &[Arg::scalar(1i64)]).unwrap()).unwrap();
    drop((queue, spin, device));
    let_wait_threads_end();
}
