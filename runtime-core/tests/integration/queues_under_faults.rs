//! Queues that wait for each other, fail or are dropped: order, failures and memory, on the null device with injected faults.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use runtime_core::{
    Arg, CommonRuntime, DType, ErrorKind, Geometry, Kernel, ModuleSource, Options, Placement, Queue, Runtime,
    Tensor,
};
use test_process::spawn_until_asleep;

/// Longer than any step of these tests takes.
const DEADLINE: Duration = Duration::from_secs(10);

fn runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

fn open(options: &Options) -> Arc<dyn CommonRuntime> {
    runtime().open_with("null:0", options).unwrap()
}

fn delayed(delay_us: i64) -> Options {
    Options::new().with("delay_us", delay_us)
}

fn queue(device: &Arc<dyn CommonRuntime>) -> Queue {
    device.queue().unwrap()
}

fn kernel(device: &Arc<dyn CommonRuntime>, name: &str) -> Kernel {
    // SAFETY: the null device's builtins check their arguments.
    let source = unsafe { ModuleSource::native("null", name) };
    device.kernel(&source, name).unwrap()
}

fn tensor(device: &Arc<dyn CommonRuntime>, space: &str) -> Tensor {
    device.allocate(DType::F32, &[4], &Placement::space(space)).unwrap()
}

/// Runs `work` on a separate thread; fails if it hangs.
fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(DEADLINE).expect("it hangs, or panicked")
}

#[test]
fn two_queues_that_wait_for_earlier_work_of_each_other_complete() {
    let device = open(&delayed(20_000));
    let (first, second, noop) = (queue(&device), queue(&device), kernel(&device, "noop"));
    let x = tensor(&device, "device");
    for _ in 0..40 {
        first.launch(&noop, Geometry::single(), &[Arg::read_write(&x)]).unwrap();
        second.launch(&noop, Geometry::single(), &[Arg::read_write(&x)]).unwrap();
    }
    second.wait_idle_timeout(DEADLINE).unwrap();
    first.wait_idle_timeout(DEADLINE).unwrap();
}

#[test]
fn two_threads_wait_for_queues_that_wait_for_each_other() {
    within(|| {
        let device = open(&delayed(100));
        let (first, second, noop) = (queue(&device), queue(&device), kernel(&device, "noop"));
        for _ in 0..300 {
            let x = tensor(&device, "device");
            for _ in 0..4 {
                first.launch(&noop, Geometry::single(), &[Arg::read_write(&x)]).unwrap();
                second.launch(&noop, Geometry::single(), &[Arg::read_write(&x)]).unwrap();
            }
            std::thread::scope(|scope| {
                for queue in [&first, &second, &first, &second] {
                    scope.spawn(|| queue.wait_idle().unwrap());
                }
            });
        }
    });
}

