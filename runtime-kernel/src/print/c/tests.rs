//! The shape of the generated text. `tests/portable` tests with real compilers and devices that it compiles and
//! computes what WGSL specifies.

use runtime_core::ErrorKind;

use super::CCode;
use crate::parse::specialise::Specialisation;
use crate::program::{Checks, Dialect, Program};

fn written(code: &str, dialect: Dialect, checks: Checks) -> runtime_core::Result<CCode> {
    Program::parse(code, "test.wgsl", &Specialisation::default())?.c(dialect, checks)
}

/// A kernel with one tensor per access mode, and the given body.
fn kernel(body: &str) -> String {
    format!(
        "@group(0) @binding(1) var<storage, read> x: array<u32>;\n\
         @group(0) @binding(0) var<storage, read_write> y: array<u32>;\n\
         var<workgroup> tile: array<u32, 64>;\n\
         fn bump() -> u32 {{ y[0] += 1u; return y[0]; }}\n\
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{\n{body}\n}}"
    )
}

/// The entry point of `kernel(body)` in OpenCL C.
fn entry(body: &str, checks: Checks) -> String {
    let text = written(&kernel(body), Dialect::OpenCl, checks).unwrap().text;
    text[text.find("__kernel").unwrap()..].to_owned()
}

#[test]
fn an_entry_point_called_main_has_a_symbol_that_c_takes() {
    for dialect in [Dialect::OpenCl, Dialect::Cuda, Dialect::Host] {
        let code = written(&kernel("y[i] = x[i];"), dialect, Checks::Bounded).unwrap();
        assert_eq!(code.symbols, [("main".to_owned(), "main_w".to_owned())]);
        assert!(code.text.contains("void main_w("));
    }
}

#[test]
fn a_negative_index_that_passes_its_check_does_not_index_backwards() {
    let text = entry("let at = i32(x[i]); y[at] = x[at];", Checks::BoundedOnce);
    assert!(
        text.contains("if ((u32)at < y_length) y[(u32)at] = (u32)at < x_length ? x[(u32)at] : 0u;"),
        "{text}"
    );
    let text = entry("let at = i32(x[i]); y[at] = x[at];", Checks::Unchecked);
    assert!(text.contains("y[at] = x[at];"), "{text}");
}

#[test]
fn conditions_around_an_access_prove_it_in_range() {
    let loop_over = |bound: &str| {
        entry(
            &format!("for (var p = 0u; p < {bound}; p++) {{ y[i] = tile[p * 16u + (i & 15u)]; }}"),
            Checks::BoundedOnce,
        )
    };
    let text = loop_over("4u");
    assert!(text.contains(" = tile.at[(i32)p * 16 + (i32)(i & 15u)];"), "{text}");
    for bound in ["5u", "x[0]"] {
        let text = loop_over(bound);
        assert!(text.contains("< 64u ? tile.at["), "{bound}: {text}");
    }
    let text =
        entry("var p = x[0]; if 64u > p { y[i] = tile[p]; p += 1u; y[i] = tile[p]; }", Checks::BoundedOnce);
    assert!(text.contains("y[i] = tile.at[p];"), "{text}");
    assert_eq!(text.matches("p < 64u ? tile.at[p]").count(), 1, "once it has changed: {text}");
    let text =
        entry("var p = x[0]; if 64u > p { y[i] = tile[p]; } else { y[i] = tile[p]; }", Checks::BoundedOnce);
    assert_eq!(text.matches("p < 64u ? tile.at[p]").count(), 1, "only where it holds: {text}");
    let text = entry("for (var p = 0; p < 64; p++) { y[i] = tile[p - 1]; }", Checks::BoundedOnce);
    assert!(text.contains("< 64u ? tile.at["), "signed numbers may be negative: {text}");
}

