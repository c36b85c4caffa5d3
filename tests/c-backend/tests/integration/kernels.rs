//! `runtime conformance` on a backend whose code format the suite has no kernels for: it passes only with `--kernels`. Also
//! tests the exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The suite's kernels for the null backend; this backend reads the same text.
const KERNELS: &str = include_str!("../../../conformance/src/kernels/suite.null");

struct Bench {
    folder: tempfile::TempDir,
    library: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = runtime_c_backend_tests::build_with_own_format(folder.path()).unwrap();
        Self { folder, library }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(runtime_c_backend_tests::program("runtime").unwrap());
        command.arg("conformance").arg(&self.library).args(arguments).env_remove("RUNTIME_REQUIRE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A folder with one file.
    fn kernels(&self, file: &str, text: &str) -> String {
        let folder = self.folder.path().join(format!("kernels-for-{file}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(Path::new(&folder).join(file), text).unwrap();
        folder.to_str().unwrap().to_owned()
    }
}

#[track_caller]
fn check(output: &Output, code: i32, words: &[&str]) {
    let text =
        [&*String::from_utf8_lossy(&output.stdout), &*String::from_utf8_lossy(&output.stderr)].concat();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

#[test]
fn a_backend_without_kernels_does_not_pass() {
    let bench = Bench::new();
    check(&bench.run(&["--", "launch::"]), 1, &["0 LAUNCHES", "own-text", "--kernels"]);
    check(&bench.run(&["--allow-no-launches", "--", "launch::"]), 0, &["0 LAUNCHES"]);
    check(&bench.run(&["--", "identity::"]), 0, &["0 launches"]);
    check(&bench.run(&["--json", "-", "--", "launch::"]), 1, &["\"launches\": 0"]);
}

#[test]
fn kernels_can_come_from_a_folder() {
    let bench = Bench::new();
    let folder = bench.kernels("suite.own-text", KERNELS);
    // Not `process`, whose cases are other processes, and `failure`, which needs an optional kernel.
    for topic in ["launch::", "modules::", "process::", "failure::"] {
        let run = bench.run(&["--kernels", &folder, "--", topic]);
        check(&run, 0, &[" passed", "0 failed"]);
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(!text.contains("LAUNCHES") && !text.contains("kernel fail"), "{text}");
    }
    check(
        &bench.run(&[
            "--kernels",
            &folder,
            "--faults",
            "--first",
            "1",
            "--spread",
            "0",
            "--",
            "no_such_case",
        ]),
        1,
        &[],
    );
}

#[test]
fn unused_kernels_are_an_error() {
    let bench = Bench::new();
    let other = bench.kernels("suite.own-txt", KERNELS);
    let run = bench.run(&["--kernels", &other, "--", "identity::"]);
    check(&run, 1, &["no tested device accepts own-txt", "did you mean \"own-text\""]);
    check(&bench.run(&["--kernels", "/missing"]), 2, &["/missing"]);
    let none = bench.kernels("README.md", "");
    check(&bench.run(&["--kernels", &none]), 2, &["suite.FORMAT"]);
}

#[test]
fn a_wrong_kernel_is_a_failure_of_code_one() {
    let bench = Bench::new();
    let wrong = bench.kernels("suite.own-text", &KERNELS.replace("scale_f32", "scale_f32 = fill_f32"));
    check(&bench.run(&["--kernels", &wrong, "--", "launch::"]), 1, &["FAILED"]);
}

#[test]
fn a_required_device_that_is_unavailable_is_reported() {
    let bench = Bench::new();
    let unusable = runtime_c_backend_tests::build_unusable(bench.folder.path()).unwrap();
    let run = |required: &str| {
        let mut command = bench.command(&[unusable.to_str().unwrap(), "--", "identity::"]);
        command.env("RUNTIME_REQUIRE", required).output().unwrap()
    };
    check(&run(""), 0, &["cout:0: open: it is only listed", "(ignored)"]);
    check(&run("cown"), 0, &["(ignored)"]);
    check(&run("cout"), 1, &["cout:0: open: it is only listed", "(a failure)"]);
}

#[test]
fn a_closed_pipe_ends_the_run() {
    let bench = Bench::new();
    let folder = bench.kernels("suite.own-text", KERNELS);
    let mut command = bench.command(&["--kernels", &folder]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    check(&child.wait_with_output().unwrap(), 1, &["standard output was closed"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    check(&bench.command(&["--kernels", &folder]).stdout(full).output().unwrap(), 1, &["standard output"]);
    check(&bench.run(&["--", "--logfile", "/missing/log"]), 2, &["/missing/log"]);
}
