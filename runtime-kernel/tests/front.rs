//! What a kernel's author sees of the front end: diagnostics, the convention's rules, constants, element types.

use runtime_core::{Access, DType, ErrorKind};
use runtime_kernel::{Feature, Program, Specialisation};

const SAXPY: &str = "\
struct Scalars { a: f32, n: u32 }
var<immediate> args: Scalars;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
override GROUP: u32 = 64;
@compute @workgroup_size(GROUP) fn saxpy(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < args.n { y[id.x] += args.a * x[id.x]; }
}
";

fn parse(code: &str) -> runtime_core::Result<Program> {
    Program::parse(code, "k.wgsl", &Specialisation::default())
}

/// A kernel with these declarations, and `body` in its entry point.
fn kernel(declarations: &str, body: &str) -> String {
    format!("{declarations}\n@compute @workgroup_size(1) fn main() {{ {body} }}")
}

fn refused(code: &str) -> String {
    let error = parse(code).expect_err(code);
    assert_eq!(error.kind(), ErrorKind::CompileFailed, "{error}");
    error.to_string()
}

#[test]
fn the_interface_is_read_from_the_text() {
    let program = parse(SAXPY).unwrap();
    let [saxpy] = program.interfaces() else { panic!("one entry point") };
    assert_eq!((saxpy.name.as_str(), saxpy.group_size, saxpy.shared_bytes), ("saxpy", [64, 1, 1], 0));
    let tensors = saxpy.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.access, tensor.dtype));
    let expected = [("x", Access::Read, Some(DType::F32)), ("y", Access::ReadWrite, Some(DType::F32))];
    assert!(tensors.eq(expected));
    let scalars =
        saxpy.scalars.iter().map(|scalar| (scalar.name.as_str(), scalar.dtype, scalar.offset_bytes));
    assert!(scalars.eq([("a", DType::F32, 0), ("n", DType::U32, 4)]));
    let [group] = program.overrides() else { panic!("one override") };
    assert_eq!(
        (group.name.as_str(), group.type_name.as_str(), group.default.as_deref()),
        ("GROUP", "u32", Some("64"))
    );
    assert!(program.features().is_empty());
}