#[test]
fn comparisons_bound_values() {
    let proven = |body: &str| {
        let text = entry(body, Checks::BoundedOnce);
        assert!(!text.contains("64u ?"), "{body}: {text}");
    };
    let checked = |body: &str| {
        let text = entry(body, Checks::BoundedOnce);
        assert!(text.contains("64u ?"), "{body}: {text}");
    };
    proven("let p = x[i]; if p >= 64u { return; } y[i] = tile[p];");
    proven("let p = x[i]; let q = x[1]; if p < 64u && q <= 9u { y[i] = tile[p] + tile[q + 5u]; }");
    proven("let p = x[i]; if !(p > 31u || p == i) { y[i] = tile[p * 2u + 1u]; }");
    proven("for (var half = 32u; half > 0u; half /= 2u) { if i < half { y[i] = tile[i + half]; } }");
    proven("var p = x[i]; loop { if p > 63u { break; } y[i] = tile[p]; p += 1u; }");
    proven("let p = x[i]; if p + 3u < 64u { y[i] = tile[p + 3u]; }");
    proven("for (var step = 1u; step < 64u; step *= 2u) { if i >= step { y[i] = tile[i - step]; } }");
    proven("if i > 0u { y[i] = tile[i - 1u]; } if 3u <= i { y[i] = tile[i - 2u]; }");
    proven("let p = x[i]; if p < 66u && p >= 2u { y[i] = tile[p - 2u]; }");
    checked("let step = x[i]; if i + 1u >= step { y[i] = tile[i - step]; }");
    checked("if i > 0u { y[i] = tile[i - 2u]; }");
    checked("var step = x[i]; if i >= step { step += 1u; y[i] = tile[i - step]; }");
    checked("let p = x[i]; if p < 67u && p >= 2u { y[i] = tile[p - 2u]; }");
    checked("let p = i32(x[i]); if p > 0 { y[i] = tile[p - 1]; }");
    checked("if y[0] < 64u { y[i] = tile[y[0]]; }");
    checked("let p = x[i]; if p < 64u || i < 64u { y[i] = tile[p]; }");
    checked("var p = x[i]; let ok = p < 64u; p += 9u; if ok { y[i] = tile[p]; }");
    checked("var p = x[i]; if p > 63u { p = 70u; } y[i] = tile[p];");
    checked(
        "var p = x[i]; loop { if p > 63u { continue; } p += 1u; continuing { y[i] = tile[p]; break if p > 9u; } }",
    );
    checked("for (var p = 1u; p < 100u; p *= 2u) { y[i] = tile[p]; }");
    checked("var p = 1u; switch x[i] { case 1u: { p = 99u; } default: { p = 2u; } } y[i] = tile[p];");
    checked("let p = i32(x[i]); if p < 64 { y[i] = tile[p]; }");
    checked("let p = x[i]; if p <= 64u { y[i] = tile[p]; }");
    checked("let p = x[i]; if 64u >= p { y[i] = tile[p]; }");
    checked("let p = x[i]; if !(p > 64u) { y[i] = tile[p]; }");
    checked("var p = x[i]; if p < 64u { for (var k = 0u; k < 9u; k++) { y[i] = tile[p]; p += 1u; } }");
    checked(
        "var p = x[i]; loop { let ok = p < 64u && p > 2u; if i == 3u { p += 99u; continue; } \
         continuing { if ok { y[i] = tile[p]; } break if p > 9u; } }",
    );
    checked(
        "var p = x[i]; if p < 64u { loop { y[i] = tile[p]; continuing { p += 1u; break if p > 99u; } } }",
    );
}

