//! Portable kernels on the host, compared with PoCL running the OpenCL C lowered from the same kernels: every kernel of
//! `kernels/`, a plain saxpy loop, and a grid of negligible work. The contenders alternate in one run.
//!
//! ```text
//! cargo bench --package runtime-bench --bench portable -- [--only NAME]... [--rounds COUNT] [--unchecked]
//! ```
#![allow(clippy::print_stderr, reason = "a report on the terminal")]

mod host_kernel;
mod interleave;
mod openmp_loop;
mod options;
mod pocl;
mod report;

use std::path::PathBuf;

use runtime_core::Runtime;
use runtime_harness::spec::Number;
use runtime_harness::{Job, Overrides, Spec};

use host_kernel::HostKernel;
use openmp_loop::OpenMpLoop;
use options::Options;
use pocl::Pocl;
use report::Row;

fn main() {
    let options = Options::read();
    let runtime = runtime_bench::builder().with_lowering(runtime_kernel::wgsl()).build();
    let opencl = Pocl::open().inspect_err(|reason| eprintln!("no PoCL to compare with: {reason}")).ok();
    let mut rows = Vec::new();
    for path in specs().into_iter().filter(|path| options.takes(path)) {
        rows.push(compare(
            &runtime,
            opencl.as_ref(),
            &host_kernel::job(&runtime, load(&path, &[]), &options),
            &options,
        ));
    }
    report::print("Kernels", "PoCL", &rows);
    if options.takes(&kernels().join("saxpy.toml")) {
        report::print("The same saxpy as a loop in C, with OpenMP", "C", &[loop_in_c(&runtime, &options)]);
        report::print(
            "64 groups of 256, launched and waited for",
            "PoCL",
            &small(&runtime, opencl.as_ref(), &options),
        );
    }
}

/// The folder of the kernels, in this tree or in the bundle.
fn kernels() -> PathBuf {
    let tree = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
    let executable = std::env::current_exe().unwrap_or_default();
    let bundle = executable.parent().map(|folder| folder.join("../kernels")).unwrap_or_default();
    if bundle.is_dir() { bundle } else { tree }
}

fn specs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(kernels()).expect("the folder of the kernels");
    let mut specs: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    specs.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    specs.sort();
    specs
}

fn load(path: &std::path::Path, values: &[(&str, i128)]) -> Spec {
    let value = |(name, value): &(&str, i128)| ((*name).to_owned(), Number::Integer(*value));
    let overrides = Overrides { values: values.iter().map(value).collect(), ..Overrides::default() };
    Spec::load(path, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// A kernel on the host and on PoCL.
fn compare(runtime: &Runtime, opencl: Option<&Pocl>, job: &Job, options: &Options) -> Row {
    let ours = HostKernel::new(runtime, job);
    let other = opencl.map(|opencl| opencl.prepare(&ours, options));
    ours.check("ours", || ours.call());
    if let Some(other) = &other {
        ours.check("PoCL's", || other.call());
    }
    let samples = interleave::take(options, &mut || ours.call(), other.as_ref().map(|other| || other.call()));
    Row::new(&job.spec().name, &samples, job.spec().cost)
}

fn loop_in_c(runtime: &Runtime, options: &Options) -> Row {
    let job = host_kernel::job(runtime, load(&kernels().join("saxpy.toml"), &[]), options);
    let ours = HostKernel::new(runtime, &job);
    let plain = OpenMpLoop::compile();
    ours.check("the loop's", || plain.call(&ours));
    let samples = interleave::take(options, &mut || ours.call(), Some(|| plain.call(&ours)));
    Row::new("saxpy", &samples, job.spec().cost)
}

/// Launches 64 groups that do almost nothing: as a call on this thread, and as a launch with a wait for its event.
fn small(runtime: &Runtime, opencl: Option<&Pocl>, options: &Options) -> Vec<Row> {
    let job = host_kernel::job(runtime, load(&kernels().join("saxpy.toml"), &[("n", 64 * 256)]), options);
    let ours = HostKernel::new(runtime, &job);
    let other = opencl.map(|opencl| opencl.prepare(&ours, options));
    let other = || other.as_ref().map(|other| || other.call());
    let call = interleave::take_many(options, &mut || ours.call(), other());
    let launch = interleave::take_many(options, &mut || ours.launch_and_wait(), other());
    vec![
        Row::new("call", &call, runtime_core::evaluate::Cost::default()),
        Row::new("launch, then wait", &launch, runtime_core::evaluate::Cost::default()),
    ]
}
