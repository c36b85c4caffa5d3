//! Fused kernels under Oclgrind, which detects data races and accesses out of bounds: it must report nothing. Chains of `kernels/`,
//! and kernels whose groups exchange elements, with the barriers that fusion inserts; without these, it must report a race.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use opencl::{DEADLINE, Driver, Finished, IcdFolder};

/// A chain: its name, its specs, their sizes, and what the command says about its fusion.
type Chain = (&'static str, &'static [&'static str], &'static [&'static str], &'static str);

const ROWS: &[&str] = &["rows=3", "columns=101", "GROUP=64"];

/// Chains of `kernels/`.
const CHAINS: &[Chain] = &[
    ("promoted", &["relu", "scale"], &["n=1003", "GROUP=32"], "relu → scale fused, 1 promotion"),
    (
        "four",
        &["vector_add", "relu", "scale", "multiply_subtract"],
        &["n=1003"],
        "multiply_subtract fused, 3 promotions",
    ),
    ("columns", &["bias", "gelu", "residual"], ROWS, ""),
    ("rows", &["scale_mask", "softmax"], ROWS, ""),
    ("stencils", &["blur", "sharpen"], &["n=1003", "GROUP=32"], "blur | sharpen not: "),
];

/// Items of a group exchange elements: through tensors, which takes a barrier between the kernels, and in work-group memory.
const GROUPS: &str = "
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64) fn mirror(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_id) l: vec3u) {
    y[g.x * 64u + l.x] = x[g.x * 64u + 63u - l.x] + 1u;
}
@compute @workgroup_size(64) fn rotate(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u) {
    tile[l.x] = x[id.x];
    workgroupBarrier();
    y[id.x] = tile[(l.x + 1u) % 64u];
}";

pub(crate) fn trials() -> Vec<Trial> {
    if let Err(remedy) = Driver::Oclgrind.library() {
        return vec![opencl::missing_trial(Driver::Oclgrind.requirement(), remedy)];
    }
    let chain =
        |chain: &'static Chain| Trial::test(format!("fusion_races::{}", chain.0), move || repository(chain));
    let mut trials: Vec<_> = CHAINS.iter().map(chain).collect();
    trials.push(Trial::test("fusion_races::with_barriers", with_barriers));
    trials.push(Trial::test("fusion_races::without_barriers_is_reported", without_barriers));
    trials
}

/// Runs the command on Oclgrind; also returns its report.
fn run(arguments: &[String]) -> Result<(Finished, String), Failed> {
    let icd_folder = IcdFolder::with_drivers(&[Driver::Oclgrind]).map_err(|(_, remedy)| remedy)?;
    let backends = [opencl::backend()?, opencl::built("libruntime_host.so")?];
    let mut command = icd_folder.command(opencl::built("runtime")?)?;
    // Oclgrind does not know an intrinsic of code into which functions with `restrict` were inlined.
    command.env("OCLGRIND_BUILD_OPTIONS", "-Drestrict=");
    command.env("RUNTIME_BACKENDS", std::env::join_paths(backends)?).args(arguments);
    Ok((opencl::finish(&mut command, DEADLINE)?, icd_folder.report()))
}

/// Fuses a chain on Oclgrind, with the fewest samples.
fn fuse(specs: &[String], more: &[&str]) -> Result<(Finished, String), Failed> {
    let fast = ["--device", "opencl", "--repeat", "1", "--number", "1", "--warmup", "1"];
    let arguments = ["fuse"].into_iter().chain(fast).chain(more.iter().copied()).map(str::to_owned);
    run(&arguments.chain(specs.iter().cloned()).collect::<Vec<_>>())
}

fn repository((_, kernels, sizes, said): &Chain) -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
    let specs = kernels.iter().map(|name| folder.join(name).with_extension("toml").display().to_string());
    let set: Vec<_> = sizes.iter().flat_map(|size| ["--set", size]).collect();
    let (finished, report) = fuse(&specs.collect::<Vec<_>>(), &set)?;
    let output = finished.success()?;
    let results = output.lines().filter(|line| line.contains(" right ("));
    if results.count() < kernels.len() || !output.contains(said) {
        return Err(format!("not right, or not {said}: {output}").into());
    }
    if report.is_empty() { Ok(()) } else { Err(report.into()) }
}

/// Writes the spec of a kernel on 256 elements, without a reference.
fn write_spec(folder: &Path, code: &str, entry: &str) -> Result<String, Failed> {
    let text = format!(
        "version = 1\n[kernel]\npath = \"{code}\"\nentry = \"{entry}\"\n\
         [[arg]]\nname = \"x\"\ndtype = \"u32\"\nshape = [256]\ninit = \"arange\"\nuse = \"read\"\n\
         [[arg]]\nname = \"y\"\ndtype = \"u32\"\nshape = [256]\nuse = \"readwrite\"\n[launch]\ngroups = 4\n"
    );
    let path = folder.join(entry).with_extension("toml");
    std::fs::write(&path, text)?;
    Ok(path.display().to_string())
}

fn groups(folder: &Path) -> Result<Vec<String>, Failed> {
    std::fs::write(folder.join("groups.wgsl"), GROUPS)?;
    ["rotate", "mirror"].iter().map(|entry| write_spec(folder, "groups.wgsl", entry)).collect()
}

fn with_barriers() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let specs = groups(folder.path())?;
    let (finished, report) = fuse(&specs, &["--no-validate", "--keep"])?;
    let output = finished.success()?;
    if !output.contains("rotate → mirror fused, 1 barrier") || output.contains("differ in bits") {
        return Err(output.into());
    }
    if report.is_empty() { Ok(()) } else { Err(report.into()) }
}

/// Proves that the check can fail: the fused code without the barrier that fusion has inserted.
fn without_barriers() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let specs = groups(folder.path())?;
    let arguments = ["fuse", "--emit", "wgsl", "--keep"].map(str::to_owned).into_iter().chain(specs);
    let code = run(&arguments.collect::<Vec<_>>())?.0.success()?;
    let (body, entry) = code.split_once("fn rotate_mirror(").ok_or_else(|| Failed::from(code.clone()))?;
    let racy = format!(
        "{body}fn rotate_mirror({}",
        entry.replace("storageBarrier();", "").replace("workgroupBarrier();", "")
    );
    if racy == code {
        return Err(format!("no barrier between the kernels: {code}").into());
    }
    std::fs::write(folder.path().join("racy.wgsl"), racy)?;
    let text = std::fs::read_to_string(write_spec(folder.path(), "racy.wgsl", "rotate_mirror")?)?;
    let third = text.replacen(
        "[launch]",
        "[[arg]]\nname = \"z\"\ndtype = \"u32\"\nshape = [256]\nuse = \"readwrite\"\n[launch]",
        1,
    );
    let spec = folder.path().join("racy.toml");
    std::fs::write(&spec, third)?;
    let arguments = ["run", "--device", "opencl", &spec.display().to_string()].map(str::to_owned);
    let (finished, report) = run(&arguments)?;
    if report.contains("data race") { Ok(()) } else { Err(format!("{report}\n{finished:?}").into()) }
}