#[test]
fn values_that_may_wrap_prove_nothing() {
    let checked = |index: &str| {
        let text = entry(&format!("let a = x[i]; let b = x[0]; y[i] = tile[{index}];"), Checks::BoundedOnce);
        assert!(text.contains("64u ?"), "{index}: {text}");
        let text = entry(&format!("let a = x[i]; let b = x[0]; y[{index}] = i;"), Checks::BoundedOnce);
        for sum in ["tile.at[(i32)", "y[(i32)"] {
            assert!(!text.contains(sum), "{index} is no sum without a sign: {text}");
        }
    };
    checked("(a & 0xfffffff0u) + (b & 31u)");
    checked("(a & 0x7fffffffu) + (b & 0x7fffffffu)");
    checked("(a & 0xffffu) * (b & 0x1ffffu)");
    checked("(a & 31u) - (b & 31u)");
    checked("(a & 31u) << (b & 31u)");
    checked("clamp(a, b, 9u)");
    checked("u32(clamp(i32(a), -3, 9))");
    checked("min(i32(a), 9)");
    checked("-i32(a & 31u)");
    checked("~(a | 0xfffffff0u) - 1u");
    checked("i64(a & 31u) - i64(b & 31u)");
    checked("u64(a) + u64(b & 31u)");
    for half in ["i32(a & 0x7fffffffu) + i32(b & 0x7fffffffu)", "i32(a & 0xffffu) * i32(b & 0x1ffffu)"] {
        checked(&format!("({half}) % 10"));
        checked(&format!("({half}) / 100000000"));
        checked(&format!("({half}) >> 28u"));
    }
}

/// A negative index of any width becomes a large unsigned one before it is compared, and is never narrowed.
#[test]
fn an_index_is_compared_as_an_unsigned_number_of_its_width() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn go(@builtin(local_invocation_index) i: u32) {
            var own: array<u32, 4>;
            var v: vec4<u32>;
            y[i64(y[i]) - 4li] = own[i64(y[0]) - 1li] + v[i64(y[1]) - 1li];
            y[u64(y[i]) << 32u] = array<u32, 4>(1, 2, 3, 4)[i64(y[2])];
        }";
    for dialect in [Dialect::OpenCl, Dialect::Cuda, Dialect::Host] {
        let text = written(code, dialect, Checks::BoundedOnce).unwrap().text;
        let lines: Vec<_> = text.lines().filter(|line| line.contains(" < ")).collect();
        let wide = lines.iter().map(|line| line.matches("(u64)").count()).sum::<usize>();
        assert!(wide >= 4, "{dialect:?}: {text}");
        assert!(text.contains(" < y_length"), "{text}");
    }
}

#[test]
fn only_functions_with_work_group_memory_must_be_inlined() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<workgroup> tile: array<u32, 64>;
        fn alone(i: u32) -> u32 { return i * 3u; }
        fn of_group(i: u32) -> u32 { tile[i] = i; return alone(tile[i]); }
        fn calls(i: u32) -> u32 { return of_group(i) + 1u; }
        @compute @workgroup_size(64) fn go(@builtin(local_invocation_index) i: u32) { y[i] = calls(i); }";
    let text = written(code, Dialect::OpenCl, Checks::Bounded).unwrap().text;
    for (name, inlined) in [("alone", false), ("of_group", true), ("calls", true)] {
        let found = text.lines().find(|line| line.contains(&format!("u32 {name}")));
        let head = found.unwrap_or_else(|| panic!("{name}: {text}"));
        assert_eq!(head.contains("always_inline"), inlined, "{head}");
    }
}

/// NVIDIA's OpenCL compiler mishandles a literal argument that the function indexes.
#[test]
fn literal_arguments_are_named_in_opencl_c() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        fn element(values: array<u32, 3>, at: u32) -> u32 { return values[at]; }
        @compute @workgroup_size(64) fn go(@builtin(local_invocation_index) i: u32) {
            y[i] = element(array<u32, 3>(5u, 6u, 7u), i) + element(array<u32, 3>(), i);
        }";
    let calls = |dialect| {
        let text = written(code, dialect, Checks::Bounded).unwrap().text;
        text.lines().filter(|line| line.contains("= element_w(")).map(str::to_owned).collect::<Vec<_>>()
    };
    for dialect in [Dialect::OpenCl, Dialect::Cuda] {
        let calls = calls(dialect);
        assert!(!calls.is_empty());
        for call in calls {
            assert_eq!(call.contains("element_w(literal"), dialect == Dialect::OpenCl, "{call}");
            assert_eq!(call.contains('{'), dialect == Dialect::Cuda, "{call}");
        }
    }
}

