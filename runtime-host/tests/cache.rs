//! Compiled code is cached on disk, and found by the next process.

#![allow(unsafe_code, reason = "loads native code")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use runtime_core::{Arg, CodeFormat, Geometry, ModuleSource, Runtime};
use test_process::Messages;

const COMPILER: &str = "RUNTIME_TEST_COMPILER";

/// The body of the child processes.
#[test]
#[ignore = "run by the other test, in a process of its own"]
fn child() {
    let compiler = std::env::var(COMPILER).unwrap();
    let messages = Messages::collect().unwrap();
    let device =
        Runtime::builder().discover(false).register(runtime_host::backend()).build().open("host").unwrap();
    // SAFETY: it writes one float.
    let source = unsafe { ModuleSource::native(CodeFormat::C, "void f(float *x) { *x = 42; }") };
    let module = device.load(&source.option("cache", true).option("compiler", compiler)).unwrap();
    let x = device.tensor([1], &[0.0f32]).unwrap();
    let queue = device.queue().unwrap();
    queue.call(&module.kernel("f").unwrap(), Geometry::single(), &[Arg::write(&x)]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [42.0]);
    println!("warnings: {:?}", messages.list());
}

/// Loads the code in another process; returns the warnings logged there.
#[expect(clippy::unwrap_used, reason = "a test")]
fn run(caches: &Path, compiler: &Path) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env("XDG_CACHE_HOME", caches)
        .env(COMPILER, compiler)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    let warnings = said.lines().find_map(|line| Some(line.split_once("warnings: ")?.1));
    warnings.expect("the child prints its warnings").to_owned()
}

#[test]
fn the_compiler_runs_once() {
    let folder = tempfile::tempdir().unwrap();
    let (caches, compiler, runs) =
        (folder.path().join("caches"), folder.path().join("compiler"), folder.path().join("runs"));
    fs::write(&compiler, format!("#!/bin/sh\necho run >> '{}'\nexec cc \"$@\"\n", runs.display())).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let count = || fs::read_to_string(&runs).unwrap().lines().count();
    assert_eq!(run(&caches, &compiler), "[]");
    assert_eq!(run(&caches, &compiler), "[]");
    assert_eq!(count(), 1);

    let kept = caches.join("runtime/host");
    for entry in fs::read_dir(&kept).unwrap() {
        fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    let warnings = run(&caches, &compiler);
    assert!(warnings.contains("WARN") && warnings.contains("is damaged; compiling again"), "{warnings}");
    assert_eq!(count(), 2, "a damaged entry is replaced");

    fs::set_permissions(&kept, fs::Permissions::from_mode(0o777)).unwrap();
    run(&caches, &compiler);
    assert_eq!(count(), 3, "a folder that others may write is not trusted");
}
