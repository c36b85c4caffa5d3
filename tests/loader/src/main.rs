//! Prints the load report of this process, for the tests of the search order and of fork.
//!
//! `loader-report [fork DEVICE]`: with `fork`, a forked child tries to use what its parent made.

#![allow(unsafe_code, reason = "forks")]
#![allow(clippy::print_stdout, reason = "its output is what the tests read")]

use std::process::ExitCode;

use runtime_core::{ErrorKind, Runtime};

fn main() -> ExitCode {
    let runtime = Runtime::new();
    for line in runtime.load_report() {
        println!("{line}");
    }
    let arguments: Vec<_> = std::env::args().collect();
    match &arguments[1..] {
        [] => ExitCode::SUCCESS,
        [word, device] if word == "fork" => in_child(&runtime, device),
        _ => ExitCode::from(2),
    }
}

/// Forks; the child exits with 0 if everything that the parent made is an error there and a new `Runtime` works.
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
        // What drops at the end of this function is leaked: nothing may crash or hang.
        return if refused == [true; 4] { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut status = 0;
    // SAFETY: the child is ours and `status` is writable.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    if status == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
