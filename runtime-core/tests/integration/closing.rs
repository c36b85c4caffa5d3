//! Core closes a backend's queue once its owner has dropped it and its work has ended.

#![allow(unsafe_code, reason = "changes the table of a backend")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime_core::abi::{BackendTable, Handle, QueueTable};
use runtime_core::backend::LinkedBackend;
use runtime_core::{CommonRuntime, Geometry, Kernel, ModuleSource, Options, Queue, Result, Runtime};

/// How late work ends: long enough for the test to see it in flight.
const LATE: Duration = Duration::from_secs(1);

/// Queues that were closed.
static CLOSED: AtomicU64 = AtomicU64::new(0);

fn below() -> &'static QueueTable {
    // SAFETY: null has all tables, and they are static.
    unsafe { &*runtime_null::backend().table().queue }
}

unsafe extern "C" fn close(queue: Handle) {
    CLOSED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: core's argument, passed on.
    unsafe { (below().close.unwrap())(queue) }
}

fn backend() -> LinkedBackend {
    let queue = Box::leak(Box::new(QueueTable { close: Some(close), ..*below() }));
    let table = BackendTable { queue, ..*runtime_null::backend().table() };
    // SAFETY: null's functions, and one that counts.
    unsafe { LinkedBackend::from_table(Box::leak(Box::new(table))) }
}

fn queue(device: &dyn CommonRuntime) -> Queue {
    device.queue().unwrap()
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Result<Kernel> {
    // SAFETY: the null device's builtins check their arguments.
    device.kernel(&unsafe { ModuleSource::native("null", name) }, name)
}

/// Opens a queue, which closes queues that are no longer used; returns the number closed.
fn closed(device: &dyn CommonRuntime) -> u64 {
    let _queue = queue(device);
    CLOSED.load(Ordering::SeqCst)
}

#[test]
fn a_queue_is_closed_when_it_was_dropped_and_its_work_has_ended() {
    let runtime = Runtime::builder().discover(false).register(backend()).build();
    let options = Options::new().with("delay_us", i64::try_from(LATE.as_micros()).unwrap());
    let device = runtime.open_with("null:0", &options).unwrap();
    let (first, noop) = (queue(&*device), kernel(&*device, "noop").unwrap());
    assert_eq!(closed(&*device), 0, "in use, though idle");
    // The one that `closed` opened.
    assert_eq!(closed(&*device), 1);
    let event = first.launch(&noop, Geometry::single(), &[]).unwrap();
    drop(first);
    assert_eq!(closed(&*device), 2, "its work is in flight");
    event.wait().unwrap();
    drop(event);
    assert_eq!(closed(&*device), 4, "it has ended");
    drop((noop, device, runtime));
    assert_eq!(CLOSED.load(Ordering::SeqCst), 5);
}
