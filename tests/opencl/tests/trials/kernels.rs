//! Every kernel of `kernels/` on Oclgrind, and a part of them on each other driver, through the command. Oclgrind, which detects
//! out-of-bounds accesses and data races, must report nothing. The command's own tests run all of them on the machine's drivers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use opencl::{DEADLINE, Driver, Finished, IcdFolder};
use test_process::sample;

/// Kernels with sizes that are small and not multiples of anything.
const SIZES: &[(&str, &[&str])] = &[
    ("bias", &["rows=3", "columns=101", "GROUP=64"]),
    ("blur", &["n=1003", "GROUP=32"]),
    ("convolution", &["height=19", "width=37"]),
    ("gelu", &["rows=3", "columns=101", "GROUP=64"]),
    ("gemm_f32", &["m=12", "n=260", "k=12"]),
    ("histogram", &["n=1003"]),
    ("layer_norm", &["rows=3", "columns=101"]),
    ("mandelbrot", &["width=13", "height=7", "most=20"]),
    ("matmul", &["m=67", "n=45", "k=19", "TILE=8"]),
    ("multiply_subtract", &["n=1003", "GROUP=32"]),
    ("n_body", &["n=77", "GROUP=32"]),
    ("reduction", &["n=5003", "GROUP=64", "ITEMS=3"]),
    ("relu", &["n=1003", "GROUP=32"]),
    ("residual", &["rows=3", "columns=101", "GROUP=64"]),
    ("saxpy", &["n=1003", "GROUP=32"]),
    ("scale", &["n=1003", "GROUP=32"]),
    ("scale_mask", &["rows=3", "columns=101", "GROUP=64"]),
    ("scan", &["n=5003", "GROUP=64", "ITEMS=5"]),
    ("scan_offset", &["n=5003"]),
    ("sharpen", &["n=1003", "GROUP=32"]),
    ("softmax", &["rows=3", "columns=101", "GROUP=64"]),
    ("transpose", &["rows=37", "columns=51", "TILE=16", "ROWS=4"]),
    ("vector_add", &["n=1003"]),
];

/// How many kernels run on a driver that takes long to compile them.
const COMPILED: usize = 10;

/// Kernels with one bug each, and what Oclgrind reports; the last one is correct.
const PROBES: &[(&str, &str, &str)] = &[
    (
        "out_of_bounds",
        "kernel void k(global float *x, float n) { x[get_global_id(0) + 64] = n; }",
        "Invalid write",
    ),
    (
        "data_race",
        "kernel void k(global float *x, float n) { local float s[64]; s[get_local_id(0)] = n; x[get_global_id(0)] = s[63 - get_local_id(0)]; }",
        "data race",
    ),
    ("correct", "kernel void k(global float *x, float n) { x[get_global_id(0)] = n; }", ""),
];

const PROBE_SPEC: &str = r#"version = 1
[kernel]
path = "k.cl"
entry = "k"
[[arg]]
dtype = "f32"
shape = [64]
use = "readwrite"
[[arg]]
scalar = "f32"
value = 1.0
[launch]
groups = 1
group_size = 64
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("kernels::every_kernel_in_the_folder_is_tested", all_are_tested)];
    for driver in Driver::ALL {
        if let Err(remedy) = driver.library() {
            trials.push(opencl::missing_trial(driver.requirement(), remedy));
            continue;
        }
        let count = if driver == Driver::Oclgrind { SIZES.len() } else { COMPILED };
        for (kernel, sizes) in sample(&format!("kernels on {}", driver.name()), SIZES, count) {
            let name = format!("kernels::{}::{kernel}", driver.name());
            trials.push(Trial::test(name, move || run_and_check(driver, kernel, sizes)));
        }
        if driver == Driver::Oclgrind {
            trials.extend(PROBES.iter().map(|probe| {
                Trial::test(format!("kernels::oclgrind::detects::{}", probe.0), move || detects(probe))
            }));
        }
    }
    trials
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels")
}

fn all_are_tested() -> Result<(), Failed> {
    let specs = std::fs::read_dir(folder())?.map(|entry| entry.unwrap().path());
    let specs = specs.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let names: BTreeSet<_> =
        specs.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let tested: BTreeSet<_> = SIZES.iter().map(|(kernel, _)| (*kernel).to_owned()).collect();
    if names == tested { Ok(()) } else { Err(format!("kernels: {names:?}; tested: {tested:?}").into()) }
}

/// Runs the command on a driver. Also returns what Oclgrind reported.
fn run(driver: Driver, spec: &Path, more: &[String]) -> Result<(Finished, String), Failed> {
    let icd_folder = IcdFolder::with_drivers(&[driver]).map_err(|(_, remedy)| remedy)?;
    let backends = [opencl::backend()?, opencl::built("libruntime_host.so")?];
    let mut command = icd_folder.command(opencl::built("runtime")?)?;
    command.env("RUNTIME_BACKENDS", std::env::join_paths(backends)?);
    command.args(["run", "--device", "opencl"]).arg(spec).args(more);
    let finished = opencl::finish(&mut command, DEADLINE)?;
    Ok((finished, icd_folder.report()))
}

fn run_and_check(driver: Driver, kernel: &str, sizes: &[&str]) -> Result<(), Failed> {
    let set: Vec<_> = sizes.iter().flat_map(|size| ["--set".to_owned(), (*size).to_owned()]).collect();
    let (finished, report) = run(driver, &folder().join(kernel).with_extension("toml"), &set)?;
    let output = finished.success()?;
    // The command prints the result of its check.
    if !output.contains("right") {
        return Err(format!("not checked: {output}").into());
    }
    if report.is_empty() { Ok(()) } else { Err(report.into()) }
}

/// Proves that the check can fail: Oclgrind reports the bug of a buggy kernel, and nothing for a correct one.
fn detects((_, code, message): &(&str, &str, &str)) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let spec = folder.path().join("k.toml");
    std::fs::write(&spec, PROBE_SPEC)?;
    std::fs::write(folder.path().join("k.cl"), code)?;
    let (finished, report) = run(Driver::Oclgrind, &spec, &[])?;
    let is_right = if message.is_empty() { report.is_empty() } else { report.contains(message) };
    if is_right { Ok(()) } else { Err(format!("{report}\n{finished:?}").into()) }
}
