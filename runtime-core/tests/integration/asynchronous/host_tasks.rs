//! Host tasks: when they run, what they may do, and what becomes of their failures.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Event, EventStatus, Queue, Result, Runtime, read_write};

use super::{LONG, Scene};

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn dropped() -> (Arc<AtomicBool>, Dropped) {
    let flag = Arc::new(AtomicBool::new(false));
    (flag.clone(), Dropped(flag))
}

#[test]
fn a_task_runs_once_after_its_dependencies() {
    let scene = Scene::new();
    let (slow, other) = (scene.slow(), scene.slow());
    let (runs, seen) = (Arc::new(AtomicUsize::new(0)), (slow.clone(), other.clone()));
    let counted = runs.clone();
    let task = scene
        .queue()
        .host_task(&[&slow, &other], move || {
            assert!(seen.0.is_done().unwrap() && seen.1.is_done().unwrap());
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    assert_eq!(task.status().unwrap(), EventStatus::Recorded);
    assert_eq!(task.dependencies().len(), 2);
    assert_eq!(task.wait_timeout(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::Timeout);
    task.wait().unwrap();
    assert_eq!((runs.load(Ordering::SeqCst), task.status().unwrap()), (1, EventStatus::Complete));
}

#[test]
fn a_running_task_says_so() {
    let (begin, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let task = Scene::new().queue().host_task(&[], move || {
        begin.send(std::thread::current().name().map(str::to_owned)).unwrap();
        ended.recv().unwrap();
    });
    let task = task.unwrap();
    assert_eq!(begun.recv().unwrap().unwrap(), "rt-host-task");
    assert_eq!(task.status().unwrap(), EventStatus::Running);
    assert_eq!(Event::any(&[&task, &Scene::new().slow()]).status().unwrap(), EventStatus::Running);
    end.send(()).unwrap();
    task.wait_timeout(LONG).unwrap();
}

#[test]
fn a_panic_is_the_error_of_its_event() {
    let queue = Scene::new().queue();
    let (flag, owned) = dropped();
    let task = queue.host_task(&[], move || -> () {
        let _owned = owned;
        panic!("no {}", "luck");
    });
    let error = task.unwrap().wait().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Failed, "the host task panicked: no luck"));
    assert!(flag.load(Ordering::SeqCst));
    /// A panic that panics.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    let task = queue.host_task(&[], || -> () { std::panic::panic_any(Bomb) }).unwrap();
    assert_eq!(task.wait().unwrap_err().kind(), ErrorKind::Failed);
    // The threads live on, and the queue is as good as before.
    queue.host_task(&[], || {}).unwrap().wait().unwrap();
    queue.launch_noop().unwrap().wait().unwrap();
}

#[test]
fn an_error_is_that_of_its_event_and_of_dependents() {
    let scene = Scene::new();
    let queue = scene.queue();
    let task = queue.host_task(&[], || Err(Error::new(ErrorKind::Io, "no disk"))).unwrap();
    let (flag, owned) = dropped();
    let dependent = queue.host_task(&[&task], move || drop(owned)).unwrap();
    let error = dependent.wait().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "no disk; a host task depends on it"));
    assert!(flag.load(Ordering::SeqCst), "what the closure owns is dropped first");
    let error = queue.wait_for(&task).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "no disk; a submission depends on it"));
    queue.launch_noop().unwrap().wait().unwrap();
}

#[test]
fn a_failed_dependency_fails_a_task_that_never_runs() {
    let scene = Scene::new();
    let ran = Arc::new(AtomicBool::new(false));
    let set = ran.clone();
    let task = scene
        .queue()
        .host_task(&[&scene.slow(), &scene.failing()], move || set.store(true, Ordering::SeqCst));
    let error = task.unwrap().wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(!ran.load(Ordering::SeqCst));
}

#[test]
fn a_launch_may_depend_on_a_task() {
    let scene = Scene::new();
    let queue = scene.queue();
    let x = scene.device.tensor([2], &[1.0f32, 2.0]).unwrap();
    let y = x.clone();
    let task = queue.host_task(&[&scene.slow()], move || y.write(&[3.0f32, 4.0])).unwrap();
    queue.wait_for(&task).unwrap();
    queue.launch(&scene.scale, (1, 1), (read_write(&x), 2.0f32)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [6.0, 8.0]);
}

#[test]
fn a_task_submits_waits_and_reads() {
    let scene = Scene::new();
    let queue = Arc::new(scene.queue());
    let x = scene.device.tensor([1], &[1.0f32]).unwrap();
    let (own, scale, y) = (queue.clone(), scene.scale.clone(), x.clone());
    let task = queue.host_task(&[], move || {
        own.launch(&scale, (1, 1), (read_write(&y), 2.0f32))?;
        own.host_task(&[], || {})?.wait()?;
        own.wait_idle()?;
        assert_eq!(y.to_vec::<f32>()?, [2.0]);
        Ok(())
    });
    task.unwrap().wait().unwrap();
}

/// Each task waits for one that it submits itself.
fn nest(queue: &Arc<Queue>, depth: usize) -> Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let own = queue.clone();
    queue.host_task(&[], move || nest(&own, depth - 1))?.wait()
}

