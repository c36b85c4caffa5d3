//! The lock of a device in a process that forks. A test program of its own: the child keeps the sockets of all tests.

#![cfg(target_os = "linux")]

use std::sync::mpsc;
use std::time::Duration;

use runtime_harness::DeviceLock;

/// Generous: a loaded machine must not fail a test.
const DEADLINE: Duration = Duration::from_secs(60);

fn acquire(key: &str) -> DeviceLock {
    DeviceLock::acquire(key, &mut |_| {})
}

/// A kernel may fork, and its child keeps the socket.
#[test]
#[allow(unsafe_code, reason = "forks")]
fn a_forked_process_that_keeps_the_socket_keeps_no_lock() {
    let key = format!("test forked {}", std::process::id());
    let lock = acquire(&key);
    // SAFETY: the child only waits for the signal that kills it.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: has no effect on this process's memory.
            unsafe { libc::pause() };
        }
    }
    let (sender, acquired) = mpsc::channel();
    let (waits, waiting) = mpsc::channel();
    let waiter = {
        let (key, sender) = (key.clone(), sender.clone());
        std::thread::spawn(move || {
            let lock = DeviceLock::acquire(&key, &mut |_| waits.send(()).unwrap());
            sender.send(()).unwrap();
            drop(lock);
        })
    };
    waiting.recv_timeout(DEADLINE).unwrap();
    assert!(acquired.try_recv().is_err(), "the lock is held");
    drop(lock);
    let got = acquired.recv_timeout(DEADLINE);
    // One that comes later gets it, too.
    let late = std::thread::spawn(move || {
        drop(acquire(&key));
        sender.send(()).unwrap();
    });
    let got_late = acquired.recv_timeout(DEADLINE);
    // SAFETY: kills the child of this test.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert!(got.is_ok() && got_late.is_ok());
    waiter.join().unwrap();
    late.join().unwrap();
}
