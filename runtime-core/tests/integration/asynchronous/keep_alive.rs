//! What the program keeps for its work is dropped after the work has ended, and never before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use runtime_core::{ErrorKind, Event, Options, read_write};

use super::{BUSY_US, LONG, Scene};

/// Tells a channel that it is dropped, and whether an event had ended by then.
struct Told(mpsc::Sender<bool>, Event);

impl Drop for Told {
    fn drop(&mut self) {
        let ended = !matches!(self.1.is_done(), Ok(false));
        self.0.send(ended).unwrap();
    }
}

fn told(event: &Event) -> (mpsc::Receiver<bool>, Told) {
    let (send, receive) = mpsc::channel();
    (receive, Told(send, event.clone()))
}

#[test]
fn values_are_kept_until_all_events_have_ended() {
    let scene = Scene::new();
    let (slow, other) = (scene.slow(), scene.slow());
    let (drops, value) = told(&Event::all(&[&slow, &other]));
    scene.queue().keep_until(&[&slow, &other], value).unwrap();
    assert!(drops.try_recv().is_err());
    assert!(drops.recv_timeout(LONG).unwrap());
    let (drops, value) = told(&slow);
    scene.queue().keep_until(&[&slow], value).unwrap();
    assert!(drops.try_recv().unwrap(), "at once");
    let (drops, value) = told(&slow);
    scene.queue().keep_until(&[], value).unwrap();
    assert!(drops.try_recv().unwrap(), "at once");
}

#[test]
fn values_are_kept_for_host_tasks_also_if_they_fail() {
    let scene = Scene::new();
    let queue = scene.queue();
    let task = queue.host_task(&[&scene.slow()], || -> () { panic!("expected") }).unwrap();
    let (drops, value) = told(&task);
    queue.keep_until(&[&task, &scene.slow()], value).unwrap();
    assert!(drops.recv_timeout(LONG).unwrap());
}

#[test]
fn a_failed_submission_still_runs_and_keeps_its_values() {
    // The second ticket fails while the first one runs, so both end late.
    let scene = Scene::with(&Options::new().with("delay_us", BUSY_US));
    let queue = scene.queue();
    let failing = queue.launch(&scene.fail, (1, 1), ()).unwrap();
    let (drops, value) = told(&failing);
    queue.keep_until(&[&failing], value).unwrap();
    assert!(drops.recv_timeout(LONG).unwrap());
    assert_eq!(failing.wait().unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn an_event_keeps_values_until_its_last_clone_is_dropped() {
    let scene = Scene::new();
    let slow = scene.slow();
    let ((one, first), (two, second)) = (told(&slow), told(&slow));
    let event = slow.clone().keeping(first).keeping(second);
    let clone = event.clone();
    drop(event);
    clone.wait().unwrap();
    assert!(one.try_recv().is_err() && two.try_recv().is_err());
    drop(clone);
    assert!(one.try_recv().unwrap() && two.try_recv().unwrap(), "on this thread");
}

#[test]
fn an_event_that_is_dropped_early_still_keeps_values() {
    let scene = Scene::new();
    let queue = scene.queue();
    let slow = queue.launch(&scene.spin, (1, 1), (BUSY_US,)).unwrap();
    let (drops, value) = told(&slow);
    drop(slow.keeping(value));
    assert!(drops.try_recv().is_err());
    assert!(drops.recv_timeout(LONG).unwrap());
    // The same with a group, and with a future that is dropped.
    let any = Event::any(&[&scene.slow(), &scene.slow()]);
    let (drops, value) = told(&any);
    let mut future = Box::pin(any.keeping(value));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(Future::poll(future.as_mut(), &mut context).is_pending());
    drop(future);
    assert!(drops.recv_timeout(LONG).unwrap());
}

#[test]
fn values_may_own_the_device() {
    let scene = Scene::new();
    let event = scene.slow();
    let (drops, value) = told(&event);
    let queue = scene.queue();
    let owned = (value, scene.queue(), scene);
    queue.keep_until(&[&event], owned).unwrap();
    drop(queue);
    assert!(drops.recv_timeout(LONG).unwrap());
    event.wait().unwrap();
}

#[test]
fn a_value_whose_drop_panics_harms_nobody() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("expected");
        }
    }
    let scene = Scene::new();
    let slow = scene.slow();
    scene.queue().keep_until(&[&slow], Panics).unwrap();
    slow.wait().unwrap();
    let (drops, value) = told(&slow);
    scene.queue().keep_until(&[&scene.slow()], value).unwrap();
    assert!(drops.recv_timeout(LONG).unwrap());
}

#[test]
fn arguments_may_be_dropped_before_the_work_has_ended() {
    let scene = Scene::with(&Options::new().with("delay_us", BUSY_US));
    let queue = scene.queue();
    let x = scene.device.tensor([2], &[1.0f32, 2.0]).unwrap();
    let y = x.clone();
    let event = queue.launch(&scene.scale, (1, 1), (read_write(&x), 2.0f32)).unwrap();
    drop((x, queue));
    // A task is the one to see the result.
    let read = scene.queue().host_task(&[&event], move || assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 4.0]));
    drop((event, scene));
    read.unwrap().wait().unwrap();
}

/// Counts how many of it there are.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_failing_submission_leaks_nothing() {
    let scene = Scene::with(&Options::new().with("lose_after", 3i64));
    let (queue, count) = (scene.queue(), Arc::new(AtomicUsize::new(0)));
    let gate = scene.queue().launch_noop().unwrap();
    let mut refused = 0;
    for _ in 0..100 {
        let (task, kept, with_event) = (Counted::new(&count), Counted::new(&count), Counted::new(&count));
        refused += usize::from(queue.host_task(&[&gate], move || drop(task)).is_err());
        refused += usize::from(queue.keep_until(&[&gate], kept).is_err());
        match queue.launch_noop() {
            Ok(event) => drop(event.keeping(with_event)),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0, "the device is lost");
    let start = std::time::Instant::now();
    while count.load(Ordering::SeqCst) != 0 {
        assert!(start.elapsed() < LONG, "{} are left", count.load(Ordering::SeqCst));
        std::thread::sleep(Duration::from_millis(1));
    }
}
