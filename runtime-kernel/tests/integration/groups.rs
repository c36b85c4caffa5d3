//! Work-groups on the host: values that live across barriers, uniform control flow, rows with facts decided at once.

use runtime_core::{Arg, Geometry, ModuleSource, Runtime};

const ITEMS: u32 = 192;
const N: u32 = 150;
const K: u32 = 3;

const DECLARATIONS: &str = "
struct Scalars { n: u32, k: u32 }
var<immediate> s: Scalars;
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
var<workgroup> memory: array<u32, 64>;
var<workgroup> cell: u32;
var<private> mine: u32 = 4u;
fn turn(l: u32, x: u32) -> u32 {
    memory[l] = x;
    workgroupBarrier();
    if (x == 9u) { return 1000u; }
    return memory[(l + 1u) % 64u];
}
fn bump(p: ptr<function, u32>, by: u32) { for (var i = 0u; i < by; i++) { *p += 1u; } }
fn add_mine(x: u32) -> u32 { mine += x; return mine; }
";

/// A kernel for groups of 64, and the expected value of `b[i]`, which is `i` initially; `a[i]` is `7 * i + 3`.
struct Case {
    name: &'static str,
    size: [u32; 3],
    body: &'static str,
    expected: fn(u32) -> u32,
}

fn a(i: u32) -> u32 {
    if i < 300 { 7 * i + 3 } else { 0 }
}

const fn case(name: &'static str, body: &'static str, expected: fn(u32) -> u32) -> Case {
    Case { name, size: [64, 1, 1], body, expected }
}

