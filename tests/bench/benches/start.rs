//! From the start of the process to the printed table of devices, with the host alone.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::print_stdout, reason = "a report on the terminal")]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use runtime_bench::{Figure, compare};

/// The first of `candidates`, relative to this executable's folder, that exists.
fn beside(candidates: &[&str]) -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("."));
    let found = candidates.iter().map(|candidate| folder.join(candidate)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("none of {candidates:?} beside {}: cargo build --release first", executable.display())
    })
}

fn run(criterion: &mut Criterion, name: &str, mut command: Command) -> Figure {
    let samples = RefCell::new(Figure::default());
    command.stdout(Stdio::null());
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|calls| {
            let start = Instant::now();
            for _ in 0..calls {
                assert!(command.status().expect("the program starts").success());
            }
            samples.borrow_mut().add(start.elapsed().as_nanos(), calls);
            start.elapsed()
        });
    });
    samples.into_inner()
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
    println!("{}", compare("start: `runtime devices`, host alone", &ours, &plain, 20e6));
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30);
    targets = start
}
criterion_main!(benches);
