//! Tensors that a fused kernel keeps in registers, arrays of an item, or work-group memory, with the same results.

use runtime_core::lowering::FusionArg::Tensor;
use runtime_core::lowering::{FusedCode, Promotion};

use super::cases::{Check, N, chain, kernel, launch, launch_of_two};
use super::lists::{self, Case, number};
use super::support::Device;

/// The cases, with their names.
pub(crate) const CASES: &[(&str, Check)] = &[
    ("internalize_deep", internalize_deep),
    ("internalize_array_wrapper", internalize_array_wrapper),
    ("an_array_is_indexed_by_iterations_where_they_count_its_elements", array_indices),
    ("internalize_vec", internalize_vec),
    ("internalize_multi_ptr", internalize_multi_ptr),
    ("internalize_vfunc", internalize_vfunc),
    ("internalize_non_unit_localsize", internalize_non_unit_localsize),
    ("internalize_explicit", internalize_explicit),
    ("internal_explicit_dependency", internal_explicit_dependency),
    ("private_internalization_temporary_in_loop", private_internalization_temporary_in_loop),
    ("barrier_local_internalization", barrier_local_internalization),
    ("diamond_shape_local", diamond_shape_local),
    ("promotion_after_no_write_back", promotion_after_no_write_back),
    ("abort_internalization", abort_internalization),
    ("abort_internalization_stored_ptr", abort_internalization_stored_ptr),
    ("rows_of_a_softmax_stay_in_the_group", rows_of_a_softmax_stay_in_the_group),
    ("out_of_range_a_kept_element_is_zero", out_of_range_a_kept_element_is_zero),
];

const OWN: &str = "y[i] = x[i] * 3u + 1u;";
const MIRROR: &str = "y[i] = x[64u * g.x + 63u - l.x] ^ 5u;";

/// Checks a list that becomes one kernel, and where its tensors 1, 2, … are kept.
#[track_caller]
fn kept(case: &mut Case, device: &Device, places: &[Promotion]) -> FusedCode {
    case.temporary = (1..=places.len()).collect();
    let plan = case.check_fused(device);
    let code = plan.kernels[0].code.clone().expect("fused code");
    let expected: Vec<_> = places.iter().enumerate().map(|(index, place)| (index + 1, *place)).collect();
    assert_eq!(code.promoted, expected, "{}", code.text);
    code
}

/// Checks that no tensor of a list is kept in the fused kernel.
#[track_caller]
fn not_kept(case: &mut Case, device: &Device) {
    case.temporary = vec![1];
    for kernel in case.check(device).kernels {
        assert_eq!(kernel.code.map(|code| code.promoted).unwrap_or_default(), []);
    }
}

/// Tensors that are long enough for all items.
fn whole(bodies: &[&str]) -> Case {
    let mut case = chain(bodies);
    case.tensors = lists::tensors(bodies.len() + 1, 1024);
    case
}

fn internalize_deep(device: &Device) {
    let declarations =
        "fn place(i: u32) -> u32 { return i; } fn deeper(i: u32) -> u32 { return place(i) + 1u; }
        fn deepest(i: u32) -> u32 { return deeper(i) - 1u; } fn before(i: u32) -> u32 { return x[deepest(i)]; }
        fn write(i: u32, value: u32) { y[deepest(i)] = value; }";
    let mut case = whole(&["", "", ""]);
    for launch in &mut case.launches {
        launch.code = kernel(declarations, "write(i, before(i) * 3u);");
    }
    kept(&mut case, device, &[Promotion::Private; 2]);
}

fn internalize_array_wrapper(device: &Device) {
    let four = "for (var k = 0u; k < 4u; k++) { y[4u * i + k] = x[4u * i + k] + k; }";
    let mut case = whole(&[four, four, "y[i] = x[4u * i] ^ x[4u * i + 3u];"]);
    case.launches.iter_mut().for_each(|launch| launch.groups = [4, 1, 1]);
    kept(&mut case, device, &[Promotion::Private; 2]);
}

fn array_indices(device: &Device) {
    let four = "for (var k = 0u; k < 4u; k++) { y[4u * i + k] = x[4u * i + k] + k; }";
    let from_the_item = "for (var k = 4u * i; k < 4u * i + 4u; k++) { y[k] = x[k] ^ k; }";
    let by_the_group =
        "for (var k = 256u * g.x + l.x; k < 256u * g.x + 256u; k += 64u) { y[k] = 5u * x[k] + k; }";
    let halves = "for (var k = 0u; k < 2u; k++) { y[4u * i + k] = x[4u * i + k] + k; y[4u * i + k + 2u] = x[4u * i + k + 2u] ^ k; }";
    let pairs = "for (var k = 0u; k < 2u; k++) { y[4u * i + 2u * k] = x[4u * i + 2u * k] + k; y[4u * i + 2u * k + 1u] = 7u * x[4u * i + 2u * k + 1u]; }";
    for (first, second) in [
        (halves, halves),
        (pairs, pairs),
        (four, "for (var k = 0; k < 4; k++) { y[4u * i + u32(k)] = x[4u * i + u32(k)]; }"),
        (
            four,
            "for (var j = 0u; j < 2u; j++) { for (var k = 0u; k < 4u; k++) { y[i] += x[4u * i + k] << j; } }",
        ),
        (four, from_the_item),
        (from_the_item, four),
        (from_the_item, from_the_item),
        (by_the_group, by_the_group),
        // Two loops with one counter.
        (
            "var k = 0u; for (; k < 4u; k++) { y[4u * i + k] = x[4u * i + k]; } k = 0u; for (; k < 4u; k++) { y[4u * i + k] += k; }",
            four,
        ),
    ] {
        let mut case = whole(&[first, second]);
        case.launches.iter_mut().for_each(|launch| launch.groups = [4, 1, 1]);
        kept(&mut case, device, &[Promotion::Private]);
    }
}