#[test]
fn a_rejected_submission_leaves_no_dependency() {
    let device = open(&delayed(20_000).with("fail_call", "launch:2:out_of_resources"));
    let (first, second) = (queue(&device), queue(&device));
    let (noop, fail) = (kernel(&device, "noop"), kernel(&device, "fail"));
    let x = tensor(&device, "device");
    first.launch(&fail, Geometry::single(), &[Arg::write(&x)]).unwrap();
    let refused = second.launch(&noop, Geometry::single(), &[Arg::read(&x)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfResources);
    // It does not use `x`, and takes the ticket of the rejected submission.
    second.launch(&noop, Geometry::single(), &[]).unwrap().wait_timeout(DEADLINE).unwrap();
}

#[test]
fn a_dependent_of_a_queue_whose_polls_fail_gets_the_error() {
    let runtime = runtime();
    let broken = runtime.open_with("null:1", &Options::new().with("panic_in", "poll")).unwrap();
    let device = runtime.open("null:0").unwrap();
    let source = queue(&broken).launch(&kernel(&broken, "noop"), Geometry::single(), &[]).unwrap();
    let dependent = queue(&device);
    dependent.wait_for(&source).unwrap();
    let event = dependent.launch(&kernel(&device, "noop"), Geometry::single(), &[]).unwrap();
    assert_eq!(event.wait_timeout(DEADLINE / 5).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn a_failure_outlives_the_queue_that_propagated_it() {
    let device = open(&Options::new());
    let (first, second) = (queue(&device), queue(&device));
    let (x, y) = (tensor(&device, "device"), tensor(&device, "device"));
    let (fail, noop) = (kernel(&device, "fail"), kernel(&device, "noop"));
    first.launch(&fail, Geometry::single(), &[Arg::write(&x)]).unwrap();
    second.launch(&noop, Geometry::single(), &[Arg::read(&x), Arg::write(&y)]).unwrap();
    drop(second);
    drop(queue(&device));
    drop(queue(&device));
    assert_eq!(y.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn a_failed_reader_leaves_the_tensor_valid() {
    let device = open(&Options::new());
    let (x, fail) = (tensor(&device, "pinned"), kernel(&device, "fail"));
    x.write(&[1.0f32; 4]).unwrap();
    let queues: Vec<_> = (0..4).map(|_| queue(&device)).collect();
    for queue in &queues {
        let event = queue.launch(&fail, Geometry::single(), &[Arg::read(&x)]).unwrap();
        assert!(event.wait_timeout(DEADLINE).is_err());
    }
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 4]);
    x.slice(0, 1..2).unwrap().write(&[2.0f32]).unwrap();
    assert_eq!(x.map_mut().unwrap().as_mut_slice::<f32>().unwrap(), [1.0, 2.0, 1.0, 1.0]);
}

#[test]
fn the_host_writes_only_after_failed_work_has_ended() {
    let runtime = runtime();
    let failing = runtime.open_with("null:0", &Options::new().with("fail_ticket", 1)).unwrap();
    let slow = runtime.open_with("null:1", &delayed(300_000)).unwrap();
    let (first, second) = (queue(&failing), queue(&slow));
    let (x, y, z) = (tensor(&failing, "device"), tensor(&slow, "device"), tensor(&slow, "pinned"));
    first.copy(&y, &x).unwrap();
    let args = [Arg::read(&y), Arg::write(&z)];
    let event = second.launch(&kernel(&slow, "noop"), Geometry::single(), &args).unwrap();
    assert!(event.wait_timeout(DEADLINE).is_err(), "the failure is known before the kernel has ended");
    assert_eq!(second.completed().unwrap(), 0);
    z.write(&[0.0f32; 4]).unwrap();
    assert_eq!(second.completed().unwrap(), 1, "the kernel writes no more");
}

#[test]
fn a_launch_is_ordered_after_failed_work_that_still_runs() {
    let runtime = runtime();
    let failing = runtime.open_with("null:0", &Options::new().with("fail_ticket", 1)).unwrap();
    let slow = runtime.open_with("null:1", &delayed(300_000).with("out_of_order", true)).unwrap();
    let (first, second, third) = (queue(&failing), queue(&slow), queue(&slow));
    let (x, y, z) = (tensor(&failing, "device"), tensor(&slow, "device"), tensor(&slow, "pinned"));
    let noop = kernel(&slow, "noop");
    first.copy(&y, &x).unwrap();
    let reader = second.launch(&noop, Geometry::single(), &[Arg::read(&y), Arg::read(&z)]).unwrap();
    assert!(reader.wait_timeout(DEADLINE).is_err());
    third.launch(&noop, Geometry::single(), &[Arg::write(&z)]).unwrap().wait_timeout(DEADLINE).unwrap();
    assert_eq!(second.completed().unwrap(), 1, "the reader ended before the writer");
}

#[test]
fn a_tensor_frozen_meanwhile_is_not_written() {
    for write in [|x: &Tensor| x.map_mut().is_ok(), |x: &Tensor| x.write(&[1.0f32; 4]).is_ok()] {
        let device = open(&delayed(300_000));
        let (queue, noop, x) = (queue(&device), kernel(&device, "noop"), tensor(&device, "pinned"));
        queue.launch(&noop, Geometry::single(), &[Arg::read(&x)]).unwrap();
        std::thread::scope(|scope| {
            let writer = spawn_until_asleep(scope, || write(&x));
            x.freeze().unwrap();
            assert!(!writer.join().unwrap(), "it was written after it had been frozen");
        });
    }
}

#[test]
fn a_tensor_frozen_while_a_launch_waits_is_not_written() {
    // On a busy machine, this thread may come after the work that the launch waits for.
    for delay_us in [100_000, 1_000_000, 10_000_000] {
        // This device cannot wait for other queues: the thread does, and then tries again.
        let device = runtime().open_with("null:0.1", &delayed(delay_us)).unwrap();
        let (reader, writer, noop) = (queue(&device), queue(&device), kernel(&device, "noop"));
        let (x, began) = (tensor(&device, "device"), Instant::now());
        reader.launch(&noop, Geometry::single(), &[Arg::read(&x)]).unwrap();
        let (in_time, outcome) = std::thread::scope(|scope| {
            let launch = spawn_until_asleep(scope, || {
                writer.launch(&noop, Geometry::single(), &[Arg::write(&x)]).map(drop)
            });
            x.freeze().unwrap();
            let in_time = began.elapsed() < Duration::from_micros(delay_us.cast_unsigned());
            (in_time, launch.join().unwrap())
        });
        if in_time {
            let error = outcome.unwrap_err();
            return assert!(error.to_string().contains("a frozen tensor cannot be written"), "{error}");
        }
    }
    panic!("the tensor was never frozen in time");
}

#[test]
fn borrowed_memory_is_not_released_while_polling_fails() {
    for (call, other) in [("poll", "poll"), ("wait", "poll")] {
        let options = delayed(50_000).with("fail_call", format!("{call}:1"));
        let device = open(&options.with("fail_call", format!("{other}:2")));
        let (queue, x) = (queue(&device), tensor(&device, "device"));
        let mut bytes = [0; 16];
        queue.read(&x, &mut bytes).unwrap_err();
        assert_eq!(queue.completed().unwrap(), 1, "the device may still write the borrowed memory");
    }
}

#[test]
fn a_rejected_recording_changes_no_dependencies() {
    let device = open(&Options::new());
    let (queue, noop) = (queue(&device), kernel(&device, "noop"));
    let (x, frozen) = (tensor(&device, "device"), tensor(&device, "device"));
    frozen.freeze().unwrap();
    let one = Geometry::single();
    let recorded = queue.record(|recorder| {
        recorder.launch(&noop, one, &[Arg::write(&x)])?;
        recorder.launch(&noop, one, &[Arg::write(&x), Arg::write(&frozen)]).unwrap_err();
        recorder.launch(&noop, one, &[Arg::read(&x)])
    });
    assert_eq!(recorded.unwrap().dependencies(1), Some(&[0][..]));
}

#[test]
fn a_recorded_copy_stays_within_its_tensors() {
    let device = runtime().open("null:1").unwrap();
    let (queue, x) = (queue(&device), tensor(&device, "device"));
    let large = device.empty::<f32>([1000]).unwrap();
    // A thousand elements at one address: the 4000 bytes from there are not all in the tensor.
    let repeated = x.view(&[1000], &[0], 3).unwrap();
    let (low, high) = (x.slice(0, 0..3).unwrap(), x.slice(0, 1..4).unwrap());
    let recorded = queue.record(|recorder| {
        assert_eq!(recorder.copy(&large, &repeated).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(recorder.copy(&low, &high).unwrap_err().kind(), ErrorKind::Unsupported);
        recorder.copy(&x.slice(0, 0..2)?, &x.slice(0, 2..4)?)
    });
    assert_eq!(recorded.unwrap().len(), 1);
}

#[test]
fn a_replay_without_native_graphs_signals_only_held_events() {
    let device = open(&Options::new());
    let (queue, noop) = (queue(&device), kernel(&device, "noop"));
    let recorded = queue.record(|recorder| {
        (0..5).try_for_each(|_| recorder.launch(&noop, Geometry::single(), &[]).map(drop))
    });
    let graph = queue.instantiate(&recorded.unwrap()).unwrap();
    drop(queue.replay(&graph).unwrap());
    let counts = device.empty::<u64>([2]).unwrap();
    queue.launch(&kernel(&device, "counters"), Geometry::single(), &[Arg::write(&counts)]).unwrap();
    assert_eq!(counts.to_vec::<u64>().unwrap(), [6, 0], "launches and signals");
}

#[test]
fn shapes_that_overflow_are_errors_and_empty_tensors_work() {
    let device = open(&Options::new());
    let x = tensor(&device, "device");
    assert!(x.view(&[1 << 40, 1 << 40], &[0, 0], 0).is_err());
    assert!(x.view(&[1 << 62], &[0], 0).is_err());
    let far = x.view(&[0], &[1], usize::MAX).unwrap();
    assert!(far.to_vec::<f32>().unwrap().is_empty());
    let empty = device.empty::<f32>([0, 4]).unwrap();
    let part = empty.slice(1, 2..4).unwrap();
    part.write::<f32>(&[]).unwrap();
    assert!(part.to_vec::<f32>().unwrap().is_empty());
    let nothing = DType::from_dlpack(2, 0, 1);
    assert!(device.allocate(nothing, &[4], &Placement::default()).is_err());
}

/// Sends a message, and panics.
struct Panicking(Sender<()>);

impl std::task::Wake for Panicking {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
        panic!("a waker that panics");
    }
}

#[test]
fn a_waker_that_panics_does_not_end_the_wait_thread() {
    let device = open(&delayed(20_000));
    let (queue, noop) = (queue(&device), kernel(&device, "noop"));
    let mut event = queue.launch(&noop, Geometry::single(), &[]).unwrap();
    let (sender, woken) = channel();
    let waker = std::task::Waker::from(Arc::new(Panicking(sender)));
    let mut context = std::task::Context::from_waker(&waker);
    assert!(std::pin::Pin::new(&mut event).poll(&mut context).is_pending());
    event.wait_timeout(DEADLINE).unwrap();
    // The wait thread has seen it as well.
    woken.recv_timeout(DEADLINE).unwrap();
    let event = queue.launch(&noop, Geometry::single(), &[]).unwrap();
    within(|| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(event)).unwrap();
}