/// If a module already has both variants, each names the arguments that it uses.
#[test]
fn an_argument_of_both_variants_is_declared_once() {
    let code = "struct Scalars { n: u32 } var<immediate> s: Scalars;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn go(@builtin(global_invocation_id) id: vec3u) {
            if id.x < s.n { y[id.x] = 1u; }
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let text = program
        .with_bounds_checks(Checks::Bounded)
        .unwrap()
        .c(Dialect::OpenCl, Checks::Unchecked)
        .unwrap()
        .text;
    assert_eq!(text.matches("const vec3u id = ").count(), 1, "{text}");
    assert_eq!(text.matches(" = 1u;").count(), 2, "{text}");
}

/// A sum over an invocation's own part of memory becomes one over bytes, for which processors have an instruction.
#[test]
fn a_row_of_packed_bytes_is_summed_as_bytes() {
    let code = |sum: &str| {
        format!(
            "struct Scalars {{ n: u32 }} var<immediate> s: Scalars;
            @group(0) @binding(0) var<storage, read> x: array<u32>;
            @group(0) @binding(1) var<storage, read_write> y: array<i32>;
            @compute @workgroup_size(64) fn go(@builtin(global_invocation_id) id: vec3u) {{
                var sum = 0i;
                for (var k = 0u; k < s.n; k++) {{ {sum} }}
                y[id.x] = sum;
            }}"
        )
    };
    let is_of_bytes = |sum: &str, asserts: bool| {
        let program = Program::parse(&code(sum), "", &Specialisation::default()).unwrap();
        let program = if asserts { program.with_asserted_proofs() } else { program };
        program.c(Dialect::Host, Checks::Bounded).unwrap().text.contains("_rows(")
    };
    let sum = "sum += dot4I8Packed(x[id.x * s.n + k], x[id.x * 5u + k]);";
    assert!(is_of_bytes(sum, false));
    assert!(!is_of_bytes(sum, true), "each round is asserted");
    assert!(is_of_bytes("sum = dot4I8Packed(x[id.x * s.n + k], x[k]) + sum;", false));
    assert!(!is_of_bytes("sum += dot4I8Packed(x[id.x * s.n + k], s.n);", false));
    assert!(!is_of_bytes("sum += 1i + dot4I8Packed(x[id.x * s.n + k], x[k]);", false));
}

/// Accesses that are proven in range by the conditions before them.
#[test]
fn asserted_proofs_leave_no_access_unchecked() {
    let code = "struct Scalars { n: u32 } var<immediate> s: Scalars;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64) fn go(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) l: u32) {
    tile[l] = 1u;
    workgroupBarrier();
    let value = array<u32, 4>(1u, 2u, s.n, 4u);
    if id.x < s.n { y[id.x] = tile[l] + value[l & 3u]; }
}";
    let write = |dialect, asserts: bool| {
        let program = Program::parse(code, "a \"b\".wgsl", &Specialisation::default()).unwrap();
        let program = if asserts { program.with_asserted_proofs() } else { program };
        program.c(dialect, Checks::Bounded).unwrap().text
    };
    let text = write(Dialect::Cuda, true);
    let entry = &text[text.find("__global__").unwrap()..];
    assert!(entry.contains("tile.at[proven_(l, 64u, \"a \\042b\\042.wgsl:5\")]"), "{entry}");
    assert!(entry.contains("y[proven_(id.x, y_length, \"a \\042b\\042.wgsl:8\")]"), "{entry}");
    assert_eq!(entry.matches("at[").count(), entry.matches("at[proven_(").count(), "{entry}");
    assert!(text.contains("__assertfail("), "{text}");
    let text = write(Dialect::Host, true);
    let entry = &text[text.find("_range(").unwrap()..];
    assert!(entry.matches(".at[proven_(").count() > 4, "{entry}");
    assert_eq!(entry.matches(".at[").count(), entry.matches(".at[proven_(").count(), "{entry}");
    for line in entry.lines().filter(|line| line.contains(" y[")) {
        assert!(line.contains(" y[proven_(") || line.contains("< y_length"), "{line}: {entry}");
    }
    assert!(text.contains("const char *volatile runtime_kernel_failure;"), "{text}");
    for dialect in [Dialect::Cuda, Dialect::Host] {
        assert!(!write(dialect, false).contains("proven_("));
    }
}