#[test]
fn tasks_that_wait_for_tasks_do_not_run_out_of_threads() {
    nest(&Arc::new(Scene::new().queue()), 100).unwrap();
}

#[test]
fn tasks_that_wait_for_each_other_otherwise_go_on() {
    // All must run at the same time, which core cannot know.
    let count = 3 * std::thread::available_parallelism().unwrap().get();
    let (queue, barrier) = (Scene::new().queue(), Arc::new(Barrier::new(count)));
    let tasks = (0..count).map(|_| {
        let barrier = barrier.clone();
        queue
            .host_task(&[], move || {
                barrier.wait();
            })
            .unwrap()
    });
    let tasks: Vec<_> = tasks.collect();
    tasks.iter().for_each(|task| task.wait_timeout(LONG).unwrap());
}

#[test]
fn a_task_that_waits_for_itself_is_told() {
    let queue = Scene::new().queue();
    let (send, receive) = mpsc::channel::<Event>();
    let task = queue.host_task(&[], move || receive.recv().unwrap().wait()).unwrap();
    send.send(task.clone()).unwrap();
    assert_eq!(task.wait().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_hundred_thousand_tasks_run() {
    let scene = Scene::new();
    let (queue, gate) = (scene.queue(), scene.slow());
    let sum = Arc::new(AtomicU64::new(0));
    let tasks = (0..100_000u64).map(|n| {
        let sum = sum.clone();
        // Half of them wait, for an event and for a task.
        let deps: &[&Event] = if n % 2 == 0 { &[] } else { &[&gate] };
        queue
            .host_task(deps, move || {
                sum.fetch_add(n, Ordering::Relaxed);
            })
            .unwrap()
    });
    let tasks: Vec<_> = tasks.collect();
    let all = Event::all(&tasks.iter().collect::<Vec<_>>());
    let last = queue.host_task(&[&all], || {}).unwrap();
    last.wait_timeout(LONG).unwrap();
    assert_eq!(sum.load(Ordering::Relaxed), (0..100_000u64).sum::<u64>());
}

#[test]
fn a_chain_of_tasks_runs_in_order() {
    let queue = Scene::new().queue();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut last = Event::completed();
    for n in 0..10_000 {
        let order = order.clone();
        last = queue.host_task(&[&last], move || order.lock().unwrap().push(n)).unwrap();
        assert!(last.dependencies()[0].dependencies().is_empty(), "a chain must not grow");
    }
    last.wait().unwrap();
    assert!(order.lock().unwrap().iter().copied().eq(0..10_000));
}

#[test]
fn a_task_outlives_its_event_its_queue_and_its_device() {
    let scene = Scene::new();
    let (send, receive) = mpsc::channel();
    let gate = scene.slow();
    drop(scene.queue().host_task(&[&gate], move || send.send(()).unwrap()).unwrap());
    drop((scene, gate));
    receive.recv_timeout(LONG).unwrap();
}

#[test]
fn a_task_may_drop_the_last_of_its_device() {
    let scene = Scene::new();
    let (queue, gate) = (scene.queue(), scene.slow());
    let (send, receive) = mpsc::channel();
    let owned = Mutex::new(None);
    let owned = Arc::new(owned);
    let taken = owned.clone();
    let task = queue.host_task(&[&gate], move || {
        let everything = receive.recv().unwrap();
        drop((everything, taken));
    });
    let task = task.unwrap();
    // With work in flight, for which the last drop waits.
    let late = scene.slow();
    send.send((scene, queue)).unwrap();
    task.wait().unwrap();
    // If the thread that wakes futures has just looked, the last drop is its own, a moment later.
    late.wait_timeout(LONG).unwrap();
    drop::<Arc<Mutex<Option<()>>>>(owned);
}

#[test]
fn a_lost_device_fails_its_tasks() {
    let options = runtime_core::Options::new().with("lose_after", 1i64);
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let device = runtime.open_with("null:0", &options).unwrap();
    let queue = device.queue().unwrap();
    let Ok(gate) = queue.launch_noop() else { return };
    let start = Instant::now();
    let task = queue.host_task(&[&gate], || {}).and_then(|task| task.wait());
    assert_eq!(task.unwrap_err().kind(), ErrorKind::DeviceLost);
    assert!(start.elapsed() < LONG);
}

#[test]
fn idle_threads_end_and_start_again() {
    let queue = Scene::new().queue();
    for _ in 0..2 {
        let (send, receive) = mpsc::channel();
        let (keep, thread) = (std::thread::current().id(), send);
        queue.host_task(&[], move || thread.send(gone()).unwrap()).unwrap().wait().unwrap();
        let alive = receive.recv().unwrap();
        assert_eq!(keep, std::thread::current().id());
        let start = Instant::now();
        while alive.upgrade().is_some() {
            assert!(start.elapsed() < LONG, "the thread goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Lives as long as this thread.
fn gone() -> std::sync::Weak<()> {
    thread_local!(static ALIVE: Arc<()> = Arc::new(()));
    ALIVE.with(Arc::downgrade)
}
