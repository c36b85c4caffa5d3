//! Prints the load report of this process, for tests of search order, fork, exit, privileges and threads.
//!
//! `loader-report [fork DEVICE | exit | user | threads DEVICE…]`: with `fork`, a forked child tries to use its parent's
//! objects; with `exit`, the process exits while work is in flight and a future waits for it; `user` prints the users that the
//! process runs as; `threads` uses the devices from many threads at once.

#![allow(unsafe_code, reason = "forks, loads code, and queries user ids")]
#![allow(clippy::print_stdout, reason = "the tests read its output")]

mod threads;

use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Waker};

use runtime_core::{Arg, ErrorKind, Geometry, ModuleSource, Runtime};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    match &arguments[1..] {
        // Nothing must be loaded before the threads start.
        [word, devices @ ..] if word == "threads" => return threads::use_at_once(devices),
        [word] if word == "user" => return user(),
        _ => {}
    }
    let runtime = Runtime::new();
    for line in runtime.load_report() {
        println!("{line}");
    }
    match &arguments[1..] {
        [] => ExitCode::SUCCESS,
        [word, device] if word == "fork" => in_child(&runtime, device),
        [word] if word == "exit" => in_flight(&runtime),
        _ => ExitCode::from(2),
    }
}

/// Prints the real and effective user and group.
fn user() -> ExitCode {
    let ask: [unsafe extern "C" fn() -> u32; 4] = [libc::getuid, libc::geteuid, libc::getgid, libc::getegid];
    // SAFETY: these only read ids of the process.
    let ids = ask.map(|ask| unsafe { ask() }.to_string());
    println!("{}", ids.join(" "));
    ExitCode::SUCCESS
}

/// Forks; the child exits with 0 if every use of the parent's objects fails and a new `Runtime` works.
fn in_child(runtime: &Runtime, device: &str) -> ExitCode {
    let parents = runtime.open(device).expect("the device opens");
    let space = &parents.info().spaces[0].name;
    // SAFETY: the process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let unavailable = |error: runtime_core::Error| error.kind() == ErrorKind::Unavailable;
        let refused = [
            runtime.open(device).err().is_some_and(unavailable),
            runtime.targets().into_iter().all(|target| target.devices.err().is_some_and(unavailable)),
            parents.memory_usage(space).err().is_some_and(unavailable),
            Runtime::new().open(device).is_ok(),
        ];
        println!("{refused:?}");
        // Objects dropped at the end of this function are leaked; nothing may crash or hang.
        return if refused == [true; 4] { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut status = 0;
    // SAFETY: the child was forked here, and `status` is writable.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if status == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Exits with work in flight that the wait thread polls, and with everything still open.
fn in_flight(runtime: &Runtime) -> ExitCode {
    let device = runtime.open("null").expect("the device opens");
    // SAFETY: null code is checked by the backend.
    let source = unsafe { ModuleSource::native("null", "spin") };
    let spin = device.kernel(&source, "spin").expect("null has `spin`");
    let queue = device.queue().expect("a queue opens");
    let event =
        queue.launch(&spin, Geometry::single(), &[Arg::scalar(3_600_000_000i64)]).expect("it is launched");
    let mut waiting = pin!(event);
    // The first poll starts the wait thread.
    assert!(
        waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(),
        "an hour is not over yet"
    );
    println!("in flight");
    std::process::exit(7)
}
