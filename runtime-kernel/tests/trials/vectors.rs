//! Compilers vectorise the loops over a work-group's invocations: the machine code of kernels has vector instructions.
//!
//! Needs a C compiler and `objdump` on x86-64. Without them the tests are ignored, and fail if `RUNTIME_REQUIRE` names
//! `cc` or `objdump`.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use runtime_kernel::{Checks, Dialect, Program, Specialisation};

/// A kernel, the function with its loops, and instructions, at least one of which must use `ymm` registers, with and
/// without bounds checks.
const KERNELS: [(&str, &str, &[&str]); 5] = [
    ("saxpy", SAXPY, &["vfmadd", "vmulps"]),
    ("matmul", MATMUL, &["vfmadd", "vmulps"]),
    ("reduction", REDUCTION, &["vaddps"]),
    ("softmax", "", &["vmulps"]),
    ("convolution", "", &["vfmadd", "vmulps"]),
];

const SAXPY: &str = "
    struct Scalars { factor: f32 }
    var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn saxpy(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&y) { return; }
        y[id.x] += scalars.factor * x[id.x];
    }";

const MATMUL: &str = "
    struct Scalars { n: u32 }
    var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read> b: array<f32>;
    @group(0) @binding(2) var<storage, read_write> c: array<f32>;
    var<workgroup> ta: array<array<f32, 16>, 16>;
    var<workgroup> tb: array<array<f32, 16>, 16>;
    @compute @workgroup_size(16, 16)
    fn matmul(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u) {
        var sum = 0.0;
        for (var k = 0u; k < scalars.n; k += 16u) {
            ta[l.y][l.x] = a[id.y * scalars.n + k + l.x];
            tb[l.y][l.x] = b[(k + l.y) * scalars.n + id.x];
            workgroupBarrier();
            for (var i = 0u; i < 16u; i++) { sum += ta[l.y][i] * tb[i][l.x]; }
            workgroupBarrier();
        }
        c[id.y * scalars.n + id.x] = sum;
    }";

const REDUCTION: &str = "
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> sums: array<f32>;
    var<workgroup> part: array<f32, 256>;
    @compute @workgroup_size(256)
    fn reduction(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u,
                 @builtin(workgroup_id) group: vec3u) {
        part[l.x] = x[id.x];
        workgroupBarrier();
        for (var half = 128u; half > 0u; half >>= 1u) {
            if l.x < half { part[l.x] += part[l.x + half]; }
            workgroupBarrier();
        }
        if l.x == 0u { sums[group.x] = part[0]; }
    }";

pub(crate) fn trials() -> Vec<Trial> {
    let missing = missing();
    let mut trials = Vec::new();
    for (name, code, wanted) in KERNELS {
        for checks in [Checks::Bounded, Checks::Unchecked] {
            let test = move || vectors(name, code, wanted, checks);
            trials.push(Trial::test(format!("vectors::{name}::{checks:?}"), test).with_ignored_flag(missing));
        }
    }
    trials
}

/// Whether a tool is missing that `RUNTIME_REQUIRE` does not name.
fn missing() -> bool {
    let lacks = |tool: &str| {
        let there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
        !there && !test_process::required(tool)
    };
    cfg!(not(target_arch = "x86_64")) || lacks("cc") || lacks("objdump")
}

fn vectors(name: &str, code: &str, wanted: &[&str], checks: Checks) -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../kernels/{name}.wgsl"));
    let code = if code.is_empty() { std::fs::read_to_string(path)? } else { code.to_owned() };
    let program = Program::parse(&code, name, &Specialisation::default())?;
    let folder = tempfile::tempdir()?;
    let (source, object) = (folder.path().join("kernel.c"), folder.path().join("kernel.o"));
    std::fs::write(&source, program.c(Dialect::Host, checks)?.text)?;
    let flags = ["-O3", "-std=gnu11", "-mavx2", "-mfma", "-fno-math-errno", "-fno-trapping-math", "-c", "-o"];
    let compiled = Command::new("cc").args(flags).arg(&object).arg(&source).output()?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned().into());
    }
    let listing = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&object).output()?;
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let on_vectors = |line: &str| wanted.iter().any(|word| line.contains(word)) && line.contains("%ymm");
    if listing.lines().any(on_vectors) {
        return Ok(());
    }
    Err(format!("no {} on vectors in\n{listing}", wanted.join(" or ")).into())
}