const CASES: [Case; 23] = [
    case(
        "some_return_before_a_loop",
        "if g.x >= s.n { return; } var sum = 0u; for (var j = 0u; j < s.k; j++) { sum += a[g.x + j]; } b[g.x] = sum;",
        |i| if i < N { (0..K).map(|j| a(i + j)).sum() } else { i },
    ),
    case(
        "some_return_in_a_loop",
        "for (var j = 0u; j < s.k * 9u; j++) { if j > g.x { return; } b[g.x] += j; } b[g.x] += 500u;",
        |i| i + (0..K * 9).filter(|j| *j <= i).sum::<u32>() + if i < K * 9 - 1 { 0 } else { 500 },
    ),
    // Not among the portable programs, since PoCL 3.1 runs the wrong side of such a switch.
    case(
        "return_after_some_left_a_switch",
        "switch s.k { case 3u: { workgroupBarrier(); b[g.x] = 7u; if l.x < 3u { break; } return; } default: {} }
         b[g.x] += 1u;",
        |i| if i % 64 < 3 { 8 } else { 7 },
    ),
    case("an_interval", "if l.x >= 5u && l.x < 40u { b[g.x] = 1u; }", |i| {
        if (5..40).contains(&(i % 64)) { 1 } else { i }
    }),
    case("an_invocation", "if l.x == s.k { b[g.x] = 1u; }", |i| if i % 64 == K { 1 } else { i }),
    case("an_empty_interval", "if l.x > 70u { b[g.x] = 1u; }", |i| i),
    case("an_index_that_wraps", "b[g.x] = a[g.x + 4294967290u];", |i| if i < 6 { 0 } else { a(i - 6) }),
    case("a_condition_that_wraps", "if g.x + 4294967290u < 10u { b[g.x] = 9u; }", |i| {
        if (6..16).contains(&i) { 9 } else { i }
    }),
    case("an_index_that_falls", "b[g.x] = a[s.n - 1u - g.x];", |i| if i < N { a(N - 1 - i) } else { 0 }),
    case("a_signed_index", "let i = i32(g.x) - 8; if i >= 0 && i < i32(s.n) { b[g.x] = a[i]; }", |i| {
        if (8..N + 8).contains(&i) { a(i - 8) } else { i }
    }),
    case("a_signed_index_below_zero", "b[g.x] = a[i32(g.x) - 70];", |i| if i < 70 { 0 } else { a(i - 70) }),
    case("a_stride", "b[g.x] = a[g.x * 3u];", |i| a(i * 3)),
    case("a_write_out_of_range", "b[g.x * 2u] = 5u; workgroupBarrier();", |i| if i % 2 == 0 { 5 } else { i }),
    case(
        "kept_across_a_barrier",
        "let e = a[g.x]; var v = e * 2u; memory[l.x] = v; workgroupBarrier(); v += memory[63u - l.x]; b[g.x] = v + e;",
        |i| a(i) * 3 + 2 * a(i / 64 * 64 + 63 - i % 64),
    ),
    case("a_function_with_a_barrier", "let t = turn(l.x, l.x); workgroupBarrier(); b[g.x] = t;", |i| {
        if i % 64 == 9 { 1000 } else { (i % 64 + 1) % 64 }
    }),
    case(
        "what_all_agree_on",
        "var m = l.x; m = s.k; workgroupBarrier(); if m == 3u { workgroupBarrier(); b[g.x] = 5u; }",
        |_| 5,
    ),
    case(
        "some_skip_the_rest",
        "for (var j = 0u; j < s.k; j++) { workgroupBarrier(); for (var o = 0u; o < 1u; o++) { if l.x == j { continue; } b[g.x] += 10u; } }",
        |i| i + 10 * (K - u32::from(i % 64 < K)),
    ),
    case(
        "a_switch_of_the_group",
        "switch (w.x) { case 1u: { workgroupBarrier(); b[g.x] = 7u; if l.x < 3u { break; } b[g.x] = 8u; }
         case 2u: { workgroupBarrier(); return; } default: { b[g.x] = 6u; } } workgroupBarrier(); b[g.x] += 1u;",
        |i| match (i / 64, i % 64) {
            (1, 0..3) => 8,
            (1, _) => 9,
            (2, _) => i,
            _ => 7,
        },
    ),
    case(
        "a_tree",
        "memory[l.x] = a[g.x]; workgroupBarrier();
         for (var h = 32u; h > 0u; h >>= 1u) { if l.x < h { memory[l.x] += memory[l.x + h]; } workgroupBarrier(); }
         b[g.x] = memory[0];",
        |i| (0..64).map(|j| a(i / 64 * 64 + j)).sum(),
    ),
    case(
        "a_loop_that_memory_ends",
        "if l.x == 0u { cell = w.x + 2u; } var n = 0u;
         for (var j = 0u; j < workgroupUniformLoad(&cell); j++) { n += j; workgroupBarrier(); } b[g.x] = n;",
        |i| (0..i / 64 + 2).sum(),
    ),
    case(
        "private_memory",
        "var own: array<u32, 5>; for (var j = 0u; j < 5u; j++) { own[j] = g.x * j; } workgroupBarrier();
         own[l.x % 5u] += 1u; var t = 1u; bump(&t, l.x); b[g.x] = own[(l.x + s.k) % 5u] + add_mine(t) + own[l.x % 5u];",
        |i| i * ((i % 64 + K) % 5) + 4 + 1 + i % 64 + i * (i % 64 % 5) + 1,
    ),
    Case {
        name: "three_dimensions",
        size: [8, 4, 2],
        body: "memory[x] = g.x + 100u * g.y + 1000u * g.z; workgroupBarrier();
               if l.y < 2u { b[w.x * 64u + x] = memory[63u - x]; } else if l.x < 4u { b[w.x * 64u + x] = l.z; }",
        expected: |i| {
            let (group, x) = (i / 64, i % 64);
            let other = 63 - x;
            match (x / 8 % 4, x % 8) {
                (0..2, _) => group * 8 + other % 8 + 100 * (other / 8 % 4) + 1000 * (other / 32),
                (_, 0..4) => x / 32,
                _ => i,
            }
        },
    },
    Case {
        name: "loops_in_rows",
        size: [16, 4, 1],
        body: "var sum = x; var last = 0u; for (var j = 0u; j < s.k * 8u; j++) { sum += a[j] * l.y + a[l.x + j]; last = j; }
               b[w.x * 64u + x] = sum + last;",
        expected: |i| {
            let x = i % 64;
            x + (0..K * 8).map(|j| a(j) * (x / 16) + a(x % 16 + j)).sum::<u32>() + K * 8 - 1
        },
    },
];

