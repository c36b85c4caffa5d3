//! Tests of `runtime lower`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixture::{Finished, runtime};

const KERNEL: &str = "\
alias T = f32;
override GROUP: u32 = 64;
@id(3) override LENGTH: u32;
struct Scalars { a: f32, n: u32 }
var<immediate> scalars: Scalars;
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
var<workgroup> tile: array<T, LENGTH>;
@compute @workgroup_size(GROUP) fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    tile[0] = T(scalars.a);
    if id.x < scalars.n { y[id.x] = tile[0] * x[id.x]; }
}
";

fn kernel() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scale.wgsl");
    std::fs::write(&path, KERNEL).unwrap();
    (folder, path)
}

fn lower(path: &Path, arguments: &[&str]) -> Finished {
    runtime(&[&["lower", path.to_str().unwrap()], arguments].concat())
}

#[test]
fn every_format_is_written() {
    let (folder, path) = kernel();
    for (format, words) in [("c", "void scale"), ("opencl-c", "__kernel"), ("cuda-c", "__global__")] {
        let finished = lower(&path, &["--to", format, "--constant", "LENGTH=16"]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert!(finished.stdout.contains(words), "{}", finished.stdout);
        let unchecked = lower(&path, &["--to", format, "--constant", "LENGTH=16", "--unchecked"]);
        assert!(unchecked.code == 0 && unchecked.stdout != finished.stdout);
    }
    let output = folder.path().join("scale.spv");
    let finished =
        lower(&path, &["--to", "spirv", "--constant", "@3=16", "--output", output.to_str().unwrap()]);
    assert_eq!((finished.code, finished.stdout.as_str()), (0, ""), "{}", finished.stderr);
    assert_eq!(std::fs::read(&output).unwrap()[..4], 0x0723_0203u32.to_le_bytes());
}

#[test]
fn the_interface_is_printed_as_text_and_as_json() {
    let (_folder, path) = kernel();
    let shown = lower(&path, &["--interface", "--constant", "LENGTH=16", "--element", "f16"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let expected = "\
scale: work-groups of 64 × 1 × 1
  32 bytes of workgroup memory
  argument  name  kind    dtype  access
  0         x     tensor  f16    read
  1         y     tensor  f16    write
  2         a     scalar  f32
  3         n     scalar  u32
constant GROUP: u32 = 64
constant @id(3) LENGTH: u32 must be given
needs f16
";
    assert_eq!(shown.stdout, expected);
    let shown = lower(&path, &["--interface", "--json", "--constant", "LENGTH=16", "--constant", "GROUP=8"]);
    let value: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(value["entries"][0]["group_size"], serde_json::json!([8, 1, 1]));
    assert_eq!(value["entries"][0]["arguments"][3]["name"], "n");
    assert_eq!(value["constants"][1]["default"], Value::Null);
}

#[test]
fn errors_name_the_line() {
    let (folder, path) = kernel();
    let refused = |arguments: &[&str], expected: &str| {
        let finished = lower(&path, arguments);
        assert!(finished.code == 2 && finished.stdout.is_empty(), "{}", finished.stdout);
        assert!(finished.stderr.contains(expected), "{}\nlacks: {expected}", finished.stderr);
    };
    refused(&["--to", "c"], "scale.wgsl:3: override \"LENGTH\" has no default");
    refused(&["--to", "c", "--constant", "LENGHT=1"], "did you mean \"LENGTH\"?");
    refused(&["--to", "c", "--constant", "LENGTH"], "is not of the form NAME=VALUE");
    refused(&["--to", "c", "--element", "bf16"], "bf16 does not exist in WGSL");
    refused(&["--to", "ptx"], "spirv, opencl-c, cuda-c, c");
    refused(&[], "--to <FORMAT>");
    let broken = folder.path().join("broken.wgsl");
    std::fs::write(&broken, "fn f() {\n    let a = b;\n}").unwrap();
    let finished = lower(&broken, &["--to", "c"]);
    assert!(finished.stderr.contains("broken.wgsl:2:13") && finished.stderr.contains("let a = b;"));
    let finished = lower(&folder.path().join("missing.wgsl"), &["--interface"]);
    assert!(finished.code == 2 && finished.stderr.contains("cannot read"), "{}", finished.stderr);
}

#[test]
fn the_interface_shows_layouts_and_further_element_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strided.wgsl");
    let code = "alias T = f32; alias U = f32;
        struct Layout { shape: array<u32, 2>, strides: array<i32, 2> }
        struct Args { a: U, x_layout: Layout, n: u32 } var<immediate> args: Args;
        @group(0) @binding(0) var<storage, read> x: array<T>;
        @group(0) @binding(1) var<storage, read_write> y: array<T>;
        @compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) id: vec3u) {
            if id.x < args.n { y[id.x] = x[id.x * u32(args.x_layout.strides[1])] * T(args.a); }
        }";
    std::fs::write(&path, code).unwrap();
    let shown = lower(&path, &["--interface", "--element", "i32", "--element", "U=u32"]);
    let expected = "\
copy: work-groups of 64 × 1 × 1
  argument  name      kind    dtype             access
  0         x         tensor  i32               read
  1         y         tensor  i32               write
  2         a         scalar  u32
  3–6       x_layout  layout  2 × u32, 2 × i32
  7         n         scalar  u32
";
    assert_eq!((shown.code, shown.stdout.as_str()), (0, expected), "{}", shown.stderr);
    let shown = lower(&path, &["--interface", "--items-per-thread", "auto"]).stdout;
    assert!(shown.contains("4 items per thread") && !shown.contains("launch_groups"), "{shown}");
    let shown = lower(&path, &["--interface", "--work-items", "16"]).stdout;
    assert!(shown.contains("  in OpenCL C, run as loops by 16 × 1 × 1 work-items\n"), "{shown}");
    let shown = lower(&path, &["--to", "opencl-c", "--work-items", "16"]).stdout;
    assert!(shown.contains("reqd_work_group_size(16, 1, 1)"), "{shown}");
    let shown = lower(&path, &["--interface", "--json"]);
    let value: Value = serde_json::from_str(&shown.stdout).unwrap();
    let entry = &value["entries"][0];
    assert_eq!(entry["layouts"], serde_json::json!([{ "tensor": "x", "rank": 2, "first_argument": 3 }]));
    assert_eq!(entry["arguments"][5]["name"], "x_layout.strides[0]");
}
