//! Lists of launches that leave the same bits when they are fused, on any device.

use runtime_core::DType;
use runtime_core::lowering::FusionArg::{self, Tensor};
use runtime_core::lowering::Promotion;

use super::lists::{self, Case, Launch, number};
use super::support::Device;

/// Checks a list on a device.
pub(crate) type Check = fn(&Device);

/// The cases, with their names.
pub(crate) const CASES: &[(&str, Check)] = &[
    ("a_chain_with_different_guards", a_chain_with_different_guards),
    ("temporaries_are_kept_in_registers", temporaries_are_kept_in_registers),
    ("groups_wait_for_each_other", groups_wait_for_each_other),
    (
        "private_and_group_variables_start_anew_in_each_launch",
        private_and_group_variables_start_anew_in_each_launch,
    ),
    ("ranges_that_differ_are_guarded", ranges_that_differ_are_guarded),
    ("group_sizes_that_do_not_matter_differ", group_sizes_that_do_not_matter_differ),
    ("two_dimensions_and_vectors", two_dimensions_and_vectors),
    ("structures_and_helpers_with_pointers", structures_and_helpers_with_pointers),
    ("a_diamond_and_an_aliased_argument", a_diamond_and_an_aliased_argument),
    ("scalars_and_elements_of_other_widths", scalars_and_elements_of_other_widths),
];

pub(crate) const N: u32 = 1000;

/// A kernel that reads `x` and writes `y`, in groups of 64.
pub(crate) fn kernel(declarations: &str, body: &str) -> String {
    format!(
        "struct Scalars {{ n: u32, w: u32 }}
         var<immediate> s: Scalars;
         var<workgroup> tile: array<u32, 64>;
         {declarations}
         @group(0) @binding(0) var<storage, read> x: array<u32>;
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;
         @compute @workgroup_size(64) fn main(
             @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u,
             @builtin(workgroup_id) g: vec3u, @builtin(num_workgroups) groups: vec3u) {{
             let i = id.x; {body} _ = s.n;
         }}"
    )
}

/// A launch of 16 groups that reads tensors `x` and `z` and writes `y`.
pub(crate) fn launch_of_two(body: &str, x: usize, y: usize, z: usize) -> Launch {
    let code = kernel("@group(0) @binding(2) var<storage, read> z: array<u32>;", body);
    launch(code, [16, 1, 1], &[Tensor(x), Tensor(y), Tensor(z), number(N), number(20)])
}

pub(crate) fn launch(code: String, groups: [u32; 3], args: &[FusionArg]) -> Launch {
    Launch { code, entry: "main".to_owned(), groups, args: args.to_vec() }
}

/// A chain of kernels: each reads what the one before it wrote.
pub(crate) fn chain(bodies: &[&str]) -> Case {
    let launches = bodies.iter().enumerate().map(|(index, body)| {
        let args = [Tensor(index), Tensor(index + 1), number(N), number(20)];
        launch(kernel("", body), [16, 1, 1], &args)
    });
    Case { launches: launches.collect(), tensors: lists::tensors(bodies.len() + 1, N), ..Case::default() }
}

fn a_chain_with_different_guards(device: &Device) {
    let mut case = chain(&[
        "if i < s.n { y[i] = x[i] * 3u; }",
        "if i >= s.n { return; } if (x[i] & 1u) == 0u { y[i] = x[i] / 2u; return; } y[i] = x[i] + 5u;",
        "y[i] = x[i] ^ (x[i] >> 3u);",
        "for (var k = 0u; k < s.w; k++) { if i >= s.n { return; } y[i] += x[i] * k; }",
    ]);
    case.check_fused(device);
    case.constants = true;
    case.check_fused(device);
}

fn temporaries_are_kept_in_registers(device: &Device) {
    let mut case = chain(&[
        "if i < s.n { y[i] = x[i] * 3u; y[i] += 1u; }",
        "if i < s.n { y[i] = x[i] - 7u; }",
        "if i < s.n { y[i] = x[i] ^ 0x55u; }",
    ]);
    case.temporary = vec![1, 2];
    let plan = case.check_fused(device);
    let code = plan.kernels[0].code.as_ref().expect("fused code");
    assert_eq!(code.promoted, [(1, Promotion::Private), (2, Promotion::Private)]);
    // Without guards, items beyond the end read zero.
    let mut case = chain(&["y[i] = x[i] + 1u;", "y[i] = x[i] + 1u;", "if i < 990u { y[i] = x[i] * 3u; }"]);
    case.temporary = vec![1];
    let code = case.check_fused(device).kernels[0].code.clone().expect("fused code");
    assert_eq!(code.promoted, [(1, Promotion::Private)]);
    case.tensors[1].truncate(500);
    let code = case.check_fused(device).kernels[0].code.clone().expect("fused code");
    assert_eq!(code.promoted, [(1, Promotion::Private)]);
}

fn groups_wait_for_each_other(device: &Device) {
    let sum = "tile[l.x] = x[i]; workgroupBarrier();
               for (var step = 32u; step > 0u; step /= 2u) {
                   if l.x < step { tile[l.x] += tile[l.x + step]; }
                   workgroupBarrier();
               }
               if l.x == 0u { y[g.x] = tile[0]; }";
    let reversed = "y[g.x * 64u + 63u - l.x] = x[i];";
    let spread = "y[i] = x[g.x] + l.x;";
    for (bodies, barriers) in
        [(vec![sum, spread], 1), (vec![reversed, sum, spread], 2), (vec![spread, sum], 0)]
    {
        // The first result of a group is not read by another.
        let first = ["y[i] = x[i] + 1u;"];
        let all = if bodies[0] == spread { bodies.clone() } else { [&first[..], &bodies].concat() };
        let plan = chain(&all).check(device);
        let fused = plan.kernels.iter().find_map(|kernel| kernel.code.as_ref());
        if all[0] != spread {
            assert_eq!(plan.kernels.len(), 1, "{:#?}", plan.seams);
            assert_eq!(fused.expect("fused code").barriers, barriers);
        }
    }
}

