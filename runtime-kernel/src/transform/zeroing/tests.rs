//! Which kernels are recognised as writing their work-group memory before they read it.

use std::path::Path;

use crate::{Program, Specialisation};

use super::{must_zero, zeroed};

/// The variables that must be zeroed in a kernel with the given body. The group has 64 invocations.
fn found(body: &str) -> Vec<String> {
    let code = format!(
        "struct Scalars {{ n: u32 }} var<immediate> s: Scalars;
         struct Pair {{ a: u32, b: u32 }}
         @group(0) @binding(0) var<storage, read_write> y: array<u32>;
         var<workgroup> tile: array<u32, 64>;
         var<workgroup> wide: array<array<u32, 32>, 4>;
         var<workgroup> padded: array<u32, 72>;
         var<workgroup> counts: array<atomic<u32>, 64>;
         var<workgroup> pairs: array<Pair, 64>;
         var<workgroup> one: u32;
         fn put(at: u32, value: u32) {{ tile[at] = value; }}
         fn put_some(at: u32, value: u32) {{ if at == 3u {{ return; }} tile[at] = value; }}
         fn place(at: u32) -> u32 {{ return at + at / 8u; }}
         fn sum(at: u32) -> u32 {{ workgroupBarrier(); return tile[at ^ 1u]; }}
         @compute @workgroup_size(64) fn main(
            @builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3<u32>) {{ {body} }}"
    );
    let program =
        Program::parse(&code, "", &Specialisation::default()).unwrap_or_else(|e| panic!("{body}: {e}"));
    let names = must_zero(&program, 0);
    let names = names.into_iter().map(|handle| program.module.global_variables[handle].name.clone());
    names.map(Option::unwrap_or_default).collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn memory_written_before_it_is_read_is_not_zeroed() {
    for body in [
        "tile[l] = 1u; workgroupBarrier(); y[l] = tile[63u - l];",
        "tile[l] = 1u; y[l] = tile[l];",
        "tile[63u - l] = 1u; workgroupBarrier(); y[l] = tile[y[l]];",
        "if y[l] > 3u { tile[l] = 1u; } else { tile[l] = 2u; } workgroupBarrier(); y[l] = tile[y[l]];",
        "if l < 32u { tile[l] = 1u; tile[l + 32u] = 2u; } workgroupBarrier(); y[l] = tile[y[l]];",
        "if l < 32u { tile[l] = 1u; } else { tile[l] = 2u; } workgroupBarrier(); y[l] = tile[y[l]];",
        "if l == 9u { one = 5u; } workgroupBarrier(); y[l] = one;",
        "if l == 9u { one = 5u; } y[l] = workgroupUniformLoad(&one);",
        "for (var i = l; i < 128u; i += 64u) { wide[i / 32u][i & 31u] = i; } workgroupBarrier(); y[l] = wide[g.x][l];",
        "for (var i = 0u; i < 2u; i++) { wide[l / 32u + 2u * i][l % 32u] = i; } workgroupBarrier(); y[l] = wide[g.x][l];",
        "if l < 4u { wide[l] = array<u32, 32>(); } workgroupBarrier(); y[l] = wide[g.x][l];",
        "padded[place(l)] = l; workgroupBarrier(); for (var i = 0u; i < 8u; i++) { y[l] += padded[place(l & 56u) + i]; }",
        "atomicStore(&counts[l], 0u); workgroupBarrier(); atomicAdd(&counts[y[l] & 63u], 1u);",
        "pairs[l] = Pair(1u, 2u); workgroupBarrier(); y[l] = pairs[y[l]].a;",
        "var at = l; at += 1u; tile[at - 1u] = 2u; at = g.x; workgroupBarrier(); y[l] = tile[at];",
        "put(l, 3u); workgroupBarrier(); y[l] = tile[y[l]];",
        "put(l, 3u); y[l] = sum(l);",
        "if s.n == 0u { return; } tile[l] = 1u; workgroupBarrier(); y[l] = tile[y[l]];",
        "for (var k = 0u; k < s.n; k++) { tile[l] = k; workgroupBarrier(); y[l] += tile[y[l]]; workgroupBarrier(); }",
        "tile[l] = 1u; workgroupBarrier(); for (var h = 32u; h > 0u; h /= 2u) { if l < h { tile[l] += tile[l + h]; } workgroupBarrier(); }",
        "tile[l] = 1u; y[l] = tile[64u + y[0] - y[0] % 1u - y[0]]; workgroupBarrier();",
        "one = 3u; one = 4u; y[0] = 1u;",
        "y[l] = tile[l + 64u];",
    ] {
        // The ninth-last element is read at an unknown index before the barrier.
        let expected: &[&str] = if body.contains("% 1u") { &["tile"] } else { &NOTHING };
        assert_eq!(found(body), expected, "{body}");
    }
}

/// Bodies, each with the variable that it may read first.
const READ_FIRST: &[(&str, &str)] = &[
    ("y[l] = tile[l];", "tile"),
    ("tile[l] = 1u; y[l] = tile[63u - l];", "tile"),
    ("tile[l] = 1u; storageBarrier(); y[l] = tile[63u - l];", "tile"),
    ("if y[l] > 3u { tile[l] = 1u; } workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    ("if s.n > 3u { tile[l] = 1u; } workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    (
        "if s.n > 3u { tile[l] = 1u; } else { tile[l / 2u] = 2u; } workgroupBarrier(); y[l] = tile[y[l]];",
        "tile",
    ),
    ("tile[l / 2u] = 1u; workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    ("tile[l + 1u] = 1u; workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    ("tile[y[l]] = 1u; workgroupBarrier(); y[l] = tile[l];", "tile"),
    ("if l < 63u { tile[l] = 1u; } workgroupBarrier(); y[l] = tile[l];", "tile"),
    ("if s.n == 1u { one = 3u; } tile[one] = 5u;", "one"),
    ("atomicAdd(&counts[(l * 5u) & 63u], 1u);", "counts"),
    ("for (var k = 0u; k < s.n; k++) { tile[l] = k; } workgroupBarrier(); y[l] = tile[l];", "tile"),
    (
        "for (var k = 0u; k < 2u; k++) { if y[k] == 1u { break; } tile[l] = k; } workgroupBarrier(); y[l] = tile[l];",
        "tile",
    ),
    ("for (var k = 1u; k < 1u; k++) { tile[l] = k; } workgroupBarrier(); y[l] = tile[l];", "tile"),
    ("loop { if l == 3u { break; } tile[l] = 1u; break; } workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    (
        "switch g.x { case 1u: { if l == 3u { break; } tile[l] = 1u; } default: { tile[l] = 2u; } } workgroupBarrier(); y[l] = tile[y[l]];",
        "tile",
    ),
    ("put_some(l, 3u); workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    ("y[l] = sum(l);", "tile"),
    ("var at = l; if s.n == 1u { at = 0u; } tile[at] = 1u; workgroupBarrier(); y[l] = tile[y[l]];", "tile"),
    ("var at = l; for (var k = 0u; k < 4u; k++) { tile[at] = 1u; at += 1u; } y[l] = tile[l + 3u];", "tile"),
    (
        "var at = l; loop { if y[0] == 1u { continue; } at = 0u; continuing { tile[at] = 1u; break if true; } } y[l] = tile[0];",
        "tile",
    ),
    (
        "var at = l; switch g.x { case 0u: { at = 0u; } default: {} } tile[at] = 1u; workgroupBarrier(); y[l] = tile[y[l]];",
        "tile",
    ),
    ("pairs[l].a = 1u; workgroupBarrier(); y[l] = pairs[l].b;", "pairs"),
    (
        "for (var i = l; i < 72u; i += 64u) { if i != 70u { padded[i] = i; } } workgroupBarrier(); y[l] = padded[l + 8u];",
        "padded",
    ),
    (
        "for (var i = l; i < 127u; i += 64u) { wide[i / 32u][i & 31u] = i; } workgroupBarrier(); y[l] = wide[g.x][l];",
        "wide",
    ),
    (
        "for (var i = 0u; i < 2u; i++) { y[l] += wide[l / 32u + 2u * (1u - i)][l % 32u]; wide[l / 32u + 2u * i][l % 32u] = i; }",
        "wide",
    ),
    (
        "for (var i = 0u; i < 2u; i++) { wide[l / 32u + 2u * i][l % 32u] = i; y[l] += wide[l / 32u + 2u * (1u - i)][l % 32u]; }",
        "wide",
    ),
    (
        "var i = 0u; let old = i; for (; i < 64u; i++) { tile[old] = i; } workgroupBarrier(); y[l] = tile[l];",
        "tile",
    ),
    ("for (var k = 0u; k < s.n; k++) { y[l] += tile[l]; tile[l] = k; }", "tile"),
    ("let all = tile; tile[l] = 1u; y[l] = all[l];", "tile"),
    ("y[l] = workgroupUniformLoad(&one); one = 3u;", "one"),
    (
        "if s.n > 1u { tile[l] = 1u; workgroupBarrier(); } else { tile[l] = 2u; } y[l] = tile[63u - l];",
        "tile",
    ),
];

#[test]
fn memory_that_may_be_read_first_is_zeroed() {
    for (body, expected) in READ_FIRST {
        assert_eq!(found(body), [*expected], "{body}");
    }
}

/// Zeroing would cost time, and none of these needs it.
#[test]
fn the_kernels_of_the_repository_write_their_memory_first() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let (mut seen, mut wrong) = (0, Vec::new());
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "wgsl")) {
        let code = std::fs::read_to_string(&path).unwrap();
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let flat = crate::print::c::host_program(&program).unwrap();
        if zeroed(&program).unwrap().is_some() || !must_zero(&flat, 0).is_empty() {
            wrong.push(path.file_stem().unwrap().to_owned());
        }
        seen += 1;
    }
    // Some of its invocations write one tile, some the other: the analysis does not follow such branches.
    assert!(wrong == ["gemm_f32"] && seen >= 10, "{wrong:?} of {seen}");
}

#[test]
fn zeroing_code_is_valid() {
    let code = "
        struct Inner { a: atomic<u32>, v: vec3<f32>, list: array<atomic<i32>, 3> }
        struct Outer { head: u32, rows: array<array<Inner, 2>, 40>, tail: mat2x2<f32> }
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<workgroup> outer: Outer;
        var<workgroup> halves: array<vec4<f32>, 100>;
        var<workgroup> flags: array<array<bool, 3>, 3>;
        struct Items { @builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32 }
        @compute @workgroup_size(8, 2) fn with_struct(items: Items) {
            y[items.l] = outer.head + u32(halves[items.g.x].x) + u32(flags[items.g.x][items.g.y]);
        }
        @compute @workgroup_size(4) fn without(@builtin(local_invocation_id) l: vec3<u32>) {
            y[l.x] = u32(atomicLoad(&outer.rows[l.x][1].list[2]));
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let filled = zeroed(&program).unwrap().unwrap();
    if let Err(error) = crate::parse::validate(&filled.module) {
        panic!("{}", error.emit_to_string(code));
    }
    assert!(zeroed(&filled).unwrap().is_none());
    let left = program.with_uninitialised_workgroup_memory();
    assert!(zeroed(&left).unwrap().is_none());
}
