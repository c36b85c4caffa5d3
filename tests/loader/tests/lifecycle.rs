//! Fork and exit, in a process of their own.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::fixture::built;

fn run(backend: &str, arguments: &[&str]) -> Output {
    let mut report = Command::new(env!("CARGO_BIN_EXE_loader-report"));
    report.args(arguments).env("RUNTIME_BACKENDS", built(backend)).output().unwrap()
}

#[test]
fn a_forked_child_gets_errors_and_its_parent_goes_on() {
    for device in ["null", "host"] {
        let output = run(device, &["fork", device]);
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_program_may_exit_with_work_in_flight() {
    let start = Instant::now();
    let output = run("null", &["exit"]);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("in flight\n"), "{output:?}");
    assert_eq!(output.status.code(), Some(7), "neither a crash nor a panic: {output:?}");
    assert!(start.elapsed() < Duration::from_secs(60), "the work takes an hour");
}