#[test]
fn a_dot_product_of_bytes_is_one_instruction_on_cuda() {
    let code = kernel("y[i] = u32(dot4I8Packed(x[i], x[0])) + dot4U8Packed(x[i], x[1]);");
    let text = written(&code, Dialect::Cuda, Checks::Bounded).unwrap().text;
    assert!(text.contains("return __dp4a((i32)a, (i32)b, (i32)0);"), "{text}");
    assert!(text.contains("return __dp4a((u32)a, (u32)b, (u32)0);"), "{text}");
    let text = written(&code, Dialect::OpenCl, Checks::Bounded).unwrap().text;
    assert!(!text.contains("__dp4a"), "{text}");
}

#[test]
fn every_float_function_has_an_f16_form() {
    let one = "abs acos asin atan ceil cos cosh exp exp2 floor fract inverseSqrt log log2 round saturate sign sin sinh sqrt \
               tan tanh trunc degrees radians";
    let two = "atan2 max min pow step";
    let three = "clamp fma mix smoothstep";
    let calls = |names: &str, arguments: &str| {
        names.split_whitespace().map(|name| format!("y[0] += {name}({arguments});\n")).collect::<String>()
    };
    let body = [calls(one, "a"), calls(two, "a, a"), calls(three, "a, a, a")].concat();
    let code = format!(
        "enable f16;\n@group(0) @binding(0) var<storage, read_write> y: array<f16>;
         @compute @workgroup_size(1) fn go() {{ let a = y[1];\n{body} }}"
    );
    for dialect in [Dialect::OpenCl, Dialect::Cuda, Dialect::Host] {
        let text = written(&code, dialect, Checks::Bounded).unwrap().text;
        assert!(text.contains("f16_smoothstep("), "{text}");
    }
}

#[test]
fn an_index_compared_with_the_array_length_is_not_checked_again() {
    let text = entry("if i < arrayLength(&x) { y[i] = x[i]; }", Checks::BoundedOnce);
    assert!(text.contains("if (i < y_length) y[i] = x[i];"), "{text}");
}

#[test]
fn gpus_have_an_unchecked_variant_for_launches_in_range() {
    let code = "struct Scalars { m: u32, k: u32 } var<immediate> s: Scalars;
        @group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        fn element(row: u32, column: u32) -> u32 {
            if row < s.m && column < s.k { return x[row * s.k + column]; } return 0u;
        }
        @compute @workgroup_size(64) fn go(@builtin(global_invocation_id) id: vec3<u32>) {
            y[id.x] = element(id.x, 3u) + x[y[id.x]];
        }";
    let text = written(code, Dialect::Cuda, Checks::Bounded).unwrap().text;
    assert!(text.contains("in_range || t1 < x_length ? x[t1] : 0u"), "{text}");
    assert!(text.contains("(u64)s.m * s.k <= (u64)x_length"), "{text}");
    assert!(text.contains("(u64)64 * gridDim.x <= (u64)y_length"), "{text}");
    assert!(text.contains("x_length, in_range);") && text.contains("body(true);"), "{text}");
    assert_eq!(text.matches("|| ").count(), 3, "the index from memory is checked: {text}");
    let text = written(code, Dialect::OpenCl, Checks::Bounded).unwrap().text;
    assert!(
        text.contains("const bool in_range = true;") && text.contains("const bool in_range = false;"),
        "{text}"
    );
    assert!(text.contains("(u64)64 * (u32)get_num_groups(0) <= (u64)y_length"), "{text}");
    for (dialect, checks) in [
        (Dialect::Cuda, Checks::Unchecked),
        (Dialect::Host, Checks::Bounded),
        (Dialect::OpenCl, Checks::BoundedOnce),
    ] {
        assert!(!written(code, dialect, checks).unwrap().text.contains("in_range"));
    }
}

