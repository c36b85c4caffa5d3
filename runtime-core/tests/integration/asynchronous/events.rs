//! Events that stand for others, their status and their dependencies.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use runtime_core::abi::{BackendTable, Handle, QueueTable, Status};
use runtime_core::backend::LinkedBackend;
use runtime_core::evaluate::EventClock;
use runtime_core::{ErrorKind, Event, EventStatus, Options, Queue, QueueOptions};

use super::{BUSY_US, Scene};

const SHORT: Duration = Duration::from_millis(1);

fn kind(result: runtime_core::Result<()>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn all_of_nothing_is_complete() {
    let all = Event::all(&[]);
    assert!(all.is_done().unwrap());
    assert_eq!((all.status().unwrap(), all.ticket()), (EventStatus::Complete, 0));
    all.wait().unwrap();
    assert!(Event::all(&[&Event::completed(), &Event::all(&[])]).is_done().unwrap());
}

#[test]
fn any_of_nothing_is_an_invalid_argument() {
    let any = Event::any(&[]);
    assert_eq!(kind(any.wait()), ErrorKind::InvalidArgument);
    assert_eq!(any.status().unwrap(), EventStatus::Failed);
    let queue = Scene::new().queue();
    assert_eq!(kind(queue.wait_for(&any)), ErrorKind::InvalidArgument);
}

#[test]
fn all_ends_with_the_last() {
    let scene = Scene::new();
    let (quick, slow) = (scene.quick(), scene.slow());
    let all = Event::all(&[&quick, &slow]);
    quick.wait().unwrap();
    assert!(!all.is_done().unwrap());
    assert_eq!(all.status().unwrap(), EventStatus::Submitted);
    assert_eq!(kind(all.wait_timeout(SHORT)), ErrorKind::Timeout);
    all.wait().unwrap();
    assert!(slow.is_done().unwrap());
    all.wait_timeout(Duration::ZERO).unwrap();
}

#[test]
fn any_completes_with_the_first() {
    let scene = Scene::new();
    let slow = scene.slow();
    let any = Event::any(&[&slow, &scene.quick()]);
    any.wait().unwrap();
    assert!(!slow.is_done().unwrap());
    assert_eq!(any.status().unwrap(), EventStatus::Complete);
    let late = Event::any(&[&slow, &scene.slow()]);
    assert_eq!(kind(late.wait_timeout(SHORT)), ErrorKind::Timeout);
    late.wait().unwrap();
}

#[test]
fn all_fails_when_the_others_have_ended() {
    let scene = Scene::new();
    let (failing, slow) = (scene.failing(), scene.slow());
    assert_eq!(kind(failing.wait()), ErrorKind::Failed);
    let all = Event::all(&[&failing, &slow]);
    assert!(!all.is_done().unwrap(), "the slow one runs");
    assert_eq!(kind(all.wait()), ErrorKind::Failed);
    assert!(slow.is_done().unwrap());
    assert_eq!(all.status().unwrap(), EventStatus::Failed);
    // Also in a group that takes it up.
    assert_eq!(kind(Event::all(&[&all, &slow]).wait()), ErrorKind::Failed);
}

#[test]
fn any_fails_when_all_have_failed() {
    let scene = Scene::new();
    let any = Event::any(&[&scene.failing(), &scene.slow()]);
    any.wait().unwrap();
    let hopeless = Event::any(&[&scene.failing(), &scene.failing()]);
    assert_eq!(kind(hopeless.wait()), ErrorKind::Failed);
    assert_eq!(kind(hopeless.wait()), ErrorKind::Failed);
    assert_eq!(kind(block_on(hopeless)), ErrorKind::Failed);
}

#[test]
fn groups_nest() {
    let scene = Scene::new();
    let (slow, quick, failing) = (scene.slow(), scene.quick(), scene.failing());
    // One of them fails, so the group does, but another one completes.
    let all = Event::all(&[&quick, &Event::any(&[&failing, &slow])]);
    let any = Event::any(&[&Event::all(&[&failing, &quick]), &all]);
    assert!(!any.is_done().unwrap());
    assert_eq!(any.status().unwrap(), EventStatus::Submitted);
    block_on(&any).unwrap();
    assert!(slow.is_done().unwrap());
    any.wait().unwrap();
    assert_eq!(kind(Event::all(&[&any, &Event::all(&[&failing])]).wait()), ErrorKind::Failed);
}

#[test]
fn the_same_event_may_be_listed_twice() {
    let scene = Scene::new();
    let slow = scene.slow();
    for group in [Event::all(&[&slow, &slow]), Event::any(&[&slow, &slow])] {
        assert_eq!(group.ticket(), slow.ticket(), "it is that event");
    }
    let task = scene.queue().host_task(&[&slow, &slow], || {}).unwrap();
    Event::all(&[&task, &task, &Event::any(&[&task, &task])]).wait().unwrap();
}

#[test]
fn a_hundred_thousand_events_of_few_queues_are_few() {
    let scene = Scene::new();
    let (one, other) = (scene.queue(), scene.queue());
    let submit = |queue: &Queue| queue.launch(&scene.noop, (1, 1), ()).unwrap();
    // Nothing ends before all are submitted.
    let first = [submit(&one), submit(&other)];
    one.launch(&scene.spin, (1, 1), (BUSY_US,)).unwrap();
    other.launch(&scene.spin, (1, 1), (BUSY_US,)).unwrap();
    let last = [submit(&one), submit(&other)];
    let events: Vec<_> = (0..100_000).map(|n| last[n % 2].clone()).collect();
    let mut list: Vec<_> = events.iter().collect();
    list.extend(&first);
    let all = Event::all(&list);
    assert_eq!(all.dependencies().len(), 2);
    all.wait().unwrap();
    assert!(last.iter().all(|event| event.is_done().unwrap()));
}

#[test]
fn chains_of_groups_neither_grow_nor_overflow_the_stack() {
    let scene = Scene::new();
    let gate = scene.slow();
    let queue = scene.queue();
    let mut all = Event::completed();
    for _ in 0..2000 {
        // Each task is an event of its own, so they all stay in the group.
        let task = queue.host_task(&[&gate], || {}).unwrap();
        all = Event::all(&[&all, &task]);
    }
    all.wait().unwrap();
    let (a, failing) = (scene.slow(), scene.failing());
    let mut nested = Event::all(&[&a, &scene.slow()]);
    for _ in 0..1000 {
        nested = Event::any(&[&Event::all(&[&nested, &a]), &failing]);
    }
    let error = nested.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("256 deep"), "{error}");
}

