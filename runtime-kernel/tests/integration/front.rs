//! The front end from a kernel author's view: diagnostics, rules of the convention, constants, element types.

use runtime_core::{Access, DType, ErrorKind};
use runtime_kernel::{Checks, Dialect, Feature, Program, Specialisation};

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

/// A kernel with the given declarations and the given body of its entry point.
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
fn each_entry_point_lists_only_what_it_uses() {
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
         @compute @workgroup_size(8, 4, 2) fn a() { atomicStore(&counts[s.n], head.second); touch(); }
         fn touch() { tile[0].x = 1.0; flag = 2u; }
         @compute @workgroup_size(1) fn b() { atomicStore(&counts[0], arrayLength(&tail.list) + u32(rows[0][0].x)); }",
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
fn naga_diagnostics_keep_their_source_lines() {
    let text = refused("fn f() {\n    let a = b;\n}");
    assert!(text.contains("no definition in scope for identifier: `b`"), "{text}");
    assert!(text.contains("k.wgsl:2:13") && text.contains("let a = b;"), "{text}");
    let text = refused(&kernel("var<workgroup> a: array<f32, 4>;", "let p = a[7];"));
    assert!(text.contains("k.wgsl:2:") && text.contains("a[7]"), "{text}");
}

#[test]
fn errors_of_the_convention_name_the_rule_and_the_line() {
    let cases = [
        (
            "@group(0) @binding(0) var t: texture_multisampled_2d<f32>;",
            "let a = textureDimensions(t);",
            "\"t\" is a texture that is no tensor",
        ),
        (
            "var<immediate> n: u32;",
            "let a = n;",
            "k.wgsl:1: \"n\" is not a struct; the var<immediate> must be a struct of scalars",
        ),
        (
            "struct S { v: vec2<f32> }\nvar<immediate> s: S;",
            "let a = s.v;",
            "k.wgsl:2: \"s\" has a member \"v\" that is not a scalar",
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
    let fragment = refused("// fn f\n@fragment fn f() -> @location(0) vec4<f32> { return vec4<f32>(); }");
    assert!(
        fragment.contains("k.wgsl:2: there is no compute shader: entry point \"f\" is a fragment shader; a portable kernel is @compute"),
        "{fragment}"
    );
    // Unused variables may break the rules.
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
fn sizes_of_arrays_are_expressions_of_overrides() {
    let code = |keyword: &str, id: &str, height: i32, least: &str| {
        kernel(
            &format!(
                "{keyword} N: u32 = 4; {id} {keyword} M: i32 = {height}; {keyword} LEAST = {least};
                 struct S {{ a: array<vec3f, 2> }}
                 var<workgroup> a: array<f32, N * 4>; var<workgroup> b: array<f32, 4 * N>;
                 var<workgroup> c: array<array<u32, 3>, (M + 1) * 2>; var<workgroup> d: array<S, LEAST>;
                 var<workgroup> e: array<f32, 16>; var<workgroup> unused: array<f32, N - 3>;
                 @group(0) @binding(0) var<storage, read_write> y: array<f32>;
                 fn at(p: ptr<workgroup, array<f32, N>>, i: u32) -> f32 {{ return p[i]; }}
                 var<workgroup> f: array<f32, N>;"
            ),
            "let i = u32(y[0]); y[1] = a[i] + b[i] + f32(c[i][2]) + d[i].a[1].z + e[i] + at(&f, i); workgroupBarrier();
             a[i] = y[0]; b[i] = y[1]; c[i][1] = u32(y[2]); d[i].a[i] = vec3f(y[3]); e[i] = y[4]; f[i] = 1.0;",
        )
    };
    for dialect in [Dialect::Host, Dialect::OpenCl, Dialect::Cuda] {
        let [overrides, constants] = [("override", "@id(3)"), ("const", "")].map(|(keyword, id)| {
            let program = parse(&code(keyword, id, 2, "1u")).unwrap();
            program.spirv(Checks::Bounded).unwrap();
            program.c(dialect, Checks::Bounded).unwrap().text
        });
        assert_eq!(overrides, constants);
    }
    for (height, least) in [(-1, "1u"), (-7, "1u"), (2, "0u"), (i32::MAX, "1u")] {
        let error = refused(&code("override", "@id(3)", height, least));
        assert!(error.contains("k.wgsl"), "{height}: {error}");
    }
}

#[test]
fn a_vector_of_overrides_is_indexed_like_any_other() {
    // naga 30 rejects some of these when it replaces the override itself.
    for body in [
        "let v = vec2<f32>(o, 7.0); let w = vec2<f32>(0.0, v.y); y[0] = v[u32(y[1]) % 2u] + w.x;",
        "let v = clamp(vec2<f32>(o, 7.0).xy, vec2<f32>(-9.0), vec2<f32>(9.0)); let i = u32(y[1]) % 2u;
         let m = transpose(mat2x3<f32>(vec3<f32>(0.0, v.y, o), vec3<f32>(o, v[i], v[1u - i])));
         switch u32(m[i].x) { case 1u, default: {} }",
    ] {
        let code = format!(
            "@id(
               1 + (2)) override o /* = 1; */ : f32
             = 6.0; override unused: u32; var<workgroup> nothing: array<f32, unused>;
             @group(0) @binding(0) var<storage, read_write> y: array<f32>;
             @compute @workgroup_size(8) fn k() {{ {body} }}
             @compute @workgroup_size(8) fn wrong() {{ y[0] = true; }}"
        );
        let error = Program::parse(&code, "k.wgsl", &Specialisation::default()).unwrap_err();
        assert!(error.to_string().contains(&format!("k.wgsl:{}", code.lines().count())), "{error}");
        let code = code.replace("y[0] = true; }", "y[0] = o; }");
        for specialisation in [Specialisation::default(), Specialisation::default().constant("3", "-0.5")] {
            let program = Program::parse(&code, "k.wgsl", &specialisation).unwrap();
            let words = program.spirv(Checks::Bounded).unwrap();
            let value: f32 = if specialisation.constants.is_empty() { 6.0 } else { -0.5 };
            assert!(words.contains(&value.to_bits()), "{body}");
        }
    }
}

#[test]
fn an_expression_of_a_vector_of_overrides_is_written() {
    // naga 30 panics ("Expression is not cached") when it replaces the override itself.
    let code = include_str!("../shaders/override_vectors.wgsl");
    let program = Program::parse(code, "k.wgsl", &Specialisation::default()).unwrap();
    assert!(program.spirv(Checks::Bounded).unwrap().contains(&6.0_f32.to_bits()));
}

#[test]
fn a_constant_selected_from_others_is_written() {
    // As above, without an override in the expression: the value of a `let` becomes constant when any override is replaced.
    for body in [
        "let v = vec3<i32>(9, 4, 0); y[i] = select(array<i32, 2>()[i], v.z, false);",
        "let v = vec2<i32>(4, 6); let w = vec3<i32>(y[i], v.x, v.y) * y[0]; y[i] = w.x + i32(N);",
        "let v = clamp(vec2<i32>(), vec2<i32>(-60), vec2<i32>(60));
         switch y[i] { case 1: { y[i] = dot(vec3<i32>(0, 4, y[0]), vec3<i32>(v.x, 0, 0)); } default: {} }",
        "let c = true; let a = 3; let b = 4; y[i] = y[0] + select(a, b, c); y[0] = select(b, a, c);",
    ] {
        let code = format!(
            "override N: u32 = 8; @group(0) @binding(0) var<storage, read_write> y: array<i32>;
             @compute @workgroup_size(N) fn k(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        );
        let program = Program::parse(&code, "k.wgsl", &Specialisation::default()).unwrap();
        for checks in [Checks::Bounded, Checks::Unchecked] {
            program.spirv(checks).unwrap_or_else(|error| panic!("{body}: {error}"));
        }
        program.c(Dialect::Host, Checks::Bounded).unwrap();
    }
}

#[test]
fn invalid_constants_are_rejected_with_the_reason() {
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
        ("LENGTH", "-1", "constant \"LENGTH\": \"-1\" is not a value of type u32"),
        ("LENGTH", "1.5", "is not a value of type u32"),
        ("SCALE", "1e60", "is not a value of type f32"),
        ("SCALE", "nan", "is not a value of type f32"),
        ("FLAG", "1", "is not a value of type bool"),
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
    assert!(text.contains("must be positive"), "{text}");
}

#[test]
fn the_element_type_affects_interface_and_features() {
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

/// The text whose types are asked for is nested deeper than that of the kernel.
#[test]
fn nested_bit_casts_are_within_the_limits_of_the_kernel() {
    let nested = |count: usize| {
        parse(&format!(
            "enable f16; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @compute @workgroup_size(1) fn main() {{ y[0] = {}y[0]{}; }}",
            "bitcast<u32>(".repeat(count),
            ")".repeat(count)
        ))
    };
    for count in [1, 30, 60, 110] {
        nested(count).unwrap();
    }
    assert!(nested(120).unwrap_err().to_string().contains("nested too deep"));
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
fn subgroups_and_64_bit_atomics_are_detected() {
    let of = |declarations, body| parse(&kernel(declarations, body)).unwrap().features().to_vec();
    assert_eq!(of("enable f16, subgroups;", "subgroupBarrier();"), [Feature::Subgroups]);
    assert_eq!(of("enable subgroups;", "_ = subgroupAdd(1);"), [Feature::Subgroups]);
    let wide = "@group(0) @binding(0) var<storage, read_write> y: atomic<u64>;";
    assert_eq!(of(wide, "atomicAdd(&y, 1lu);"), [Feature::I64, Feature::I64Atomics]);
}

#[test]
fn hostile_nesting_is_an_error_not_an_overflow() {
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
    // As small a stack as threads usually have.
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let small = small.spawn(move || {
        nested.iter().for_each(|code| drop(parse(code).map(|program| program.spirv(Checks::Bounded))));
    });
    small.unwrap().join().unwrap();
    let mut chain = "const a0 = 1;".to_owned();
    (1..2900).for_each(|i| chain.push_str(&format!("const a{i} = a{} + 1;", i - 1)));
    parse(&kernel(&chain, "_ = a2899;")).unwrap();
}

#[test]
fn nesting_up_to_the_documented_depth_is_lowered() {
    let around = |open: &str, close: &str, count: usize, middle: &str| {
        kernel(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;",
            &format!("{}{middle}{}", open.repeat(count), close.repeat(count)),
        )
    };
    for code in [
        around("{", "}", 118, "y[0] = 1u;"),
        around("if y[0] == 1u {", "}", 118, "y[0] = 1u;"),
        around("", "", 1, &format!("y[0] = {}y[0]{};", "(".repeat(117), ")".repeat(117))),
        around("{", "}", 60, &format!("y[0] = {}1u{};", "min(1u, ".repeat(58), ")".repeat(58))),
        around("", "", 1, &format!("y[0] = {}0u{};", "y[".repeat(117), "]".repeat(117))),
        around("", "", 1, &format!("y[0] = 1u{};", " + y[1]".repeat(480))),
    ] {
        let program = parse(&code).unwrap();
        program.spirv(Checks::Bounded).unwrap();
        for dialect in [Dialect::Host, Dialect::OpenCl, Dialect::Cuda] {
            program.c(dialect, Checks::Bounded).unwrap();
        }
    }
}

#[test]
fn a_byte_order_mark_is_ignored() {
    assert_eq!(parse(&format!("\u{feff}{SAXPY}")).unwrap().interfaces().len(), 1);
    assert!(refused(&format!("\u{feff}\nx{SAXPY}")).contains("k.wgsl:2"));
}

/// Texts of a few lines whose size doubles with each line when expanded.
#[test]
fn no_text_takes_longer_than_seconds() {
    let y = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n";
    let lower = |code: &str| {
        let program = parse(code)?;
        program.spirv(Checks::Bounded)?;
        program.c(Dialect::OpenCl, Checks::Bounded)?;
        program.c(Dialect::Host, Checks::Bounded).map(|code| code.text.len())
    };
    let doubled = |one: &dyn Fn(usize) -> String| (0..24).map(one).collect::<String>();
    let structures = doubled(&|n| format!("struct S{} {{ a: S{n}, b: S{n} }}\n", n + 1));
    let constants = doubled(&|n| format!("const c{} = array(c{n}, c{n});\n", n + 1));
    let functions = doubled(&|n| format!("fn f{}() {{ f{n}(); f{n}(); }}\n", n + 1));
    for (declarations, body) in [
        (format!("{y}struct S0 {{ a: u32 }}\n{structures}"), "var s: S24; y[0] = 1u;"),
        (
            format!("{y}const c0 = array(1u, 2u);\n{constants}"),
            "y[0] = c24[0][1][0][1][0][1][0][1][0][1][0][1][0][1][0][1][0][1][0][1][0][1][0][1][0];",
        ),
        (format!("{y}var<private> p: u32; fn f0() {{ p += 1u; }}\n{functions}"), "f24(); y[0] = p;"),
        (format!("{y}fn f0() {{ workgroupBarrier(); }}\n{functions}"), "f24(); y[0] = 1u;"),
    ] {
        let error = lower(&kernel(&declarations, body)).unwrap_err();
        let kinds = [ErrorKind::CompileFailed, ErrorKind::Unsupported];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
    let returns: String =
        (0..1000).map(|n| format!("if p == {n}u {{ p = {}u; return; }}\n", n + 7)).collect();
    let text = lower(&kernel(&format!("{y}var<private> p: u32; fn f() {{ {returns} }}"), "f(); y[0] = p;"));
    assert!(text.unwrap() < 1 << 20);
    let names = "let FLT_MAX = y[0] + 1u; y[0] = FLT_MAX * FLT_MAX;";
    let blocks: String = (0..500).map(|_| format!("{{ {names} }}\n")).collect();
    assert!(lower(&kernel(y, &blocks)).is_ok());
}

#[test]
fn a_long_function_may_be_short_enough_once_its_constants_are_evaluated() {
    let tensor = "@group(0) @binding(0) var<storage, read_write> r: array<u32>;";
    let long = |operand: &str| {
        kernel(tensor, &format!("r[0] += pack4xU8({operand} + {operand} + {operand});").repeat(4_000))
    };
    parse(&long("vec4u(1u, 2u, 3u, 4u)")).unwrap();
    let error = refused(&long("vec4u(r[1], 2u, 3u, 4u)"));
    assert!(error.contains("words and symbols, more than 150000"), "{error}");
}

#[test]
fn variables_may_have_what_frexp_and_modf_return() {
    for (declarations, body) in [
        ("override O = 1.5; var<private> v = modf(O);", "y[0] = v.fract; v = modf(y[1]);"),
        (
            "override O = 1.5; var<private> v = array(modf(O), modf(2.5));",
            "v[1] = modf(y[0]); y[1] = v[1].whole;",
        ),
        ("var<private> v = frexp(vec3(1.5));", "v = frexp(vec3(y[0])); y[1] = v.fract.z + f32(v.exp.y);"),
        (
            "enable f16; const s = frexp(vec3(1.5h));",
            "var t = s; t = frexp(vec3h(1)); let e: vec3i = t.exp; y[0] = f32(e.x);",
        ),
        (
            "enable f16; override O = 1.5h; var<private> v = frexp(O);",
            "v = frexp(f16(y[0])); let e: i32 = v.exp; y[1] = f32(v.fract) + f32(e);",
        ),
    ] {
        let y = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;";
        let program = parse(&kernel(&format!("{declarations} {y}"), body)).expect(declarations);
        program.c(Dialect::Host, Checks::Bounded).expect(declarations);
        program.spirv(Checks::Bounded).expect(declarations);
    }
}

#[test]
fn frexp_and_bit_casts_take_overrides_of_f16() {
    let cast = |inner: String, _| format!("bitcast<vec4h>(bitcast<vec2u>({inner}))");
    let deep = (0..40).fold("vec4(O)".to_owned(), cast);
    let y = "enable f16; override O: f16; override P = 2h * O; @group(0) @binding(0) var<storage, read_write> y: array<f32>;";
    for (declarations, size) in [
        ("override E: i32 = frexp(O).exp;", 3),
        ("override E = frexp(frexp(vec2(O, P)).fract.y).exp + 1;", 1),
        ("override E = frexp(P).exp; override F = frexp(ldexp(mix(O, P, 0.5h), E)).fract;", 4),
        ("alias H = f16; override E = frexp(\n// Two lines.\nvec2<H>(O, P)).exp.y;", 4),
        ("var<private> v = frexp(vec3(O, P, 1h)); override E = 2;", 2),
        ("var<private> v = array(frexp(O), frexp(P)); override E = 1 + i32(8 * frexp(O).fract);", 7),
        ("override E = extractBits(bitcast<u32>(vec2(O, P)), 24, 8) - 70;", 4),
        ("override U = 0x4a004600u; override E = u32(bitcast<vec2h>(U).y - bitcast<vec2<f16>>(U).x);", 6),
        ("override E = bitcast<vec2u>(vec4(O, P, P, O)).y >> 28;", 4),
        ("override E = u32(bitcast<vec4h>(bitcast<vec2i>(vec4(O, P, 1h, 2h))).w);", 2),
        ("override E = u32(bitcast<vec2h>(bitcast<f32>(vec2(frexp(P).fract, 3h))).y);", 3),
        (&format!("override E = u32({deep}.x);"), 6),
    ] {
        let body = "@compute @workgroup_size(E) fn k() { y[0] = f32(E) + f32(frexp(P).fract); }";
        let code = format!("{y}\n{declarations}\n{body}");
        let specialisation = Specialisation::default().constant("O", "6.0");
        let program = Program::parse(&code, "k.wgsl", &specialisation).expect(declarations);
        assert_eq!(program.interfaces()[0].group_size, [size, 1, 1], "{declarations}");
        program.c(Dialect::Host, Checks::Bounded).expect(declarations);
        Program::signature(&code, "k.wgsl", &Specialisation::default(), "k").expect(declarations);
    }
    for wrong in
        ["override E: u32 = frexp(O).exp;", "fn frexp(a: f16) -> f16 { return a; } override E = frexp(O);"]
    {
        let body = "@compute @workgroup_size(E) fn k() {}";
        let specialisation = Specialisation::default().constant("O", "6.0");
        Program::parse(&format!("{y} {wrong} {body}"), "", &specialisation).expect_err(wrong);
    }
}

#[test]
fn a_constant_fma_is_a_product_and_a_sum() {
    let y = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;";
    for body in ["const a = fma(1e308, 2.0, -1e308);", "y[0] = fma(vec2(3e38f), vec2(2f), vec2(-3e38f)).x;"] {
        let error = refused(&kernel(y, body));
        assert!(
            error.contains("k.wgsl:2: `fma(") && error.contains("the product is out of range"),
            "{error}"
        );
    }
    let error = refused(&kernel(y, "y[0] = determinant(mat2x2f(3e30, 3e30, 3e30, 3e30));"));
    assert!(error.contains("k.wgsl:2: `determinant`") && error.contains("this has no value"), "{error}");
    for call in ["fma(3e38f, 2.0, y[1])", "fma(3e38f, 1.0, 1e30)"] {
        parse(&kernel(y, &format!("let fma_ = 1.0; y[0] = {call} + fma_;"))).expect(call);
    }
}

/// Constants that naga has a value for, or skips.
#[test]
fn constants_without_a_value_are_refused() {
    let y = "enable f16; @group(0) @binding(0) var<storage, read_write> y: array<f32>;";
    const SIDE: &str = "although this side is not evaluated, it must be a constant of type `bool`";
    for (body, place, expected) in [
        ("const a = true || foo(1);", "foo(1)", SIDE),
        ("const b = false; const a = b && i32(0);", "i32(0)", SIDE),
        ("const a = select(1, 2, true || vec2(true));", "vec2(true)", SIDE),
        ("const_assert true || 1;", "1", SIDE),
        ("const a = inverseSqrt(vec2(1.0, -1.0));", "inverseSqrt(vec2(1.0, -1.0))", "must be above 0"),
        ("const a = inverseSqrt(0);", "inverseSqrt(0)", "must be above 0"),
        ("const a = cross(vec3(1e300), vec3(1e300));", "cross(", "the product is out of range"),
        ("let a = 65519.0h;", "65519.0h", "no number of `f16`"),
        ("let a: f16 = -65505;", "-65505", "no number of `f16`"),
        ("const b = 65519.0f; let a = f16(b);", "f16(b)", "no number of `f16`"),
        ("let a = vec2<f16>(vec2f(1, -65519));", "vec2<f16>(vec2f(1, -65519))", "no number of `f16`"),
        ("y[0] = f32(bitcast<u32>(4294967296));", "bitcast<u32>(4294967296)", "beyond `i32` and `u32`"),
        ("y[0] = f32(bitcast<vec2i>(vec2(1, 1 << 40u)).y);", "bitcast", "beyond `i32` and `u32`"),
    ] {
        let error = refused(&kernel(y, body));
        assert!(
            error.contains(&format!("k.wgsl:2: `{place}")) && error.contains(expected),
            "{body}: {error}"
        );
    }
    for body in [
        "const a = true || 1 / 0 == 1;",
        "const a = false && vec2(true).x; const c = inverseSqrt(4.0);",
        "let a = true || y[0] == 1;",
        "const a = true /* || */; let b = a || y[0] == 1; if a || y[0] == 1 { }",
        "let a = 65504h; let b = f16(65504f); let c: f16 = -65504.0;",
        "y[0] = f32(bitcast<u32>(4294967295) + bitcast<u32>(1e20f));",
        "let b = inverseSqrt(y[0]); const c = cross(vec3(1e100), vec3(1, 2, 3));",
    ] {
        parse(&kernel(y, body)).expect(body);
    }
}