#[test]
fn accesses_are_checked_where_nothing_proves_them_in_range() {
    let text = entry("y[i] = x[i] + tile[i] + tile[i & 7u] + tile[i + 1u];", Checks::BoundedOnce);
    assert!(text.contains("if (i < y_length) y[i] = "), "{text}");
    assert!(text.contains("(i < x_length ? x[i] : 0u)"), "{text}");
    assert!(text.contains("+ tile.at[i] + tile.at[i & 7u] +"), "{text}");
    assert!(text.contains("< 64u ? tile.at["), "{text}");
    let text = entry("y[i] = x[i] + tile[i + 1u];", Checks::Unchecked);
    assert!(text.contains("y[i] = x[i] + tile.at[(i32)i + 1];"), "{text}");
    assert!(!text.contains("_length"), "{text}");
}

#[test]
fn a_load_stays_before_what_could_change_it() {
    let text = entry("y[1] = y[0] + bump();", Checks::Unchecked);
    let (load, call) = (text.find("= y[0];"), text.find("bump_w("));
    assert!(load.is_some() && load < call, "{text}");
    let text = entry("tile[i] = 1u; let p = &tile[i]; workgroupBarrier(); y[i] = *p;", Checks::Unchecked);
    assert!(text.contains("y[i] = tile.at[i];"), "{text}");
    let text = entry("var k = i; let p = &tile[k]; k = 3u; y[i] = *p + k;", Checks::Unchecked);
    let (load, store) = (text.find("= k;"), text.find("k = 3u;"));
    assert!(load.is_some() && load < store, "{text}");
}

#[test]
fn a_product_that_may_wrap_stays_unsigned() {
    let text = entry(
        "let a = x[0] & 0xfffffu; let b = x[1] & 0xfffffu; if a * b < 64u { y[i] = tile[a * b]; }",
        Checks::Bounded,
    );
    assert!(text.contains("tile.at[a * b]"), "{text}");
}

#[test]
fn a_load_stays_behind_the_condition_that_proves_it_in_range() {
    let code = "struct P { k: u32 }\nvar<immediate> p: P;\n\
                @group(0) @binding(0) var<storage, read> x: array<u32>;\n\
                @group(0) @binding(1) var<storage, read_write> y: array<u32>;\n\
                @compute @workgroup_size(64) fn f(@builtin(global_invocation_id) id: vec3<u32>) {\n\
                if p.k < arrayLength(&x) { if id.x < x[p.k] { y[id.x] = 1u; } } }";
    let text = written(code, Dialect::Host, Checks::Bounded).unwrap().text;
    assert!(text.contains("if (id.x < x[p.k])"), "{text}");
    assert!(!text.contains("(long long)x[p.k]"), "{text}");
}

#[test]
fn loops_keep_their_shape() {
    let text =
        entry("for (var k = 0u; k < i; k++) { if k == 3u { continue; } y[k] = k; }", Checks::Unchecked);
    assert!(text.contains("for (; k < i; k = k + 1u) {"), "{text}");
    assert!(text.contains("continue;") && !text.contains("goto"), "{text}");
    let body = "var k = 0u; loop { let n = k * k; if n == 9u { k += 2u; continue; } y[k] = n; \
                continuing { y[0] += n; k++; break if k > i; } }";
    let text = entry(body, Checks::Unchecked);
    assert!(text.contains("goto next;") && text.contains("next:;"), "{text}");
    assert!(text.contains("u32 n;") && text.contains("if (k > i) break;"), "{text}");
    let text =
        written(&kernel("loop { if bump() > 9u { break; } }"), Dialect::Cuda, Checks::Bounded).unwrap().text;
    assert!(text.contains("for (;;) {\n            asm volatile(\"\");"), "{text}");
}

