//! `runtime fuse` with kernels that misbehave.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use super::sandbox::{Sandbox, spec};
use super::wait_for;

#[test]
fn a_chain_that_crashes_hangs_or_is_wrong_is_a_failed_row() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("right.toml", &spec("right"));
    for (entry, expected) in [
        ("null_dereference", "SIGSEGV while \"right → null_dereference\" ran one by one on host:0"),
        ("exits_with_a_code", "code 42"),
        ("loops", "timed out after"),
        ("wrong_element", "wrong_element.x wrong: "),
    ] {
        sandbox.folder.write("bad.toml", &spec(entry));
        let arguments =
            ["fuse", "right.toml", "bad.toml", "--device", "host:0", "--timeout", "1", "--budget-s", "1"];
        let output = sandbox.command(&arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(1) && text.contains(expected), "{entry}: {output:?}");
        sandbox.wait_for_processes(&BTreeSet::new(), entry);
    }
}

#[test]
fn a_signal_ends_a_chain_without_its_workers() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("loops.toml", &spec("loops"));
    let arguments = ["fuse", "loops.toml", "--device", "host:0"];
    let mut command = sandbox.command(&arguments);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Other processes try out the sandbox before.
    let is_worker = |process: &u32| {
        std::fs::read_to_string(format!("/proc/{process}/cmdline"))
            .is_ok_and(|words| words.contains("--inner"))
    };
    wait_for(|| sandbox.processes().iter().any(is_worker), "the worker");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("interrupted by SIGTERM after 0 of 1 rows"), "{text}");
    sandbox.wait_for_processes(&BTreeSet::new(), "TERM");
}
