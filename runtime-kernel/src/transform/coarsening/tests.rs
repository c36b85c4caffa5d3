use crate::{Checks, Dialect, Program, Specialisation};

const BUFFERS: &str = "
    @group(0) @binding(0) var<storage, read> x: array<T>;
    @group(0) @binding(1) var<storage, read_write> y: array<T>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u)";

fn coarsened(declarations: &str, element: &str, body: &str) -> Program {
    let text = format!("{declarations} alias T = {element}; {BUFFERS} {{ {body} }}");
    let program = Program::parse(&text, "", &Specialisation::default()).unwrap();
    program.coarsened(None).unwrap()
}

fn items(declarations: &str, element: &str, body: &str) -> u32 {
    coarsened(declarations, element, body).interfaces()[0].items_per_thread
}

const GUARDED: &str = "let i = id.x; if i >= arrayLength(&x) { return; } y[i] = x[i] + x[i];";

#[test]
fn the_number_of_items_follows_the_size_of_the_elements() {
    for (element, right) in
        [("f32", 4), ("u32", 4), ("vec2<f32>", 2), ("vec4<f32>", 1), ("f64", 2), ("mat4x4<f32>", 1)]
    {
        assert_eq!(items("", element, GUARDED), right, "{element}");
    }
    assert_eq!(items("enable f16;", "f16", GUARDED), 4);
}

#[test]
fn only_element_wise_kernels_are_coarsened() {
    let f32 = |declarations, body| items(declarations, "f32", body);
    assert_eq!(f32("", "if id.x < arrayLength(&x) { if id.y < 3u { y[id.x] = x[id.x]; } }"), 4);
    assert_eq!(f32("fn f(v: f32) -> f32 { return v * 2.0; }", "y[id.x] = f(x[id.x]);"), 4, "inlined");
    let short = "var t = 0.0; for (var k = 0u; k < 3u; k++) { t += x[id.x + k]; } y[id.x] = t;";
    assert_eq!(f32("", short), 4, "unrolled");
    let long = "var t = 0.0; for (var k = 0u; k < id.y; k++) { t += x[id.x + k]; } y[id.x] = t;";
    assert_eq!(f32("", long), 1, "a loop");
    assert_eq!(f32("", "y[id.x] = x[id.x]; workgroupBarrier();"), 1, "a barrier");
    assert_eq!(f32("var<workgroup> w: f32;", "y[id.x] = w + x[id.x];"), 1, "shared memory");
    let atomic = "@group(0) @binding(2) var<storage, read_write> n: atomic<u32>;";
    assert_eq!(f32(atomic, "y[id.x] = x[id.x]; atomicAdd(&n, 1u);"), 1, "an atomic operation");
    assert_eq!(f32(atomic, "y[id.x] = x[id.x] + f32(atomicLoad(&n));"), 1, "an atomic load");
    assert_eq!(f32("", "y[id.x] = f32(arrayLength(&x));"), 1, "no loads");
    let sum = (0..10).map(|k| format!("x[id.x + {k}u]")).collect::<Vec<_>>().join(" + ");
    assert_eq!(items("", "f32", &format!("y[id.x] = {sum};")), 2, "ten loads");
    let wide = format!(
        "var<immediate> s: S; struct S {{ {} }}",
        (0..32).map(|k| format!("a{k}: f32, ")).collect::<String>()
    );
    assert_eq!(items(&wide, "f32", "y[id.x] = x[id.x] + s.a31;"), 1, "no room for the scalar");
}

#[test]
fn the_scalar_follows_those_of_the_kernel() {
    let program = coarsened(
        "struct S { n: u32, f: f32 } var<immediate> s: S;",
        "f32",
        "if id.x < s.n { y[id.x] = x[id.x] * s.f; }",
    );
    let interface = &program.interfaces()[0];
    let offsets: Vec<_> = interface.scalars.iter().map(|scalar| scalar.offset_bytes).collect();
    assert_eq!((interface.scalar_arguments().len(), offsets), (2, vec![0, 4, 8]));
}

#[test]
fn only_the_scalars_of_the_launch_are_immediates() {
    for body in ["y[id.x] = x[id.x];", "if id.x < s.n { y[id.x] = x[id.x]; }"] {
        let program = coarsened("struct S { n: u32 } var<immediate> s: S;", "f32", body);
        let spaces = program.module.global_variables.iter().map(|(_, variable)| variable.space);
        assert_eq!(spaces.filter(|space| *space == naga::AddressSpace::Immediate).count(), 1, "{body}");
    }
}

#[test]
fn the_loads_of_all_items_come_before_their_stores() {
    let program = coarsened("", "f32", "let i = id.x; if i < arrayLength(&x) { y[i] = x[i] * 3.0; }");
    for dialect in [Dialect::Cuda, Dialect::OpenCl] {
        let text = program.c(dialect, Checks::Bounded).unwrap().text;
        let body = text.split_once("/ 4").map_or(&*text, |(_, body)| body);
        let (together, _) = body.split_once("return;\n").unwrap();
        let store = together.find("] = ").unwrap();
        let (loads, stores) = together.split_at(store);
        assert_eq!(loads.matches(" x[").count(), 3, "{text}");
        assert_eq!(stores.matches("] = ").count(), 4, "{text}");
    }
}

#[test]
fn a_launch_precondition_covers_the_accesses_of_all_items() {
    for body in [
        "let i = id.x; if i >= s.n { return; } y[i] = x[i];",
        "let i = id.x; if i < s.n { y[i] = x[i]; }",
        "y[id.x] = x[id.x] * f32(s.n);",
    ] {
        let program = coarsened("struct S { n: u32 } var<immediate> s: S;", "f32", body);
        let text = program.c(Dialect::Cuda, Checks::Bounded).unwrap().text;
        let checks = text.matches(" < x_length").count() + text.matches(" < y_length").count();
        assert_eq!(text.matches("in_range || ").count(), checks, "{text}");
    }
}