#[test]
fn a_barrier_ends_after_earlier_submissions_and_dependencies() {
    let scene = Scene::new();
    let (queue, slow) = (scene.queue(), scene.slow());
    let earlier = queue.launch(&scene.spin, (1, 1), (BUSY_US / 2,)).unwrap();
    let barrier = queue.barrier(&[&slow]).unwrap();
    let later = queue.launch(&scene.noop, (1, 1), ()).unwrap();
    assert!(!barrier.is_done().unwrap());
    barrier.wait().unwrap();
    assert!(earlier.is_done().unwrap() && slow.is_done().unwrap());
    later.wait().unwrap();
    let [dependency] = barrier.dependencies() else { panic!("{:?}", barrier.dependencies()) };
    assert!(dependency.is_done().unwrap());
    assert!(scene.queue().barrier(&[]).unwrap().is_done().unwrap());
    assert_eq!(
        kind(scene.queue().barrier(&[&scene.failing()]).and_then(|event| event.wait())),
        ErrorKind::Failed
    );
}

#[test]
fn a_later_submission_waits_for_a_group() {
    let scene = Scene::new();
    let (slow, other) = (scene.slow(), scene.slow());
    let queue = scene.queue();
    queue.wait_for_all(&[&Event::all(&[&slow, &other]), &Event::completed()]).unwrap();
    queue.launch(&scene.noop, (1, 1), ()).unwrap().wait().unwrap();
    assert!(slow.is_done().unwrap() && other.is_done().unwrap());
    // It blocks for any of them.
    let (slow, quick) = (scene.slow(), scene.quick());
    queue.wait_for(&Event::any(&[&slow, &quick])).unwrap();
    assert!(quick.is_done().unwrap() && !slow.is_done().unwrap());
    // A failure that is not known yet fails what is submitted later.
    let failed = queue
        .wait_for(&Event::all(&[&scene.slow(), &scene.failing()]))
        .and_then(|()| queue.launch(&scene.noop, (1, 1), ()))
        .and_then(|event| event.wait());
    assert_eq!(kind(failed), ErrorKind::Failed);
}