fn private_and_group_variables_start_anew_in_each_launch(device: &Device) {
    let declarations = "var<private> mine: u32 = 4u; fn next() -> u32 { mine += 1u; return mine; }";
    let body = "tile[l.x] += x[i] + next(); workgroupBarrier(); y[i] = tile[l.x] + next() + s.w;";
    let mut case = chain(&["", "", ""]);
    for launch in &mut case.launches {
        launch.code = kernel(declarations, body);
    }
    case.check_fused(device);
}

fn ranges_that_differ_are_guarded(device: &Device) {
    let bodies = ["y[i] = x[i] + groups.x;", "y[i] = x[i] * 2u + groups.x;", "y[i] = x[i] ^ g.x;"];
    for groups in [[16, 5, 9], [3, 16, 2], [1, 1, 16], [7, 7, 3]] {
        let mut case = chain(&bodies);
        for (launch, groups) in case.launches.iter_mut().zip(groups) {
            launch.groups = [groups, 1, 1];
        }
        case.check_fused(device);
    }
}

fn group_sizes_that_do_not_matter_differ(device: &Device) {
    let free = "y[id.x] = x[id.x] * 5u + 1u;";
    let code = |size: u32| {
        let text = kernel("", free).replace("workgroup_size(64)", &format!("workgroup_size({size})"));
        text.replace(", @builtin(local_invocation_id) l: vec3u,", "")
            .replace("@builtin(workgroup_id) g: vec3u, @builtin(num_workgroups) groups: vec3u", "")
    };
    for (size, groups) in [(32, 20), (128, 8), (16, 64), (64, 3)] {
        let mut case = chain(&[free, "tile[l.x] = x[i]; workgroupBarrier(); y[i] = tile[63u - l.x];", free]);
        case.launches[0].code = code(size);
        case.launches[0].groups = [groups, 1, 1];
        case.check_fused(device);
    }
}

fn two_dimensions_and_vectors(device: &Device) {
    let grid = "let j = id.y * s.w + id.x; if id.x < s.w && j < s.n { y[j] = x[j] + id.y; }";
    let mut case = chain(&[grid, grid, grid]);
    for launch in &mut case.launches {
        launch.groups = [1, 50, 1];
    }
    let plan = case.check_fused(device);
    assert_eq!(plan.relies_on, [(0, 3), (1, 3), (2, 3)]);
    let mut case =
        chain(&["y[i] = x[i] * 2u;", "y[i] = x[i].wzyx + x[i].x;", "y[i] = x[i] + vec4u(x[i].y);"]);
    for launch in &mut case.launches {
        launch.code = launch
            .code
            .replace("x: array<u32>", "x: array<vec4u>")
            .replace("y: array<u32>", "y: array<vec4u>");
    }
    case.check_fused(device);
    case.temporary = vec![1, 2];
    case.check_fused(device);
}

fn structures_and_helpers_with_pointers(device: &Device) {
    let declarations = "struct Pair { a: u32, b: array<u32, 3> }
        fn bump(p: ptr<function, Pair>, by: u32) { for (var k = 0u; k < 3u; k++) { (*p).b[k] += by + k; } (*p).a ^= by; }
        const STEP = 3u; const TABLE = array(1u, 5u, 9u);";
    let body = "var pair = x[i]; bump(&pair, STEP + TABLE[i % 3u]); y[i] = pair;";
    let mut case = chain(&["", "", ""]);
    for launch in &mut case.launches {
        let text = kernel(declarations, body);
        launch.code =
            text.replace("x: array<u32>", "x: array<Pair>").replace("y: array<u32>", "y: array<Pair>");
    }
    case.check_fused(device);
}

fn a_diamond_and_an_aliased_argument(device: &Device) {
    let mut case = Case {
        launches: vec![
            launch_of_two("y[i] = x[i] + z[i];", 0, 1, 0),
            launch_of_two("y[i] = x[i] * z[i];", 1, 2, 0),
            launch_of_two("y[i] = x[i] - z[i];", 1, 3, 0),
            launch_of_two("y[i] = x[i] ^ (z[i] << 1u);", 2, 4, 3),
        ],
        tensors: lists::tensors(5, N),
        ..Case::default()
    };
    case.check_fused(device);
    case.temporary = vec![1, 2, 3];
    let plan = case.check_fused(device);
    assert_eq!(plan.kernels[0].code.as_ref().expect("fused code").promoted.len(), 3);
}

fn scalars_and_elements_of_other_widths(device: &Device) {
    for (element, dtype, bits) in [("u64", DType::U64, 7 << 33), ("i64", DType::I64, u64::MAX - 4)] {
        let mut case = chain(&[
            "y[i].v = x[i].v * s.w + T(s.n);",
            "y[i].v = (x[i].v - s.w) ^ x[i].v;",
            "y[i].v = x[i].v + s.w;",
        ]);
        for launch in &mut case.launches {
            let code = launch.code.replace("array<u32>;", "array<E>;").replace("w: u32", "w: T");
            launch.code = format!("alias T = {element}; struct E {{ v: T }} {code}");
            launch.args[3] = FusionArg::Scalar { dtype, bits };
        }
        for constants in [false, true] {
            case.constants = constants;
            case.check_fused(device);
        }
    }
}
