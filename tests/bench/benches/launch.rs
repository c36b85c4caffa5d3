//! The cost of a launch: ours and the plain call in one run, and the difference.
#![allow(missing_docs, reason = "criterion's macros")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group};
use runtime_bench::{
    DirectCall, Fixture, RawQueue, Samples, compare, measure, measure_by_default, runtime, time,
    with_busy_queue,
};

fn host(criterion: &mut Criterion) {
    let fixture = Fixture::open(&runtime(), "host").expect("the host opens");
    let mut direct = DirectCall::load();
    let plain = measure(criterion, "host/direct_call", |calls| time(calls, || direct.call(3.0)));
    let call =
        measure(criterion, "host/call", |calls| time(calls, || fixture.call(3.0).expect("the call runs")));
    assert_eq!(
        fixture.result().expect("readable").to_bits(),
        direct.result().to_bits(),
        "both ran the kernel"
    );
    let busy = measure(criterion, "host/submit_to_a_running_worker", |calls| submit_busy(&fixture, calls));
    let mut quick = Criterion::default()
        .measurement_time(Duration::from_millis(10))
        .warm_up_time(Duration::from_millis(200));
    let idle = measure(&mut quick, "host/submit_to_an_idle_worker", |calls| submit_idle(&fixture, calls));
    let wake = measure(&mut quick, "host/wake_a_bare_thread", wake_asleep);
    compare("host: synchronous call", &call, &plain, 100.0);
    compare("host: submit to a running worker", &busy, &Samples::default(), 500.0);
    compare("host: submit to an idle worker", &idle, &Samples::default(), 3000.0);
    compare("host: submit to an idle worker, over waking a bare thread", &idle, &wake, 500.0);
}

/// Submissions while a kernel runs that ends only after all of them.
fn submit_busy(fixture: &Fixture, calls: u64) -> Duration {
    const DEPTH: u64 = 512;
    let mut elapsed = Duration::ZERO;
    let mut left = calls;
    while left > 0 {
        let some = left.min(DEPTH);
        elapsed += with_busy_queue(fixture, || {
            Ok(time(some, || drop(fixture.launch(3.0).expect("the queue takes it"))))
        })
        .expect("the queue is held");
        fixture.queue.wait_idle().expect("the queue ends");
        left -= some;
    }
    elapsed
}

/// Long enough for a worker to go to sleep; this thread stays awake, like one that submits now and then.
fn let_sleep() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1) {
        std::hint::spin_loop();
    }
}

/// Submissions to a queue whose worker has gone to sleep.
fn submit_idle(fixture: &Fixture, calls: u64) -> Duration {
    let mut elapsed = Duration::ZERO;
    for _ in 0..calls {
        fixture.queue.wait_idle().expect("the queue ends");
        let_sleep();
        elapsed += time(1, || drop(fixture.launch(3.0).expect("the queue takes it")));
    }
    elapsed
}

/// Wake-ups of a sleeping thread: the operating system's share of a submission to an idle worker.
fn wake_asleep(calls: u64) -> Duration {
    static DONE: AtomicBool = AtomicBool::new(false);
    DONE.store(false, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while !DONE.load(Ordering::Relaxed) {
                std::thread::park();
            }
        });
        let mut elapsed = Duration::ZERO;
        for _ in 0..calls {
            let_sleep();
            elapsed += time(1, || sleeper.thread().unpark());
        }
        DONE.store(true, Ordering::Relaxed);
        sleeper.thread().unpark();
        elapsed
    })
}

fn accelerator(criterion: &mut Criterion) {
    let runtime = runtime();
    let fixture = Fixture::open(&runtime, "null").expect("the null device opens");
    let mut raw = RawQueue::open();
    let plain = measure(criterion, "null/raw_table_call", |calls| time(calls, || raw.launch()));
    let dropped = measure(criterion, "null/launch_event_dropped", |calls| {
        time(calls, || drop(fixture.launch(3.0).expect("the queue takes it")))
    });
    let dispatched = measure(criterion, "null/dispatch_event_dropped", |calls| {
        time(calls, || drop(fixture.submit(3.0).expect("the queue takes it")))
    });
    let mut held = None;
    let kept = measure(criterion, "null/launch_event_kept", |calls| {
        time(calls, || held = Some(fixture.launch(3.0).expect("the queue takes it")))
    });
    drop(held);
    let threads = two_threads(criterion, &runtime);
    let tasks = measure(criterion, "null/host_task", |calls| host_tasks(&fixture, calls));
    compare("null: launch, event dropped", &dropped, &plain, 100.0);
    compare("null: launch, event kept", &kept, &plain, 100.0);
    compare("null: dispatch, over a launch", &dispatched, &dropped, 60.0);
    compare("null: launch from each of two threads", &threads, &Samples::default(), 130.0);
    compare("a host task, submitted and run", &tasks, &Samples::default(), 5000.0);
}

/// Host tasks without dependencies, until the last one has ended.
fn host_tasks(fixture: &Fixture, calls: u64) -> Duration {
    let begin = Instant::now();
    let mut last = None;
    for _ in 0..calls {
        last = Some(fixture.queue.host_task(&[], || ()).expect("a task is taken"));
    }
    if let Some(last) = last {
        last.wait().expect("the task runs");
    }
    begin.elapsed()
}

/// Two threads, each with its own queue, and a frozen tensor that both read.
fn two_threads(criterion: &mut Criterion, runtime: &runtime_core::Runtime) -> Samples {
    let first = Fixture::open(runtime, "null").expect("the null device opens");
    let second = first.second_queue().expect("a second queue opens");
    measure(criterion, "null/launch_from_two_threads", |calls| {
        let barrier = Barrier::new(2);
        let run = |fixture: &Fixture| {
            barrier.wait();
            time(calls, || drop(fixture.launch(3.0).expect("the queue takes it")))
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(&second));
            run(&first).max(other.join().expect("the thread ends"))
        })
    })
}

criterion_group!(benches, host, accelerator);
fn main() {
    measure_by_default();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
