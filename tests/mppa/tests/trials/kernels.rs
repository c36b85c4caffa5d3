//! Every kernel of `kernels/` on the stand-in, through the command: with groups that an MPPA can run, and a part of them with groups
//! of about 64 and 256 items, which run as loops.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use opencl::{DEADLINE, Finished, IcdFolder, built};

/// Kernels with small sizes that are not multiples of anything, in groups of at most 16 items.
const SIZES: &[(&str, &[&str])] = &[
    ("bias", &["rows=3", "columns=101", "GROUP=16"]),
    ("blur", &["n=1003", "GROUP=16"]),
    ("convolution", &["height=19", "width=37", "GROUP_WIDTH=8", "GROUP_HEIGHT=2"]),
    ("gelu", &["rows=3", "columns=101", "GROUP=16"]),
    ("gemm_f32", &["m=12", "n=260", "k=12"]),
    ("histogram", &["n=1003", "GROUP=16"]),
    ("layer_norm", &["rows=3", "columns=101", "GROUP=16"]),
    ("mandelbrot", &["width=13", "height=7", "most=20", "GROUP_WIDTH=4", "GROUP_HEIGHT=4"]),
    ("matmul", &["m=67", "n=45", "k=19", "TILE=4"]),
    ("multiply_subtract", &["n=1003", "GROUP=16"]),
    ("n_body", &["n=77", "GROUP=16"]),
    ("reduction", &["n=5003", "GROUP=16", "ITEMS=3"]),
    ("relu", &["n=1003", "GROUP=16"]),
    ("residual", &["rows=3", "columns=101", "GROUP=16"]),
    ("saxpy", &["n=1003", "GROUP=16"]),
    ("scale", &["n=1003", "GROUP=16"]),
    ("scale_mask", &["rows=3", "columns=101", "GROUP=16"]),
    ("scan", &["n=5003", "GROUP=16", "ITEMS=5"]),
    ("scan_offset", &["n=5003", "GROUP=16", "ITEMS=5"]),
    ("sharpen", &["n=1003", "GROUP=16"]),
    ("softmax", &["rows=3", "columns=101", "GROUP=16"]),
    ("transpose", &["rows=37", "columns=51", "TILE=4", "ROWS=4"]),
    ("vector_add", &["n=1003", "GROUP=16"]),
];

/// How many kernels run in large groups, too.
const IN_LARGE_GROUPS: usize = 8;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("kernels::every_kernel_in_the_folder_is_tested", all_are_tested)];
    match mppa::pocl() {
        Err(missing) => trials.push(*missing),
        Ok(_) => {
            trials.extend(SIZES.iter().map(|(kernel, sizes)| {
                Trial::test(format!("kernels::stand_in::{kernel}"), move || run_and_check(kernel, sizes))
            }));
            // Both run as loops.
            let large = test_process::sample("kernels in large groups", SIZES, IN_LARGE_GROUPS);
            trials.extend(large.into_iter().map(|(kernel, sizes)| {
                Trial::test(format!("kernels::stand_in::{kernel}_in_large_groups"), move || {
                    let items = test_process::sample(kernel, [64, 256], 1);
                    items.into_iter().try_for_each(|items| run_and_check(kernel, &with_groups(sizes, items)))
                })
            }));
            trials.push(Trial::test("kernels::stand_in::a_group_of_17_runs_as_loops", || {
                run_and_check("saxpy", &["n=1003", "GROUP=17"])
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

/// The sizes with larger groups, whose shapes stay similar.
fn with_groups<'a>(sizes: &[&'a str], items: u32) -> Vec<&'a str> {
    let large = items == 256;
    let other = |size: &'a str| match size {
        "GROUP=16" if large => "GROUP=256",
        "GROUP=16" => "GROUP=64",
        "TILE=4" if large => "TILE=16",
        "TILE=4" => "TILE=8",
        "ROWS=4" if large => "ROWS=16",
        "ROWS=4" => "ROWS=8",
        "GROUP_WIDTH=4" | "GROUP_WIDTH=8" if large => "GROUP_WIDTH=32",
        "GROUP_WIDTH=4" | "GROUP_WIDTH=8" => "GROUP_WIDTH=16",
        "GROUP_HEIGHT=2" | "GROUP_HEIGHT=4" if large => "GROUP_HEIGHT=8",
        "GROUP_HEIGHT=2" => "GROUP_HEIGHT=4",
        other => other,
    };
    sizes.iter().copied().map(other).collect()
}

fn run(kernel: &str, sizes: &[&str]) -> Result<Finished, Failed> {
    let icd_folder: IcdFolder = mppa::pocl().map_err(|_| "PoCL is missing")?;
    let mut command = mppa::stand_in_command(&icd_folder, built("runtime")?)?;
    // References of some kernels run on the host.
    let backends = [mppa::backend()?, built("libruntime_host.so")?];
    command.env("RUNTIME_BACKENDS", std::env::join_paths(backends)?);
    command.args(["run", "--device", "mppa"]).arg(folder().join(kernel).with_extension("toml"));
    command.args(sizes.iter().flat_map(|size| ["--set", size]));
    Ok(opencl::finish(&mut command, DEADLINE)?)
}

fn run_and_check(kernel: &str, sizes: &[&str]) -> Result<(), Failed> {
    let output = run(kernel, sizes)?.success()?;
    // The command prints the result of its check.
    if output.contains("right") { Ok(()) } else { Err(format!("not checked: {output}").into()) }
}