fn text(cases: &[Case]) -> String {
    let mut text = DECLARATIONS.to_owned();
    for Case { name, size: [x, y, z], body, .. } in cases {
        text.push_str(&format!(
            "@compute @workgroup_size({x}, {y}, {z}) fn {name}(@builtin(global_invocation_id) g: vec3u,
             @builtin(local_invocation_id) l: vec3u, @builtin(workgroup_id) w: vec3u,
             @builtin(local_invocation_index) x: u32) {{ _ = a[0]; _ = s.n; {body} }}\n"
        ));
    }
    text
}

#[test]
fn every_invocation_has_the_result_of_running_alone() {
    let runtime = Runtime::builder()
        .with_lowering(runtime_kernel::wgsl())
        .discover(false)
        .register(runtime_host::backend());
    let device = runtime.build().open("host").expect("the host");
    let module = device.load(&ModuleSource::wgsl(&text(&CASES))).expect("all cases in one module");
    let values: Vec<u32> = (0..300).map(a).collect();
    let input = device.tensor([300], &values).expect("a");
    let queue = device.queue().expect("a queue");
    for case in &CASES {
        let before: Vec<u32> = (0..ITEMS).collect();
        let output = device.tensor([before.len()], &before).expect("b");
        let kernel = module.kernel(case.name).expect(case.name);
        let arguments = [Arg::read(&input), Arg::read_write(&output), Arg::scalar(N), Arg::scalar(K)];
        queue.call(&kernel, Geometry::new([ITEMS / 64, 1, 1], case.size), &arguments).expect(case.name);
        let expected: Vec<u32> = before.into_iter().map(case.expected).collect();
        assert_eq!(output.to_vec::<u32>().expect("b"), expected, "{}", case.name);
    }
}

/// 400 KB of work-group memory, which is on the stack of the thread that runs the group.
const LARGE: &str = "
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> w: array<u32, 100000>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    w[(id.x * 777u) % 100000u] = id.x;
    workgroupBarrier();
    y[id.x] = w[(id.x * 777u) % 100000u];
}";

fn host() -> std::sync::Arc<dyn runtime_core::CommonRuntime> {
    let runtime = Runtime::builder()
        .with_lowering(runtime_kernel::wgsl())
        .discover(false)
        .register(runtime_host::backend());
    runtime.build().open("host").expect("the host")
}

/// With a range, the host would run all work-groups once per piece of the range, on several threads.
#[test]
fn portable_code_rejects_a_host_range() {
    let device = host();
    let kernel = device.load(&ModuleSource::wgsl(LARGE)).expect("a module").kernel("main").expect("main");
    let y = device.tensor([64], &[0_u32; 64]).expect("y");
    let queue = device.queue().expect("a queue");
    for error in [
        queue.launch(&kernel, 0..8, &[Arg::write(&y)]).err(),
        queue.call(&kernel, 0..8, &[Arg::write(&y)]).err(),
    ] {
        let error = error.expect("a range is refused");
        assert_eq!(error.kind(), runtime_core::ErrorKind::InvalidArgument);
        assert!(error.message().contains("takes no range"), "{error}");
    }
    assert_eq!(queue.submitted(), 0);
}

#[test]
fn a_kernel_with_much_memory_runs_from_a_thread_with_a_small_stack() {
    let device = host();
    let kernel = device.load(&ModuleSource::wgsl(LARGE)).expect("a module").kernel("main").expect("main");
    let queue = device.queue().expect("a queue");
    let output = device.tensor([64], &[0_u32; 64]).expect("y");
    let calls = || {
        for _ in 0..3 {
            queue.call(&kernel, Geometry::new(1, 64), &[Arg::write(&output)]).expect("a call");
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, calls);
        thread.expect("a thread").join().expect("its calls");
    });
    calls();
    assert_eq!(output.to_vec::<u32>().expect("y"), (0..64).collect::<Vec<_>>());
}

