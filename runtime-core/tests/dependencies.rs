//! What a submission waits for, and which failures reach it, on devices that order nothing by themselves.

#![allow(unsafe_code, reason = "loads code of the null device")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use runtime_core::{
    Arg, CommonRuntime, Error, ErrorKind, Event, Geometry, Kernel, ModuleSource, Options, Queue, Result,
    Runtime, Tensor,
};
use test_process::spawn_until_asleep;

const BUSY_US: i64 = 200_000;

struct Scene {
    device: Arc<dyn CommonRuntime>,
    noop: Kernel,
    fail: Kernel,
    scale: Kernel,
    set: Kernel,
}

impl Scene {
    fn new(options: &Options) -> Self {
        let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
        let device = runtime.open_with("null:0", options).unwrap();
        // SAFETY: the builtins check their arguments.
        let module =
            device.load(&unsafe { ModuleSource::native("null", "noop\nfail\nscale_f32\nfill_f32") }).unwrap();
        let kernel = |name| module.kernel(name).unwrap();
        Self {
            noop: kernel("noop"),
            fail: kernel("fail"),
            scale: kernel("scale_f32"),
            set: kernel("fill_f32"),
            device,
        }
    }

    /// A device whose work ends late.
    fn slow() -> Self {
        Self::new(&Options::new().with("delay_us", BUSY_US))
    }

    /// A device whose queues cannot wait for each other.
    fn without_joins() -> Self {
        let mut options = Options::new().with("delay_us", BUSY_US);
        (1..=100).for_each(|nth| options.push("fail_call", format!("wait_for:{nth}:unsupported")));
        Self::new(&options)
    }

    fn queue(&self) -> Queue {
        self.device.queue().unwrap()
    }

    fn tensor(&self) -> Tensor {
        self.device.tensor([1], &[1f32]).unwrap()
    }
}

fn launch(queue: &Queue, kernel: &Kernel, args: &[Arg<'_>]) -> Result<Event> {
    queue.launch(kernel, Geometry::single(), args)
}

fn failed(outcome: Result<()>) -> Error {
    let error = outcome.expect_err("work that depends on failed work succeeded");
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("ticket 1 of queue"), "{error}");
    error
}

#[test]
fn dependencies_on_the_own_queue_end_first() {
    // This device runs the last submission first, as far as dependencies allow.
    let scene = Scene::new(&Options::new().with("reorders", true));
    let (queue, x) = (scene.queue(), scene.tensor());
    let y = scene.tensor();
    for _ in 0..20 {
        launch(&queue, &scene.noop, &[]).unwrap();
        queue.fill(&x, &3f32.to_le_bytes()).unwrap();
        launch(&queue, &scene.noop, &[Arg::read(&y)]).unwrap();
        launch(&queue, &scene.scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
        queue.copy(&y, &x).unwrap();
        queue.fill(&x, &0f32.to_le_bytes()).unwrap();
        launch(&queue, &scene.scale, &[Arg::read_write(&y), Arg::scalar(0.5f32)]).unwrap();
        queue.copy(&x, &y).unwrap();
        launch(&queue, &scene.scale, &[Arg::read_write(&x), Arg::scalar(7f32)]).unwrap();
    }
    let mut read = [0; 4];
    queue.read(&x, &mut read).unwrap();
    assert_eq!((f32::from_le_bytes(read), y.to_vec::<f32>().unwrap()), (21.0, vec![3.0]));
}

#[test]
fn untracked_launches_stay_in_order() {
    let scene = Scene::new(&Options::new().with("reorders", true));
    let (queue, x) = (scene.queue(), scene.tensor());
    // Zero, then five: in another order it stays zero.
    queue.fill(&x, &0f32.to_le_bytes()).unwrap();
    let args = [Arg::write(&x), Arg::scalar(5f32)];
    // SAFETY: the tensor is kept, and nothing else uses it.
    drop(unsafe { queue.launch_untracked(&scene.set, Geometry::single(), &args) }.unwrap());
    queue.wait_idle().unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [5.0]);
}

