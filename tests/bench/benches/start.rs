//! The time from process start to the printed device table, with the host backend only.
#![allow(missing_docs, reason = "criterion's macros")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group};
use runtime_bench::{Samples, compare, measure, measure_by_default, time};

/// The first of `candidates`, relative to this executable's folder, that exists.
fn beside(candidates: &[&str]) -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("."));
    let found = candidates.iter().map(|candidate| folder.join(candidate)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("none of {candidates:?} beside {}: cargo build --release first", executable.display())
    })
}

fn run(criterion: &mut Criterion, name: &str, mut command: Command) -> Samples {
    command.stdout(Stdio::null());
    measure(criterion, name, |calls| {
        time(calls, || assert!(command.status().expect("the program starts").success()))
    })
}

fn start(criterion: &mut Criterion) {
    let mut devices = Command::new(beside(&["runtime", "../runtime"]));
    let library = format!("{}runtime_host{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    devices.arg("devices").env(
        "RUNTIME_BACKENDS",
        beside(&[&format!("../lib/runtime/{library}"), &format!("../{library}"), &library]),
    );
    let ours = run(criterion, "start/runtime_devices", devices);
    let plain = run(criterion, "start/true", Command::new("true"));
    compare("start: `runtime devices`, host alone", &ours, &plain, 20e6);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = start
}
fn main() {
    measure_by_default();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
