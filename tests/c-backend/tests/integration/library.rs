//! Tests of the library that `cc` builds from the backend in C: its symbols, how core sees it, and valgrind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};
use runtime_core::abi::{MAJOR, MINOR};
use runtime_core::backend::LoadOutcome;
use runtime_core::{ErrorKind, Runtime};

fn library(folder: &tempfile::TempDir) -> PathBuf {
    runtime_c_backend_tests::build_as_it_is(folder.path()).unwrap()
}

fn exported(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_global() && symbol.is_definition());
    defined.map(|symbol| symbol.name().unwrap().to_owned()).collect()
}

#[test]
fn it_exports_exactly_one_symbol() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(exported(&library(&folder)), ["runtime_backend_v1"]);
    assert_eq!(
        exported(&runtime_c_backend_tests::build_newer(folder.path()).unwrap()),
        ["runtime_backend_v1"]
    );
}

#[test]
fn it_neither_prints_nor_exits() {
    let forbidden = ["printf(", "puts(", "putchar(", "perror(", " exit(", "abort(", "assert("];
    for source in runtime_c_backend_tests::sources().unwrap() {
        let text = std::fs::read_to_string(&source).unwrap();
        for (number, line) in text.lines().enumerate() {
            let found = forbidden.iter().find(|word| line.replace("vsnprintf(", "").contains(**word));
            assert!(found.is_none(), "{}:{}: {line}", source.display(), number + 1);
        }
    }
}

#[allow(unsafe_code, reason = "loads the backend")]
fn load(library: impl Into<PathBuf>) -> Runtime {
    // SAFETY: built just now from the skeleton, which keeps the contract.
    unsafe { Runtime::builder().discover(false).library(library) }.build()
}

#[test]
fn core_lists_both_devices_and_opens_the_usable_one() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = load(library(&folder));
    let line = &runtime.load_report()[0];
    assert_eq!(
        (line.outcome, line.reason.clone()),
        (LoadOutcome::Loaded, format!("cdemo 1.0.0 (ABI {MAJOR}.{MINOR})")),
        "{line}"
    );
    let devices = runtime.devices();
    assert_eq!(devices.len(), 2);
    assert!(devices[1].unavailable_reason.as_ref().unwrap().contains("use cdemo:0"));
    assert_eq!(runtime.open("cdemo:1").unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(runtime.open("cdemo").unwrap().device_name(), "C demo");
}

#[test]
fn an_unsupported_function_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = load(library(&folder));
    let error = runtime.open("cdemo").unwrap().telemetry().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("DeviceTable.telemetry"), "{error}");
}

#[test]
fn a_later_minor_version_loads_and_reports_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let newer = runtime_c_backend_tests::build_newer(folder.path()).unwrap();
    let runtime = load(newer);
    let line = &runtime.load_report()[0];
    assert_eq!(
        (line.outcome, line.reason.clone()),
        (LoadOutcome::Loaded, format!("cdemo-newer 1.0.0 (ABI {MAJOR}.{})", MINOR + 7)),
        "{line}"
    );
    assert_eq!(runtime.devices().len(), 2);
}

#[test]
#[ignore = "needs valgrind; run by cargo xtask valgrind"]
fn valgrind_finds_no_error_and_no_definite_leak() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--fair-sched=yes", "--leak-check=full", "--error-exitcode=99"])
        .args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"])
        .arg(runtime_c_backend_tests::program("conformance").unwrap())
        .arg("--backend")
        .arg(library(&folder))
        .arg("--test-threads=2");
    let output = command.output().expect("valgrind is installed (Debian: apt-get install valgrind)");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{text}", output.status);
}