#[test]
fn only_library_functions_in_use_are_printed() {
    let text =
        written(&kernel("y[i] = u32(i32(i) / -3 + i32(x[i]) % i32(i));"), Dialect::OpenCl, Checks::Unchecked);
    let text = text.unwrap().text;
    assert!(text.contains("i32_rem(") && text.contains("i32_add("), "{text}");
    assert!(!text.contains("i32_div(") && !text.contains("i32_mul("), "{text}");
    assert_eq!(text.matches("i32 i32_rem(").count(), 1, "{text}");
}

#[test]
fn an_unsupported_construct_is_an_error_with_its_line() {
    let code = format!(
        "enable subgroups; diagnostic(off, subgroup_uniformity);\n{}",
        kernel("y[i] = x[i];\nif i == 3u { y[i] += subgroupAdd(i); }")
    );
    let error = written(&code, Dialect::Host, Checks::Bounded).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().starts_with("test.wgsl:"), "{error}");
    assert!(error.message().contains("subgroup"), "{error}");
}

/// The barriers of emulated subgroups are no text that a browser would have to accept.
#[test]
fn emulated_subgroups_need_only_what_the_device_needs() {
    let code = "enable subgroups; diagnostic(off, subgroup_uniformity);
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn go(@builtin(local_invocation_id) at: vec3u) {
            for (var k = 0u; k < 4u; k++) {
                if at.y == 0u { y[at.x] += subgroupAdd(k); }
                if at.x == k { continue; }
                y[at.x] += 1u;
            }
        }";
    written(code, Dialect::Host, Checks::Bounded).unwrap();
}

#[test]
fn labels_of_the_two_variants_differ() {
    let code = "struct Scalars { n: u32 } var<immediate> s: Scalars;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn go(@builtin(global_invocation_id) id: vec3<u32>) {
            var i = 0u;
            loop {
                if i == 3u { i += 2u; continue; }
                if id.x < s.n { y[id.x] += i; }
                continuing { i += 1u; y[0] = i; break if i > 9u; }
            }
        }";
    let text = written(code, Dialect::OpenCl, Checks::Bounded).unwrap().text;
    for label in ["next", "next_1"] {
        assert_eq!(text.matches(&format!("goto {label};")).count(), 1, "{text}");
        assert_eq!(text.matches(&format!("{label}:;")).count(), 1, "{text}");
    }
}

#[test]
fn a_condition_on_part_of_a_sum_gives_a_launch_precondition_for_the_sum() {
    let code = "struct Scalars { rows: u32, columns: u32 } var<immediate> s: Scalars;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(64) fn go(@builtin(local_invocation_index) lane: u32) {
            for (var row = 0u; row < s.rows; row++) {
                let first = row * s.columns;
                for (var start = 0u; start < s.columns; start += 64u) {
                    if start + lane < s.columns { y[lane + first + start] = y[first + start + row]; }
                }
            }
        }";
    let text = written(code, Dialect::Cuda, Checks::Bounded).unwrap().text;
    assert!(text.contains("&& (u64)s.rows * s.columns <= (u64)y_length)"), "{text}");
    assert!(text.contains("(u64)s.rows + (u64)s.rows * s.columns <= (u64)1 + (u64)y_length"), "{text}");
}