fn internalize_vec(device: &Device) {
    let mut case = whole(&["y[i] = x[i] * 3u;", "y[i] = x[i].wzyx + x[i].x;", "y[i] = x[i] + x[i].y;"]);
    for launch in &mut case.launches {
        launch.groups = [4, 1, 1];
        launch.code = launch.code.replace(": array<u32>;", ": array<vec4u>;");
    }
    kept(&mut case, device, &[Promotion::Private; 2]);
    let mut case = whole(&["y[i] = x[i];", "y[i] = x[64u * g.x + 63u - l.x]; y[i].z = 7u;", "y[i] = x[i];"]);
    for launch in &mut case.launches {
        launch.groups = [4, 1, 1];
        launch.code = launch.code.replace(": array<u32>;", ": array<vec4u>;");
    }
    kept(&mut case, device, &[Promotion::Workgroup, Promotion::Private]);
}

fn internalize_multi_ptr(device: &Device) {
    let body = "let old = &x[i]; let new_y = &y[i]; *new_y = *old + 3u; *new_y ^= *old;";
    kept(&mut whole(&[body, body, body]), device, &[Promotion::Private; 2]);
}

fn internalize_vfunc(device: &Device) {
    // Too long to be inlined.
    let sum = (0..80).map(|k| format!("x[i] * {k}u")).collect::<Vec<_>>().join(" + ");
    let mut case = whole(&[OWN, ""]);
    case.launches[1].code = kernel(&format!("fn long(i: u32) -> u32 {{ return {sum}; }}"), "y[i] = long(i);");
    not_kept(&mut case, device);
}

fn internalize_non_unit_localsize(device: &Device) {
    let grid = |body: &str| {
        let text = kernel("", body).replace("workgroup_size(64)", "workgroup_size(8, 8)");
        text.replace("array<u32, 64>", "array<u32, 8>")
    };
    let args = |x, y| [Tensor(x), Tensor(y), number(N), number(20)];
    let tile = "let at = 64u * (g.y * 4u + g.x) + 8u * l.y; ";
    let mut case = Case {
        launches: vec![
            launch(grid(&format!("{tile} y[at + l.x] = x[at + l.x];")), [4, 4, 1], &args(0, 1)),
            launch(grid(&format!("{tile} y[at + l.x] = x[at + 7u - l.x];")), [4, 4, 1], &args(1, 2)),
            launch(grid(&format!("{tile} y[at + l.x] = x[at + l.x] + l.y;")), [4, 4, 1], &args(2, 3)),
        ],
        tensors: lists::tensors(4, 1024),
        ..Case::default()
    };
    kept(&mut case, device, &[Promotion::Workgroup, Promotion::Private]);
}

fn internalize_explicit(device: &Device) {
    for (wish, bodies, place) in [
        (Promotion::Private, [OWN, OWN], Promotion::Private),
        (Promotion::Workgroup, [OWN, OWN], Promotion::Workgroup),
        (Promotion::Workgroup, [OWN, MIRROR], Promotion::Workgroup),
    ] {
        let mut case = whole(&bodies);
        case.promotion = Some(wish);
        kept(&mut case, device, &[place]);
    }
    let mut case = whole(&[OWN, MIRROR]);
    case.promotion = Some(Promotion::Private);
    not_kept(&mut case, device);
}

fn internal_explicit_dependency(device: &Device) {
    // The third kernel reads what the first one wrote, and the second one wrote after that.
    let mut case = whole(&[OWN, "y[i] = x[i]; ", "y[i] = x[i] + 9u;"]);
    case.launches[1].args[1] = Tensor(2);
    case.launches[2].args[0] = Tensor(1);
    kept(&mut case, device, &[Promotion::Private]);
    case.launches[1].args[1] = Tensor(1);
    case.launches[1].args[0] = Tensor(0);
    kept(&mut case, device, &[Promotion::Private]);
}

fn private_internalization_temporary_in_loop(device: &Device) {
    let grid = "for (var k = i; k < s.n; k += groups.x * 64u) { y[k] = x[k] * 3u + k; }";
    let mut case = whole(&[grid, grid, grid]);
    case.launches.iter_mut().for_each(|launch| launch.groups = [5, 1, 1]);
    kept(&mut case, device, &[Promotion::Private; 2]);
}