#[test]
fn each_entry_point_has_what_it_uses() {
    let program = parse(
        "struct S { n: u32 } var<immediate> s: S;
         @group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>>;
         @group(0) @binding(1) var<storage, read> head: Head;
         @group(0) @binding(1) var<storage, read_write> rows: array<mat4x3<f32>, 5>;
         @group(0) @binding(2) var<storage, read_write> tail: Tail;
         struct Head { first: vec3<f32>, second: u32 }
         struct Tail { count: u32, list: array<vec2<i32>> }
         var<workgroup> flag: u32;
         var<workgroup> tile: array<vec4<f32>, 10>;
         var<workgroup> unused: array<f32, 1000>;
         @compute @workgroup_size(8, 4, 2) fn a() { counts[s.n] = head.second; touch(); }
         fn touch() { tile[0].x = 1.0; flag = 2u; }
         @compute @workgroup_size(1) fn b() { counts[0] = arrayLength(&tail.list) + u32(rows[0][0].x); }",
    )
    .unwrap();
    let [a, b] = program.interfaces() else { panic!("two entry points") };
    let tensors = |list: &[runtime_kernel::Tensor]| {
        list.iter().map(|tensor| (tensor.dtype, tensor.min_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(tensors(&a.tensors), [(Some(DType::U32), 0), (None, 16)]);
    assert_eq!(tensors(&b.tensors), [(Some(DType::U32), 0), (Some(DType::F32), 5 * 64), (None, 8)]);
    let access =
        |list: &[runtime_kernel::Tensor]| list.iter().map(|tensor| tensor.access).collect::<Vec<_>>();
    assert_eq!(access(&a.tensors), [Access::Write, Access::Read], "never read");
    assert_eq!(access(&b.tensors), [Access::Write, Access::ReadWrite, Access::ReadWrite]);
    assert_eq!((a.group_size, a.shared_bytes, a.scalars.len()), ([8, 4, 2], 16 + 160, 1));
    assert_eq!((b.shared_bytes, b.scalars.len()), (0, 0));
    assert_eq!(program.features(), [Feature::Atomics]);
}

#[test]
fn diagnostics_of_the_parser_and_the_validator_keep_their_source_lines() {
    let text = refused("fn f() {\n    let a = b;\n}");
    assert!(text.contains("no definition in scope for identifier: `b`"), "{text}");
    assert!(text.contains("k.wgsl:2:13") && text.contains("let a = b;"), "{text}");
    let text = refused(&kernel("var<workgroup> a: array<f32, 4>;", "let p = a[7];"));
    assert!(text.contains("k.wgsl:2:") && text.contains("a[7]"), "{text}");
}

#[test]
fn every_rule_of_the_convention_names_itself_and_the_line() {
    let cases = [
        (
            "@group(0) @binding(0) var<uniform> u: vec4<f32>;",
            "let a = u;",
            "k.wgsl:1: \"u\" is a uniform buffer; a portable",
        ),
        (
            "@group(1) @binding(0) var<storage> s: array<f32>;",
            "let a = s[0];",
            "k.wgsl:1: \"s\" is not in group 0; the",
        ),
        (
            "@group(0) @binding(0) var<storage> s: array<f32>;\n@group(0) @binding(2) var<storage> t: array<f32>;",
            "let a = s[0] + t[0];",
            "k.wgsl:2: \"t\" has binding 2, but the entry point uses no binding 1; the storage buffers",
        ),
        (
            "@group(0) @binding(0) var t: texture_2d<f32>;",
            "let a = textureDimensions(t);",
            "\"t\" is a texture or sampler",
        ),
        (
            "var<immediate> n: u32;",
            "let a = n;",
            "k.wgsl:1: \"n\" is no struct; the var<immediate> is a struct of scalars",
        ),
        (
            "struct S { v: vec2<f32> }\nvar<immediate> s: S;",
            "let a = s.v;",
            "k.wgsl:2: \"s\" has a member \"v\" that is no scalar",
        ),
        (
            "struct S { a: u32, @align(16) b: u32 }\nvar<immediate> s: S;",
            "let a = s.b;",
            "has a gap before \"b\"",
        ),
    ];
    for (declarations, body, expected) in cases {
        let text = refused(&kernel(declarations, body));
        assert!(text.contains(expected), "{text}\nhas not: {expected}");
    }
    assert!(refused("fn f() {}").contains("there is no entry point; mark one with @compute"));
    let fragment = refused("@fragment fn f() -> @location(0) vec4<f32> { return vec4<f32>(); }");
    assert!(
        fragment.contains("entry point \"f\" is a fragment shader; a portable kernel is @compute"),
        "{fragment}"
    );
    // What no entry point uses breaks no rule.
    parse(&kernel("@group(3) @binding(9) var<uniform> u: vec4<f32>;", "")).unwrap();
}

#[test]
fn overrides_are_fixed_by_name_and_by_id() {
    let code = "@id(7) override N: u32; override SCALE: f32 = 2.0 * 0.5; override FLIP = false; override LOW: i32 = -1;
                var<workgroup> tile: array<f32, N * 2>;
                @group(0) @binding(0) var<storage, read_write> y: array<f32>;
                @compute @workgroup_size(N, 2) fn main() {
                    tile[0] = SCALE;
                    if FLIP { tile[1] = f32(LOW); }
                    y[0] = tile[0] + tile[1];
                }";
    let of = |specialisation: &Specialisation| Program::parse(code, "k.wgsl", specialisation);
    for name in ["N", "7", "@7"] {
        let program = of(&Specialisation::default().constant(name, 16).constant("FLIP", true)).unwrap();
        let [main] = program.interfaces() else { panic!("one entry point") };
        assert_eq!((main.group_size, main.shared_bytes), ([16, 2, 1], 16 * 2 * 4));
    }
    let defaults: Vec<_> = of(&Specialisation::default().constant("N", 1)).unwrap().overrides().to_vec();
    let shown =
        defaults.iter().map(|constant| (constant.name.as_str(), constant.id, constant.default.as_deref()));
    let expected = [
        ("N", Some(7), None),
        ("SCALE", None, Some("2.0 * 0.5")),
        ("FLIP", None, Some("false")),
        ("LOW", None, Some("-1")),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
}

#[test]
fn wrong_constants_are_refused_with_the_reason() {
    let of = |name: &str, value: &str| {
        let code = kernel(
            "override LENGTH: u32; override SCALE: f32 = 1.0; override FLAG: bool = true;
                           var<workgroup> a: array<f32, LENGTH>;",
            "if FLAG { a[0] = SCALE; }",
        );
        let error =
            Program::parse(&code, "k.wgsl", &Specialisation::default().constant(name, value)).unwrap_err();
        (error.kind(), error.to_string())
    };
    for (name, value, expected) in [
        ("LENGHT", "1", "no override \"LENGHT\"; did you mean \"LENGTH\"?"),
        ("LENGTH", "-1", "constant \"LENGTH\": \"-1\" is no value of type u32"),
        ("LENGTH", "1.5", "is no value of type u32"),
        ("SCALE", "1e60", "is no value of type f32"),
        ("SCALE", "nan", "is no value of type f32"),
        ("FLAG", "1", "is no value of type bool"),
        (
            "SCALE",
            "2",
            "k.wgsl:1: override \"LENGTH\" has no default; give it a value: constant \"LENGTH=VALUE\"",
        ),
    ] {
        let (kind, text) = of(name, value);
        assert!(
            kind == ErrorKind::InvalidArgument && text.contains(expected),
            "{kind}: {text}\nhas not: {expected}"
        );
    }
    let (kind, text) = of("LENGTH", "0");
    assert!(
        kind == ErrorKind::CompileFailed && text.starts_with("k.wgsl: with the given constants: error"),
        "{text}"
    );
    assert!(text.contains("does not have a positive size"), "{text}");
}

#[test]
fn an_element_type_reaches_the_interface_and_the_features() {
    let code = kernel(
        "alias T = f32;\n@group(0) @binding(0) var<storage, read_write> y: array<vec4<T>>;",
        "y[0] = vec4(T(1));",
    );
    let dtypes = [
        (DType::F32, vec![]),
        (DType::F16, vec![Feature::F16]),
        (DType::F64, vec![Feature::F64]),
        (DType::I64, vec![Feature::I64]),
        (DType::U32, vec![]),
    ];
    for (dtype, features) in dtypes {
        let program = Program::parse(&code, "k.wgsl", &Specialisation::default().element(dtype)).unwrap();
        assert_eq!(program.interfaces()[0].tensors[0].dtype, Some(dtype));
        assert_eq!(program.features(), features);
    }
}

#[test]
fn scalars_may_be_f16() {
    let code = |body| {
        let declarations = "alias T = f32; struct S { a: T, b: u32, c: T } var<immediate> s: S;
                            @group(0) @binding(0) var<storage, read_write> y: array<T>;";
        kernel(declarations, body)
    };
    let halved = Specialisation::default().element(DType::F16);
    let program = Program::parse(&code("y[0] = s.a * s.c;"), "k.wgsl", &halved).unwrap();
    let scalars = program.interfaces()[0].scalars.iter().map(|scalar| (scalar.dtype, scalar.offset_bytes));
    assert!(scalars.eq([(DType::F16, 0), (DType::U32, 4), (DType::F16, 8)]));
    for specialisation in [Specialisation::default(), halved] {
        let error = Program::parse(&code("s.a = y[0];"), "k.wgsl", &specialisation).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed);
    }
}

#[test]
fn subgroups_and_wide_atomics_are_seen() {
    let of = |declarations, body| parse(&kernel(declarations, body)).unwrap().features().to_vec();
    assert_eq!(of("enable f16, subgroups;", "subgroupBarrier();"), [Feature::Subgroups]);
    assert_eq!(of("enable subgroups;", "_ = subgroupAdd(1);"), [Feature::Subgroups]);
    let wide = "@group(0) @binding(0) var<storage, read_write> y: atomic<u64>;";
    assert_eq!(of(wide, "atomicAdd(&y, 1lu);"), [Feature::I64, Feature::I64Atomics]);
}

#[test]
fn hostile_nesting_is_an_error_and_no_overflow() {
    let body = |text: String| kernel("", &text);
    let nested = [
        body(format!("let a = {}1{};", "(".repeat(900), ")".repeat(900))),
        body(format!("let a = {}1;", "-".repeat(990))),
        body(format!("var a = 1; a = {}1;", "a + ".repeat(990))),
        body(format!("var a = 1; {}", "if a < 1 { } else ".repeat(300) + "{}")),
        body(format!("{}{}", "{".repeat(900), "}".repeat(900))),
        body(format!("var a: {}u32{};", "array<".repeat(400), ", 1>".repeat(400))),
        body(format!("{}1;", "_ = ".repeat(900))),
        body("a".repeat(100_000)),
        body(format!("let a = {}1;", "1 + ".repeat(100_000))),
    ];
    // Few threads have less stack than this one.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let small = small.spawn(move || {
        nested
            .iter()
            .for_each(|code| drop(parse(code).map(|program| program.spirv(runtime_kernel::Checks::Bounded))));
    });
    small.unwrap().join().unwrap();
    let mut chain = "const a0 = 1;".to_owned();
    (1..2900).for_each(|i| chain.push_str(&format!("const a{i} = a{} + 1;", i - 1)));
    parse(&kernel(&chain, "_ = a2899;")).unwrap();
}
