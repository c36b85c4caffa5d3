//! A transfer by the program is ordered with other work, and holds no lock while bytes move.

#![allow(unsafe_code, reason = "loads code of the null device")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use runtime_core::{
    Arg, CommonRuntime, DType, ErrorKind, Geometry, Kernel, ModuleSource, Options, Placement, Runtime, Tensor,
};

const DELAY: Duration = Duration::from_millis(200);

fn open(options: &Options) -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    runtime.open_with("null:0", options).unwrap()
}

fn slow() -> Arc<dyn CommonRuntime> {
    open(&Options::new().with("delay_us", i64::try_from(DELAY.as_micros()).unwrap()))
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    // SAFETY: the builtins check their arguments.
    device.kernel(&unsafe { ModuleSource::native("null", name) }, name).unwrap()
}

/// When a launch that reads `x` returned, and when `transfer` did, which another thread began `before` it.
fn launched_and_moved(
    device: &dyn CommonRuntime,
    x: &Tensor,
    before: Duration,
    transfer: impl FnOnce() + Send,
) -> (Duration, Duration) {
    let (queue, noop) = (device.queue().unwrap(), kernel(device, "noop"));
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| {
            barrier.wait();
            let begin = Instant::now();
            transfer();
            begin.elapsed()
        });
        barrier.wait();
        let begin = Instant::now();
        std::thread::sleep(before);
        queue.launch(&noop, Geometry::single(), &[Arg::read(x)]).unwrap();
        (begin.elapsed(), moved.join().unwrap())
    })
}

#[test]
fn a_read_of_a_view_with_gaps_delays_no_launch() {
    let device = slow();
    let x = device.zeros::<f32>([4, 4]).unwrap();
    let columns = x.slice(1, 1..3).unwrap();
    let (launched, read) = launched_and_moved(&*device, &x, DELAY / 4, || {
        assert_eq!(columns.to_vec::<f32>().unwrap(), [0.0; 8]);
    });
    assert!(read >= DELAY && launched < read - DELAY / 4, "launched after {launched:?}, read after {read:?}");
}

#[test]
fn a_long_copy_of_host_visible_memory_delays_no_launch() {
    const BYTES: usize = 128 << 20;
    let device = open(&Options::new());
    let x = device.allocate(DType::U8, &[BYTES], &Placement::space("pinned")).unwrap();
    x.fill(&[7]).unwrap();
    let mut bytes = vec![1; BYTES];
    let mut attempt =
        || launched_and_moved(&*device, &x, Duration::from_millis(2), || x.read_bytes(&mut bytes).unwrap());
    let attempts: Vec<_> = (0..9).map(|_| attempt()).collect();
    // A busy machine may delay either thread, but not most of the time.
    let early = attempts.iter().filter(|(launched, read)| *launched < *read * 3 / 4).count();
    assert!(2 * early > attempts.len(), "{attempts:?}");
    assert!(bytes.iter().all(|&byte| byte == 7));
}

#[test]
fn transfers_and_launches_of_many_threads_see_whole_contents() {
    const N: usize = 50_000;
    let device = open(&Options::new());
    for space in ["device", "pinned"] {
        let x = device.allocate(DType::F32, &[2, N], &Placement::space(space)).unwrap();
        x.fill(&1f32.to_le_bytes()).unwrap();
        let done = AtomicBool::new(false);
        let is_uniform = |values: &[f32]| values.iter().all(|value| value.to_bits() == values[0].to_bits());
        std::thread::scope(|scope| {
            for view in [x.clone(), x.slice(1, 0..N / 2).unwrap(), x.permute(&[1, 0]).unwrap()] {
                let done = &done;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        assert!(is_uniform(&view.to_vec::<f32>().unwrap()), "{view:?}");
                    }
                });
            }
            let writer = scope.spawn(|| {
                let values: Vec<_> = (2u8..12).map(|value| vec![f32::from(value); 2 * N]).collect();
                values.iter().cycle().take(40).for_each(|values| x.write(values).unwrap());
            });
            let queue = device.queue().unwrap();
            for value in 0..40u8 {
                drop(queue.fill(&x, &f32::from(value).to_le_bytes()).unwrap());
            }
            queue.wait_idle().unwrap();
            writer.join().unwrap();
            done.store(true, Ordering::Relaxed);
        });
        assert!(is_uniform(&x.to_vec::<f32>().unwrap()));
    }
}

#[test]
fn a_write_that_could_not_begin_keeps_the_failure_of_the_writer_before() {
    let device = open(&Options::new().with("fail_call", "write:1"));
    let (queue, fail) = (device.queue().unwrap(), kernel(&*device, "fail"));
    let x = device.empty::<f32>([3]).unwrap();
    queue.launch(&fail, Geometry::single(), &[Arg::write(&x)]).unwrap();
    assert_eq!(x.write(&[1f32; 3]).unwrap_err().kind(), ErrorKind::Driver, "refused");
    assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Failed, "the content was not replaced");
    x.write(&[1f32; 3]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0; 3]);
}