#[test]
fn a_held_queue_records() {
    let scene = Scene::new();
    let queue = scene.queue();
    let held = queue.hold().unwrap();
    let event = queue.launch(&scene.noop, (1, 1), ()).unwrap();
    assert_eq!(event.status().unwrap(), EventStatus::Recorded);
    assert_eq!(Event::all(&[&event, &scene.slow()]).status().unwrap(), EventStatus::Recorded);
    assert_eq!(Event::any(&[&event, &scene.slow()]).status().unwrap(), EventStatus::Submitted);
    // Every wait ends the hold, also one for a group.
    Event::any(&[&event, &scene.slow()]).wait().unwrap();
    assert!(!held.resume().unwrap());
    assert_eq!(event.status().unwrap(), EventStatus::Complete);
}

/// Counts its calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_dropped_future_of_a_group_wakes_nobody_and_cancels_nothing() {
    let scene = Scene::new();
    for group in [Event::all, Event::any] {
        let task = scene.queue().host_task(&[&scene.slow()], || {}).unwrap();
        let group = group(&[&task, &scene.slow()]);
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut future = Box::pin((&group).into_future());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop((future, waker));
        group.wait().unwrap();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        assert_eq!(Arc::strong_count(&count), 1, "nobody keeps the waker");
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload's panic");
    }
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(Bomb);
        }
    }
    let scene = Scene::new();
    let waker = Waker::from(Arc::new(Panics));
    let poll_with_it = |event: &Event| {
        let mut bad = pin!(event.clone());
        assert!(bad.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        block_on(event).unwrap();
        assert!(matches!(bad.poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))));
    };
    // The thread of the task wakes one future, the wait thread the other.
    poll_with_it(&scene.queue().host_task(&[&scene.slow()], || {}).unwrap());
    poll_with_it(&scene.slow());
    // And both threads go on.
    let again = scene.slow();
    let task = scene.queue().host_task(&[&again], || {}).unwrap();
    block_on(&again).unwrap();
    block_on(&task).unwrap();
}

#[test]
fn a_timer_of_tokio_may_win() {
    let scene = Scene::new();
    let gate = scene.slow();
    let task = scene.queue().host_task(&[&gate], || {}).unwrap();
    let group = Event::all(&[&task, &Event::any(&[&gate, &scene.slow()])]);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    tokio.block_on(async {
        for event in [&gate, &task, &group] {
            tokio::select! {
                ended = event => panic!("{ended:?} after {SHORT:?}"),
                () = tokio::time::sleep(SHORT) => {}
            }
        }
        tokio::select! {
            ended = &group => ended.unwrap(),
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("the event never came"),
        }
    });
    task.wait_timeout(Duration::ZERO).unwrap();
}

#[test]
fn an_event_outlives_its_device_in_a_group() {
    let scene = Scene::new();
    let all = Event::all(&[&scene.slow(), &scene.slow()]);
    let any = Event::any(&[&scene.slow(), &scene.slow()]);
    drop(scene);
    all.wait().unwrap();
    block_on(any).unwrap();
}

/// Flushes of the queues of [`counting`].
static FLUSHES: AtomicUsize = AtomicUsize::new(0);

fn below() -> &'static QueueTable {
    // SAFETY: null has all tables, and they are static.
    unsafe { &*runtime_null::backend().table().queue }
}

unsafe extern "C" fn flush(queue: Handle) -> Status {
    FLUSHES.fetch_add(1, Ordering::SeqCst);
    // SAFETY: core's argument, passed on.
    unsafe { (below().flush.unwrap())(queue) }
}