#[test]
fn a_failed_source_fails_a_wait_on_the_calling_thread() {
    let scene = Scene::without_joins();
    let (broken, waiting, x) = (scene.queue(), scene.queue(), scene.tensor());
    let event = launch(&broken, &scene.fail, &[Arg::write(&x)]).unwrap();
    failed(waiting.wait_for(&event));
    launch(&waiting, &scene.noop, &[]).unwrap().wait().unwrap();
}

#[test]
fn only_a_failed_writer_fails_later_work_where_the_calling_thread_waits() {
    let scene = Scene::without_joins();
    let x = scene.tensor();
    let (broken, writer, reader) = (scene.queue(), scene.queue(), scene.queue());
    drop(launch(&broken, &scene.fail, &[Arg::read(&x)]).unwrap());
    launch(&writer, &scene.noop, &[Arg::write(&x)]).unwrap().wait().unwrap();
    let broken = scene.queue();
    drop(launch(&broken, &scene.fail, &[Arg::write(&x)]).unwrap());
    failed(launch(&reader, &scene.noop, &[Arg::read(&x)]).and_then(|event| event.wait()));
    failed(launch(&writer, &scene.noop, &[Arg::write(&x)]).and_then(|event| event.wait()));
}

#[test]
fn a_reader_of_a_failed_queue_takes_nothing_from_its_writer() {
    // The same queue first writes one tensor, which fails, and then reads the other: whoever reads the one and writes the
    // other waits for both tickets, and fails, whichever of the two it meets first.
    for swapped in [false, true] {
        let scene = Scene::slow();
        let (broken, next) = (scene.queue(), scene.queue());
        let (one, other) = (scene.tensor(), scene.tensor());
        let (written, read) = if swapped { (&other, &one) } else { (&one, &other) };
        drop(launch(&broken, &scene.fail, &[Arg::write(written)]).unwrap());
        drop(launch(&broken, &scene.noop, &[Arg::read(read)]).unwrap());
        failed(
            launch(&next, &scene.noop, &[Arg::read(written), Arg::write(read)])
                .and_then(|event| event.wait()),
        );
        // Only the order: a tensor that only the second ticket used.
        let fresh = scene.queue();
        launch(&fresh, &scene.noop, &[Arg::read(&scene.tensor())]).unwrap().wait().unwrap();
    }
}

#[test]
fn order_alone_propagates_no_failure_however_late_it_is_known() {
    for observed in [false, true] {
        let scene = Scene::slow();
        let (broken, writer, x) = (scene.queue(), scene.queue(), scene.tensor());
        let event = launch(&broken, &scene.fail, &[Arg::read(&x)]).unwrap();
        if observed {
            failed(event.wait());
        }
        launch(&writer, &scene.noop, &[Arg::write(&x)]).unwrap().wait().unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0], "seen before: {observed}");
    }
}

#[test]
fn a_failed_reader_among_several_does_not_fail_the_writer() {
    let scene = Scene::slow();
    let (x, readers) = (scene.tensor(), [(); 6].map(|()| scene.queue()));
    for (number, reader) in readers.iter().enumerate() {
        let kernel = if number < 2 { &scene.fail } else { &scene.noop };
        drop(launch(reader, kernel, &[Arg::read(&x)]).unwrap());
    }
    launch(&scene.queue(), &scene.noop, &[Arg::write(&x)]).unwrap().wait().unwrap();
}

#[test]
fn a_tensor_frozen_while_a_launch_waits_is_not_written() {
    let scene = Scene::without_joins();
    let (busy, queue, x, late) = (scene.queue(), scene.queue(), scene.tensor(), scene.tensor());
    drop(launch(&busy, &scene.noop, &[Arg::write(&late)]).unwrap());
    let outcome = std::thread::scope(|scope| {
        // It has checked `x`, and waits for `late` without holding a lock.
        let launching =
            spawn_until_asleep(scope, || launch(&queue, &scene.noop, &[Arg::write(&x), Arg::read(&late)]));
        x.freeze().unwrap();
        launching.join().unwrap()
    });
    let error = outcome.unwrap_err();
    assert!(error.message().contains("frozen"), "{error}");
    assert_eq!(queue.submitted(), 0);
}

