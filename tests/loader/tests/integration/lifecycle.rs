//! Fork, exit, and many threads that load at once, each in a separate process.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::fixture::built;

fn run(backend: &str, arguments: &[&str]) -> Output {
    let mut report = Command::new(env!("CARGO_BIN_EXE_loader-report"));
    report.args(arguments).env("RUNTIME_BACKENDS", built(backend)).output().unwrap()
}

#[test]
fn a_forked_child_gets_errors_and_its_parent_continues() {
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
fn a_process_may_exit_with_work_in_flight() {
    let start = Instant::now();
    let output = run("null", &["exit"]);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("in flight\n"), "{output:?}");
    assert_eq!(output.status.code(), Some(7), "neither a crash nor a panic: {output:?}");
    assert!(start.elapsed() < Duration::from_secs(60), "the work takes an hour");
}

#[test]
fn sixteen_threads_load_open_and_work_at_once() {
    let both = std::env::join_paths([built("null"), built("host")]).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_loader-report"));
    let output =
        program.args(["threads", "null", "host", "null:1"]).env("RUNTIME_BACKENDS", both).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().filter(|line| line.starts_with("loaded")).count(), 2, "{text}");
}
