//! The lock of a device between threads and processes.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use runtime_harness::DeviceLock;

/// Generous: a loaded machine must not fail a test.
const DEADLINE: Duration = Duration::from_secs(60);
/// In the environment of a child: the key of the lock that it holds until it is killed.
const CHILD: &str = "RUNTIME_TEST_LOCK_CHILD";

fn key(test: &str) -> String {
    format!("test {test} {}", std::process::id())
}

fn acquire(key: &str) -> DeviceLock {
    DeviceLock::acquire(key, &mut |_| {})
}

/// A process that holds a lock: this program, which runs one test only. `waits` is called if it has to wait for the lock.
fn start_holder(key: &str, mut waits: impl FnMut()) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "device_lock::a_child_holds_a_lock", "--nocapture", "--test-threads=1"])
        .env(CHILD, key);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| {
        let line = line.unwrap();
        if line.contains("lock is awaited") {
            waits();
        }
        line.contains("lock is held")
    }));
    child
}

#[test]
fn a_child_holds_a_lock() {
    let Some(key) = std::env::var(CHILD).ok() else { return };
    let _lock = DeviceLock::acquire(&key, &mut |_| println!("lock is awaited"));
    println!("lock is held");
    // Until it is killed, or its parent is gone.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn one_thread_at_a_time_holds_a_lock_and_all_get_it() {
    let key = key("threads");
    let (inside, turns) = (AtomicU32::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let lock = acquire(&key);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                    std::thread::sleep(Duration::from_micros(200));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(lock);
                    turns.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(turns.load(Ordering::SeqCst), 100);
}

#[test]
fn locks_of_different_devices_are_held_at_once() {
    let first = acquire(&key("one device"));
    let _second = DeviceLock::acquire(&key("another device"), &mut |holder| panic!("waits for {holder}"));
    drop(first);
    let _again = DeviceLock::acquire(&key("one device"), &mut |holder| panic!("waits for {holder}"));
}

#[test]
fn a_waiter_names_the_process_and_gets_the_lock_when_that_is_killed() {
    let key = key("killed");
    let mut child = start_holder(&key, || ());
    let (sender, events) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let mut holders = Vec::new();
        let lock = DeviceLock::acquire(&key, &mut |holder| {
            holders.push(holder.to_string());
            sender.send(()).unwrap();
        });
        drop(lock);
        holders
    });
    events.recv_timeout(DEADLINE).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(!waiter.is_finished(), "the lock is held");
    let process = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    let holders = waiter.join().unwrap();
    assert_eq!(holders.len(), 1, "it is told once: {holders:?}");
    assert!(holders[0].starts_with(&format!("process {process} (integration-")), "{holders:?}");
    assert!(holders[0].contains("a_child_holds_a_lock"), "{holders:?}");
}

#[test]
fn three_waiting_processes_all_get_the_lock() {
    let key = key("three");
    let lock = acquire(&key);
    let (sender, waiting) = mpsc::channel();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (key, sender) = (key.clone(), sender.clone());
            std::thread::spawn(move || {
                let mut child = start_holder(&key, || sender.send(()).unwrap());
                child.kill().unwrap();
                child.wait().unwrap();
            })
        })
        .collect();
    waiters.iter().for_each(|_| waiting.recv_timeout(DEADLINE).unwrap());
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "the lock is held");
    drop(lock);
    for waiter in waiters {
        waiter.join().unwrap();
    }
    drop(acquire(&key));
}