/// 1 MiB of variables and values that live across barriers, in groups some of which return early.
const MUCH_ACROSS_BARRIERS: &str = "
struct Part { v: vec3u, is: bool, m: mat2x3f }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> w: array<u32, 256>;
@compute @workgroup_size(32, 8) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {
    var t: array<u32, 1000>;
    var part = Part(vec3u(i, 2u, 3u), i % 2u == 0u, mat2x3f());
    let place = vec3u(g.x, i, 0u);
    for (var k = 0u; k < 1000u; k++) { t[k] = k * i; }
    w[i] = t[999];
    workgroupBarrier();
    let next = w[(i + 1u) % 256u];
    if g.x % 7u == 5u { return; }
    part.v.x += next;
    part.m[1] = vec3f(part.v);
    workgroupBarrier();
    w[i] = part.v.x + t[(next / 999u) % 1000u];
    t[i] += 1u;
    workgroupBarrier();
    y[place.x * 256u + place.y] = w[i] + u32(part.m[1].z) + select(0u, 1000000u, part.is) + t[i] - i * i;
}";

#[test]
fn what_lives_across_barriers_may_be_on_the_heap() {
    let device = host();
    let kernel = device.load(&ModuleSource::wgsl(MUCH_ACROSS_BARRIERS)).expect("a module").kernel("main");
    let kernel = kernel.expect("main");
    let groups = 70_u32;
    let of_item = |(group, i): (u32, u32)| {
        let next = (i + 1) % 256;
        let even = if i % 2 == 0 { 1_000_000 } else { 0 };
        if group % 7 == 5 { 7 } else { i + 999 * next + next * i + 3 + even + 1 }
    };
    let items = (0..groups).flat_map(|group| (0..256).map(move |i| (group, i)));
    let expected: Vec<u32> = items.map(of_item).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let queue = device.queue().expect("a queue");
                let output = device.tensor([expected.len()], &vec![7_u32; expected.len()]).expect("y");
                for _ in 0..3 {
                    queue
                        .call(&kernel, Geometry::new([groups, 1, 1], [32, 8, 1]), &[Arg::read_write(&output)])
                        .expect("a call");
                }
                assert_eq!(output.to_vec::<u32>().expect("y"), expected);
            });
        }
    });
}

#[test]
fn more_than_the_heap_may_hold_is_rejected() {
    let code = MUCH_ACROSS_BARRIERS.replace("1000>", "100000>").replace("32, 8", "64, 8");
    let error = host().load(&ModuleSource::wgsl(&code)).expect_err("200 MB");
    assert_eq!(error.kind(), runtime_core::ErrorKind::OutOfResources, "{error}");
    assert!(
        error.to_string().contains("values that live across barriers, but the host has 67108864"),
        "{error}"
    );
}

#[test]
fn a_kernel_too_large_for_any_stack_is_rejected() {
    let device = host();
    let entry = |body: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
             struct Large {{ at: array<u32, 200000> }}
             @group(0) @binding(1) var<storage, read_write> z: array<Large>;
             fn sum(k: u32) -> u32 {{
                 var t: array<u32, 200000>; for (var i = k; i < 200000u; i++) {{ t[i] = i; if t[k] == i {{ return t[k]; }} }}
                 return t[k % 200000u];
             }}
             @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {{ _ = y[0]; {body} }}"
        )
    };
    for body in [
        "var t: array<u32, 200000>; t[id.x] = 5u; y[id.x] = t[y[id.x] % 200000u];",
        "var t: array<array<u32, 500>, 400>; t[id.x][id.x] = 5u; y[id.x] = t[y[id.x] % 400u][1];",
        "var t: array<u32, 140000>; t[id.x] = 5u; workgroupBarrier(); y[id.x] = t[y[id.x] % 140000u];",
        "y[id.x] = sum(id.x);",
        "z[id.x] = z[id.x + 1u];",
    ] {
        let error = device.load(&ModuleSource::wgsl(&entry(body))).expect_err(body);
        assert_eq!(error.kind(), runtime_core::ErrorKind::OutOfResources, "{error}");
        assert!(error.to_string().contains("bytes of stack"), "{error}");
    }
}