/// The null backend, with flushes that are counted.
fn counting() -> LinkedBackend {
    let queue = Box::leak(Box::new(QueueTable { flush: Some(flush), ..*below() }));
    let table = BackendTable { queue, ..*runtime_null::backend().table() };
    // SAFETY: null's functions, and one that counts.
    unsafe { LinkedBackend::from_table(Box::leak(Box::new(table))) }
}

#[test]
fn a_group_flushes_every_queue() {
    let scene = Scene::on(counting(), &Options::new());
    let (one, other) = (scene.queue(), scene.queue());
    let first = one.launch(&scene.spin, (1, 1), (BUSY_US,)).unwrap();
    let second = other.launch(&scene.spin, (1, 1), (BUSY_US,)).unwrap();
    let before = FLUSHES.load(Ordering::SeqCst);
    // The group has asked for the first one only, but both must run.
    assert!(!Event::all(&[&first, &second]).is_done().unwrap());
    assert_eq!(FLUSHES.load(Ordering::SeqCst) - before, 2);
}

fn block_on(future: impl IntoFuture<Output = runtime_core::Result<()>>) -> runtime_core::Result<()> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future.into_future())
}

#[test]
fn times_are_those_of_the_work() {
    let scene = Scene::new();
    let options = QueueOptions { timestamps: true, ..QueueOptions::default() };
    let queue = scene.device.open_queue(&options).unwrap();
    let before = Instant::now();
    let timed = |us: i64| queue.timed(|queue| queue.launch(&scene.spin, (1, 1), (us,))).unwrap();
    let (first, second) = (timed(BUSY_US), timed(1000));
    assert_eq!(first.times().unwrap_err().kind(), ErrorKind::InvalidArgument, "it runs");
    assert_eq!(second.status().unwrap(), EventStatus::Submitted);
    while first.status().unwrap() != EventStatus::Running {
        assert!(before.elapsed() < Duration::from_secs(60));
    }
    second.wait().unwrap();
    let ([a, b], clone) = ([first.times().unwrap(), second.times().unwrap()], first.clone());
    assert!(a.submitted >= before && b.submitted >= a.submitted);
    assert!(a.end_ns - a.start_ns >= 1000 * BUSY_US.cast_unsigned(), "{a:?}");
    assert!(b.end_ns - b.start_ns >= 1_000_000 && b.start_ns >= a.end_ns, "{a:?} {b:?}");
    assert_eq!(a.clock, EventClock::Device("null:0".to_owned()));
    assert_eq!((first.times().unwrap(), clone.times().unwrap()), (a.clone(), a), "a backend gives them once");
}

#[test]
fn no_time_is_invented() {
    let scene = Scene::new();
    let event = scene.quick();
    event.wait().unwrap();
    let all = Event::all(&[&scene.slow(), &scene.slow()]);
    all.wait().unwrap();
    for event in [event, all, Event::completed()] {
        assert_eq!(event.times().unwrap_err().kind(), ErrorKind::Unsupported);
    }
    let options = QueueOptions { timestamps: true, ..QueueOptions::default() };
    let foreign = scene.device.open_queue(&options).unwrap().timed(|_| Ok(scene.quick()));
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_host_task_has_times_of_the_host() {
    let scene = Scene::new();
    let (slow, queue) = (scene.slow(), scene.queue());
    let first = queue.host_task(&[], || std::thread::sleep(SHORT)).unwrap();
    let second = queue.host_task(&[&first, &slow], || {}).unwrap();
    assert_eq!(second.times().unwrap_err().kind(), ErrorKind::InvalidArgument);
    second.wait().unwrap();
    let (first, second) = (first.times().unwrap(), second.times().unwrap());
    assert_eq!((&first.clock, &second.clock), (&EventClock::Host, &EventClock::Host));
    assert!(
        first.end_ns - first.start_ns >= 1_000_000 && second.start_ns >= first.end_ns,
        "{first:?} {second:?}"
    );
}