#[test]
fn waiting_for_another_device_blocks_no_other_thread() {
    let scene = Scene::without_joins();
    let (busy, queue, late, free) = (scene.queue(), scene.queue(), scene.tensor(), scene.tensor());
    let began = Instant::now();
    drop(launch(&busy, &scene.noop, &[Arg::write(&late)]).unwrap());
    std::thread::scope(|scope| {
        let waiting = spawn_until_asleep(scope, || {
            launch(&queue, &scene.noop, &[Arg::read(&late), Arg::write(&free)]).map(drop)
        });
        // Meanwhile neither the queue's lock nor the buffers' locks are held.
        drop(launch(&queue, &scene.noop, &[Arg::read(&free)]).unwrap());
        drop(launch(&queue, &scene.noop, &[]).unwrap());
        assert!(
            began.elapsed() < Duration::from_micros(BUSY_US.unsigned_abs() / 2),
            "held up for {:?}",
            began.elapsed()
        );
        waiting.join().unwrap().unwrap();
    });
    queue.wait_idle().unwrap();
}

#[test]
fn memory_is_not_freed_before_the_last_ticket_that_uses_it() {
    let scene = Scene::slow();
    let before = runtime_null::freed_in_use();
    let queue = scene.queue();
    for _ in 0..2 {
        let x = scene.tensor();
        let args = [Arg::read_write(&x), Arg::scalar(2f32)];
        let first = launch(&queue, &scene.scale, &args).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        let last = launch(&queue, &scene.scale, &args).unwrap();
        drop(x);
        first.wait().unwrap();
        assert!(!last.is_done().unwrap(), "the machine is too busy to see the first end alone");
        while !last.is_done().unwrap() {
            // Every allocation and submission frees what has ended.
            drop(scene.device.empty::<f32>([1]).unwrap());
            assert_eq!(runtime_null::freed_in_use(), before, "freed one ticket too early");
        }
    }
}

/// A waker that panics, if selected; otherwise it records the call.
struct Alarm {
    panics: bool,
    rung: AtomicBool,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        assert!(!self.panics, "a waker that panics on purpose");
    }
}

/// Awaits `event` once, so that `alarm` will wake it.
fn await_once(event: Pin<&mut Event>, panics: bool) -> Arc<Alarm> {
    let alarm = Arc::new(Alarm { panics, rung: AtomicBool::new(false) });
    let waker = Waker::from(alarm.clone());
    assert!(event.poll(&mut Context::from_waker(&waker)).is_pending());
    alarm
}

#[test]
fn a_waker_that_panics_leaves_others_alone() {
    let scene = Scene::slow();
    let queue = scene.queue();
    for panics in [true, false] {
        let mut event = pin!(launch(&queue, &scene.noop, &[]).unwrap());
        let (alarm, began) = (await_once(event.as_mut(), panics), Instant::now());
        while !alarm.rung.load(Ordering::Acquire) {
            assert!(began.elapsed() < Duration::from_secs(20), "nothing wakes tasks any more");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_waker_that_panics_does_not_unwind_through_a_drop() {
    for _ in 0..3 {
        let scene = Scene::slow();
        let queue = scene.queue();
        let mut event = pin!(launch(&queue, &scene.noop, &[]).unwrap());
        let alarm = await_once(event.as_mut(), true);
        drop((queue, scene));
        let began = Instant::now();
        while !alarm.rung.load(Ordering::Acquire) && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(alarm.rung.load(Ordering::Acquire), "a task that waits for a closed device is woken");
    }
}
