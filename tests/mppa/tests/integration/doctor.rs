//! `runtime doctor mppa`: what it collects on a fake machine, and what it keeps to itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use mppa::{FakeSdk, write_tool};
use opencl::{DEADLINE, Finished, IcdFolder, built, finish};

const FILE: &str = "runtime-mppa-report.txt";

/// Runs the command in a folder, on a machine of its own, after `change` has had the command.
fn doctor(folder: &Path, machine: &Path, file: Option<&str>, change: impl FnOnce(&mut Command)) -> Finished {
    let drivers = IcdFolder::empty();
    let mut command = mppa::command(&drivers, built("runtime").unwrap()).unwrap();
    command.args(["doctor", "mppa"]).args(file).current_dir(folder);
    command.env("RUNTIME_MPPA_ROOT", machine);
    change(&mut command);
    finish(&mut command, DEADLINE).unwrap()
}

/// A fake machine with Kalray's tool for boards.
fn machine() -> FakeSdk {
    let sdk = FakeSdk::new(1);
    write_tool(&sdk.path().join("bin/kvx-board-diag"), "echo \"board 0 of $USER: K300\"");
    sdk
}

#[track_caller]
fn assert_contains(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "{word} is missing:\n{text}"));
}

#[test]
fn a_new_file_has_every_part_and_nothing_private() {
    let (sdk, folder) = (machine(), tempfile::tempdir().unwrap());
    sdk.write("version.txt", "built by Zaphod on magrathea.example.org\n").write("lib/zaphod-notes", "");
    let finished = doctor(folder.path(), sdk.path(), None, |command| {
        command.envs(sdk.variables()).env("HOME", sdk.path());
        command.env("POCL_MPPA_EXTRA_BUILD_CFLAGS", "-I/home/trillian/include");
        command.env("KALRAY_TOKEN", "s3cr3t").env("USER", "zaphod").env("HOSTNAME", "magrathea.example.org");
    });
    assert!(finished.status.success() && finished.stdout.contains(FILE), "{finished:?}");
    let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
    assert_contains(
        &text,
        &[
            "program\n  runtime ",
            ", ABI ",
            "KALRAY_TOOLCHAIN_DIR               ~\n",
            "POCL_MPPA_EXTRA_BUILD_CFLAGS       -I~/include\n",
            "platform: Hardware",
            "| 5.0.0 (fake)",
            "~/lib/libmppa_offload_host.so: ",
            "lib/<user>-notes: 0 bytes",
            "| built by <user> on <host>",
            "board 0 of <user>: K300",
            "compiled without a warning",
            "\"name\": \"Offload\"",
            "no SDK: ~/lib/libOpenCL.so does not exist",
            "end of the report",
        ],
    );
    let path = sdk.path().to_str().unwrap();
    for private in ["s3cr3t", "zaphod", "trillian", "magrathea", path] {
        assert!(!text.to_lowercase().contains(private), "{private}:\n{text}");
    }
}

#[test]
fn the_compiler_of_the_shim_is_quoted() {
    let (sdk, folder) = (machine(), tempfile::tempdir().unwrap());
    sdk.write("include/mppa_offload_host.h", "#error this SDK is new\n");
    let finished = doctor(folder.path(), sdk.path(), Some("-"), |command| {
        command.envs(sdk.variables());
    });
    assert!(finished.status.success(), "{finished:?}");
    assert_contains(&finished.stdout, &["error: #error this SDK is new", "please send this output"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "`-` writes no file");
}

/// Kalray's tool for boards was reported as missing.
#[test]
fn a_tool_that_has_no_folder_to_run_in_is_not_said_to_be_missing() {
    let (sdk, folder) = (machine(), tempfile::tempdir().unwrap());
    let finished = doctor(folder.path(), sdk.path(), Some("-"), |command| {
        command.envs(sdk.variables()).env("TMPDIR", folder.path().join("missing"));
    });
    assert!(finished.status.success(), "{finished:?}");
    let section = finished.stdout.split("kvx-board-diag --list-board\n").nth(1).unwrap();
    assert!(section.starts_with("  no temporary folder: ") && section.contains("set TMPDIR"), "{section}");
}

#[test]
fn a_machine_without_anything_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let finished = doctor(folder.path(), folder.path(), Some("-"), |_| {});
    assert!(finished.status.success(), "{finished:?}");
    let words = ["mppa: No such file", "no SDK: KALRAY_TOOLCHAIN_DIR is not set", "no simulator"];
    assert_contains(&finished.stdout, &words);
    let lost = doctor(folder.path(), folder.path(), Some("-"), |command| {
        command.env("RUNTIME_BACKENDS", "/missing/libruntime_host.so");
    });
    assert_contains(&lost.stdout, &["the backend's library was not found", "end of the report"]);
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    for (file, name) in [(None, FILE), (Some("mine.txt"), "mine.txt")] {
        std::fs::write(folder.path().join(name), "old").unwrap();
        let finished = doctor(folder.path(), folder.path(), file, |_| {});
        assert_eq!(finished.status.code(), Some(2), "{finished:?}");
        assert_contains(&finished.stderr, &[name, "is not overwritten"]);
        assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), "old");
    }
}