#[test]
fn a_function_of_one_expression_is_analysed() {
    let checked = |body: &str| {
        let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
            var<workgroup> tile: array<u32, 66>;
            fn place(i: u32) -> u32 { return i + i / 32; }
            fn other(i: u32) -> u32 { if i == 3u { return 99u; } return i; }
            fn signed(i: i32) -> i32 { return i + 2; }
            @compute @workgroup_size(64) fn go(@builtin(local_invocation_index) lane: u32) {";
        let text = written(&format!("{code} {body} }}"), Dialect::Cuda, Checks::Bounded).unwrap().text;
        text.contains("< 66u")
    };
    assert!(!checked("tile[place(lane)] = 1u;"));
    assert!(checked("tile[place(lane + 1u)] = 1u;"));
    assert!(checked("tile[place(y[0])] = 1u;"));
    assert!(checked("tile[other(lane)] = 1u;"));
    assert!(checked("tile[signed(i32(lane))] = 1u;"));
}

/// Each value is used twice by the next: visiting both uses would take exponential time.
#[test]
fn a_chain_of_values_used_twice_takes_linear_time() {
    let chain: String =
        (0..40).map(|i| format!("let a{} = (a{i} + a{i}) + (a{i} * a{i});\n", i + 1)).collect();
    let uses: String = (5..35).map(|i| format!("if a{i} < x[0] {{ y[a{i}] = 1u; }}\n")).collect();
    let text = entry(&format!("let a0 = i;\n{chain}{uses}"), Checks::Bounded);
    assert!(text.contains("y["), "{text}");
}

/// NVIDIA's OpenCL compiler moves a literal to constant memory, and reads elsewhere if an index is not constant.
#[test]
fn indexed_literals_are_named_in_opencl_c() {
    let body = "y[i] = array<u32, 2>(1, i)[x[0]] + array<array<u32, 2>, 2>(array<u32, 2>(3, i), array<u32, 2>(5, 6))[1][x[1]]
        + u32(mat2x2<f32>(1, 2, 3, 4)[x[2]][x[3]]) + array<u32, 4>()[x[0]];";
    let program = Program::parse(&kernel(body), "", &Specialisation::default()).unwrap();
    for program in [program.with_proof_reports(Checks::BoundedOnce).unwrap(), program] {
        for checks in [Checks::Unchecked, Checks::BoundedOnce] {
            let text = program.c(Dialect::OpenCl, checks).unwrap().text;
            assert!(text.contains("{{1u, i}};") && !text.contains("}."), "{text}");
        }
    }
}

/// NVIDIA's compilers lose the negation in `min` of three 32-bit integers.
#[test]
fn integer_minima_of_negations_are_disguised_for_nvidia() {
    let body = "let n = i32(x[i]); y[i] = u32(clamp(-n, min(n, 7i), 9i)) + min(x[i], 7u);";
    for (dialect, hidden) in [(Dialect::OpenCl, 3), (Dialect::Cuda, 3), (Dialect::Host, 0)] {
        let text = written(&kernel(body), dialect, Checks::BoundedOnce).unwrap().text;
        assert_eq!(text.matches("asm(").count(), hidden, "{text}");
        assert_eq!(text.contains("#ifdef __NV_CL_C_VERSION"), dialect == Dialect::OpenCl, "{text}");
    }
}

#[test]
fn only_values_with_padding_are_stored_part_by_part() {
    let stored = |structure: &str, dialect| {
        let code = format!(
            "struct S {{ {structure} }} @group(0) @binding(0) var<storage, read_write> y: array<S>;
             @compute @workgroup_size(1) fn main() {{ let old = y[1]; y[0] = old; }}"
        );
        written(&code, dialect, Checks::Unchecked).unwrap().text
    };
    let plain = ["a: vec2f, b: f32, c: f32", "a: mat2x4f, b: array<vec4u, 2>", "a: vec3f, b: f32"];
    let padded = [
        "a: vec3f",
        "a: f32, b: vec2f",
        "@size(16) a: f32",
        "a: mat3x3f",
        "a: mat3x3f, b: f32",
        "a: array<vec3f, 2>",
    ];
    for (dialect, space) in [(Dialect::Host, ""), (Dialect::OpenCl, "__global "), (Dialect::Cuda, "")] {
        for structure in plain {
            let text = stored(structure, dialect);
            assert!(text.contains("y[0] = old;") && !text.contains("_store_"), "{text}");
        }
        for structure in padded {
            let text = stored(structure, dialect);
            assert!(text.contains("S_w_store_(&y[0], old);"), "{text}");
            assert!(text.contains(&format!("void S_w_store_({space}S_w *p, S_w v)")), "{text}");
        }
    }
}