fn barrier_local_internalization(device: &Device) {
    let code = kept(&mut whole(&[OWN, MIRROR, MIRROR]), device, &[Promotion::Workgroup; 2]);
    assert_eq!(code.barriers, 2);
    let sum = "tile[l.x] = x[i]; workgroupBarrier();
               if l.x == 0u { for (var k = 0u; k < 64u; k++) { y[g.x] += tile[k]; } }";
    let first = format!("if l.x == 0u {{ y[g.x] = 0u; }} workgroupBarrier(); {sum}");
    kept(&mut whole(&[&first, "y[i] = x[g.x] + l.x;"]), device, &[Promotion::Workgroup]);
}

fn diamond_shape_local(device: &Device) {
    let mut case = Case {
        launches: vec![
            launch_of_two("y[i] = x[i] + z[i];", 0, 1, 0),
            launch_of_two("y[i] = x[64u * g.x + 63u - l.x] * z[i];", 1, 2, 0),
            launch_of_two("y[i] = x[64u * g.x + l.x / 2u] - z[i];", 1, 3, 0),
            launch_of_two("y[i] = x[i] ^ z[64u * g.x + (l.x + 1u) % 64u];", 2, 4, 3),
        ],
        tensors: lists::tensors(5, 1024),
        ..Case::default()
    };
    kept(&mut case, device, &[Promotion::Workgroup, Promotion::Private, Promotion::Workgroup]);
}

fn promotion_after_no_write_back(device: &Device) {
    for bodies in [[OWN, OWN], [OWN, MIRROR]] {
        let mut case = whole(&bodies);
        case.temporary = vec![1];
        let plan = case.plan(device.info());
        let after = case.run(device, &plan.kernels);
        assert!(after[1] == case.tensors[1] && after[2] != case.tensors[2]);
    }
}

fn abort_internalization(device: &Device) {
    // A kernel outside the run still reads it.
    let mut case = whole(&[OWN, OWN, "y[i] = x[1023u - i];"]);
    case.launches[2].args[0] = Tensor(1);
    not_kept(&mut case, device);
    // The kernels use other numbers of elements.
    not_kept(&mut whole(&[OWN, "y[i] = x[2u * i];"]), device);
    not_kept(&mut whole(&["if l.x < 32u { y[i] = x[i]; }", MIRROR]), device);
    // It is not written first.
    not_kept(&mut whole(&["y[i] += x[i];", OWN]), device);
    // A smaller range.
    let mut case = whole(&[OWN, OWN]);
    case.launches[1].groups = [3, 1, 1];
    not_kept(&mut case, device);
}

fn abort_internalization_stored_ptr(device: &Device) {
    // An index that is kept in memory is not seen through.
    not_kept(&mut whole(&[OWN, "y[i] = i; y[i] = x[y[i]];"]), device);
    not_kept(&mut whole(&[OWN, "tile[l.x] = i; y[i] = x[tile[l.x]];"]), device);
}

fn rows_of_a_softmax_stay_in_the_group(device: &Device) {
    let rows = |body: &str| {
        format!("for (var row = g.x; row < 16u; row += groups.x) {{ let first = row * 60u; {body} }}")
    };
    let scale = rows("for (var k = l.x; k < 60u; k += 64u) { y[first + k] = x[first + k] * 5u; }");
    let total = rows(
        "var sum = x[first];
         for (var start = 0u; start < 60u; start += 64u) {
             if start + l.x < 60u { sum ^= x[first + start + l.x]; y[first + start + l.x] = sum; }
         }
         tile[l.x] = sum; workgroupBarrier(); sum = tile[0] + tile[59]; workgroupBarrier();
         for (var start = 0u; start < 60u; start += 64u) {
             if start + l.x < 60u { y[first + start + l.x] *= sum; }
         }",
    );
    let mut case = whole(&[&scale, &total, &scale]);
    let code = kept(&mut case, device, &[Promotion::Workgroup, Promotion::Private]);
    assert_eq!(code.barriers, 1);
    // Two rows for some groups.
    case.launches.iter_mut().for_each(|launch| launch.groups = [9, 1, 1]);
    case.temporary = vec![1];
    assert_eq!(case.check_fused(device).kernels[0].code.clone().expect("fused code").promoted, []);
}

fn out_of_range_a_kept_element_is_zero(device: &Device) {
    for (bodies, place) in [
        ([OWN, MIRROR], Promotion::Workgroup),
        ([OWN, OWN], Promotion::Private),
        (["y[2u * i] = x[i]; y[2u * i + 1u] = i;", "y[i] = x[2u * i + 1u];"], Promotion::Private),
    ] {
        for len in [1024, 1000, 64, 1] {
            let mut case = whole(&bodies);
            case.tensors[1].truncate(len);
            kept(&mut case, device, &[place]);
        }
    }
}
