//! Tensors that are kept in arrays of an item or of a group.

use runtime_core::lowering::{FusedCode, Promotion};

use super::List;

/// Items that own four elements each.
const FOUR: &str = "for (var k = 0u; k < 4; k++) { y[4 * i + k] = x[4 * i + k]; }";
/// Items that read the elements of their group.
const MIRROR: &str = "y[i] = x[64 * g.x + 63 - l.x];";
const OWN: &str = "y[i] = x[i];";
/// Rows of 50 groups.
const ROWS: &str = "for (var row = g.x; row < 16; row += groups.x) {
    for (var k = l.x; k < s.w; k += 64) { y[row * s.w + k] = x[row * s.w + k]; }
}";
const SUM: &str = "tile[l.x] = x[i]; workgroupBarrier(); if l.x == 0 { y[g.x] = tile[0] + tile[63]; }";

fn list(first: &str, second: &str) -> List {
    let mut list = List::new().then("first", first, [0, 1]).then("second", second, [1, 2]);
    list.tensors[1].promotion = Promotion::Auto;
    list
}

#[track_caller]
fn code(list: &List) -> FusedCode {
    let plan = list.plan();
    assert_eq!(plan.kernels.len(), 1, "{:?}", plan.seams);
    plan.kernels.into_iter().next().unwrap().code.unwrap()
}

#[track_caller]
fn promoted(first: &str, second: &str, place: Promotion) -> FusedCode {
    let code = code(&list(first, second));
    assert_eq!(code.promoted, [(1, place)], "{}", code.text);
    code
}

#[track_caller]
fn kept(first: &str, second: &str) {
    for kernel in list(first, second).plan().kernels {
        assert_eq!(kernel.code.map(|code| code.promoted).unwrap_or_default(), []);
    }
}

#[test]
fn the_few_elements_of_an_item_are_its_own_array() {
    let code = promoted(FOUR, FOUR, Promotion::Private);
    assert!(code.text.contains("var<private> y: array<f32, 4>"), "{}", code.text);
    promoted(FOUR, "y[i] = x[4 * i] + x[4 * i + 3];", Promotion::Private);
    promoted("y[2 * i] = x[i]; y[2 * i + 1] = x[i];", "y[i] = x[2 * i + 1];", Promotion::Private);
    promoted(
        "for (var k = i; k < 4096; k += 1024) { y[k] = x[i]; }",
        "for (var k = i; k < 4096; k += 1024) { y[k] = x[k]; }",
        Promotion::Private,
    );
    // The first items have one element more.
    let uneven = "for (var k = i; k < 4000; k += 1024) { y[k] = x[k]; }";
    promoted(uneven, uneven, Promotion::Private);
    kept(uneven, "for (var k = i; k < 4001; k += 1024) { y[k] = x[k]; }");
}

#[test]
fn elements_that_are_not_written_stay_in_memory() {
    kept("for (var k = 0u; k < 3; k++) { y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 1u; k < 4; k++) { y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 0u; k < 4; k += 2) { y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { if k == 2 { continue; } y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { if x[k] > 0 { break; } y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { if x[k] > 0 { return; } y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { if x[k] > 0 { y[4 * i + k] = x[i]; } }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { y[4 * i + k] = x[i]; if k >= 2 { break; } }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { y[4 * i + k] = x[i]; if k >= 2 { return; } }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { if i < 9 { if k > 2 { continue; } } y[4 * i + k] = x[i]; }", FOUR);
    kept("for (var k = 1u; k < 4; k++) { y[4 * i + k] = x[i]; }", "y[i] = x[4 * i];");
    kept("if i < 1000 { for (var k = 0u; k < 4; k++) { y[4 * i + k] = x[i]; } }", FOUR);
    kept("for (var k = 0u; k < 4; k++) { y[4 * i + k] = x[i] + y[4 * i + (k + 1) % 4]; }", FOUR);
    kept("for (var k = 0u; k < u32(x[i]); k++) { if k < 4 { y[4 * i + k] = x[i]; } }", FOUR);
    kept("for (var k = 0u; k < min(u32(x[i]), 4); k++) { y[4 * i + k] = x[i]; }", FOUR);
    kept("y[i] = x[i];", "y[i] = x[64 * g.x + 64 - l.x];");
    kept("if l.x < 63 { y[i] = x[i]; }", MIRROR);
    kept("if i < 1023 { y[i] = x[i]; }", MIRROR);
    kept("y[2 * i] = x[i];", "y[i] = x[128 * g.x + l.x];");
    kept("y[128 * g.x + l.x] = x[i];", "y[i] = x[128 * g.x + 127 - l.x];");
    kept("if l.x == 5 && x[i] > 0 { y[g.x] = x[i]; }", "y[i] = x[g.x];");
}

#[test]
fn the_elements_of_a_group_are_shared() {
    let code = promoted(OWN, MIRROR, Promotion::Workgroup);
    assert!(code.text.contains("var<workgroup> y: array<f32, 64>") && code.barriers == 1, "{}", code.text);
    assert!(!code.text.contains("select"), "{}", code.text);
    promoted("if i < s.n { y[i] = x[i]; }", MIRROR, Promotion::Workgroup);
    promoted(SUM, "y[i] = x[g.x] + f32(l.x);", Promotion::Workgroup);
    promoted("if l.x == 5 { y[g.x] = x[i]; }", "y[i] = x[g.x];", Promotion::Workgroup);
    promoted(OWN, "if l.x < 10 { y[i] = x[64 * g.x + 5 * l.x]; }", Promotion::Workgroup);
    promoted(OWN, "y[i] = x[64 * g.x + u32(x[i]) % 64];", Promotion::Workgroup);
}

#[test]
fn rows_of_a_group_are_shared_if_it_has_one() {
    let sum = "for (var row = g.x; row < 16; row += groups.x) {
        for (var k = 0u; k < s.w; k++) { y[row] += x[row * s.w + k]; }
    }";
    let list = list(ROWS, sum);
    let plan = list.plan();
    let code = plan.kernels[0].code.as_ref().unwrap();
    assert_eq!(code.promoted, [(1, Promotion::Workgroup)], "{}", code.text);
    assert_eq!((&plan.relies_on_groups[..], code.barriers), (&[0, 1][..], 1));
    assert!(plan.relies_on.contains(&(0, 3)) && plan.relies_on.contains(&(1, 3)));
    // Two rows.
    kept(&ROWS.replace("16", "17"), &sum.replace("16", "17"));
}

#[test]
fn out_of_range_an_array_reads_zero() {
    for (second, elements) in [(MIRROR, 1000), (MIRROR, 1)] {
        let mut list = list(OWN, second);
        list.tensors[1].bytes = elements * 4;
        let code = code(&list);
        assert_eq!(code.promoted, [(1, Promotion::Workgroup)]);
        assert!(code.text.contains("select"), "{}", code.text);
    }
}

#[test]
fn arrays_beyond_the_limit_stay_in_memory_with_the_reason() {
    let wide = "for (var k = l.x; k < s.n; k += 64) { y[g.x * s.n + k] = x[k]; }";
    let sum = "for (var k = 0u; k < s.n; k++) { y[i] += x[g.x * s.n + k]; }";
    let mut list = list(wide, sum);
    list.tensors[1].bytes = 16 * 1024 * 4;
    assert_eq!(code(&list).promoted, [(1, Promotion::Workgroup)]);
    for launch in &mut list.launches {
        launch.0 = launch.0.replace("s.n;", "9 * s.n;").replace("g.x * s.n", "g.x * 9 * s.n");
    }
    list.tensors[1].bytes *= 9;
    let plan = list.plan();
    assert_eq!(plan.kernels[0].code.as_ref().expect(&plan.seams[0].reason).promoted, []);
    assert_eq!(
        plan.seams[0].reason,
        "with a barrier between them; \"y\" (argument 1) of first stays in memory: a group uses 36864 bytes of it, and 32768 bytes \
         of work-group memory are left"
    );
}

#[test]
fn a_wish_decides_between_items_and_groups() {
    for (wish, first, second, expected) in [
        (Promotion::Workgroup, OWN, OWN, Some(Promotion::Workgroup)),
        (Promotion::Workgroup, FOUR, FOUR, Some(Promotion::Workgroup)),
        (Promotion::Private, OWN, MIRROR, None),
        (Promotion::Private, FOUR, FOUR, Some(Promotion::Private)),
        (Promotion::Workgroup, OWN, "y[i] = x[i + 1];", None),
    ] {
        let mut list = list(first, second);
        list.tensors[1].promotion = wish;
        list.tensors[1].bytes *= 4;
        let promoted = list.plan().kernels.into_iter().filter_map(|kernel| kernel.code);
        let places: Vec<_> = promoted.flat_map(|code| code.promoted).map(|(_, place)| place).collect();
        assert_eq!(places, expected.into_iter().collect::<Vec<_>>(), "{wish:?} {first} {second}");
    }
}

#[test]
fn a_kernel_that_waits_for_its_group_itself_keeps_the_tensor() {
    kept("y[i] = x[i]; storageBarrier(); y[i] += y[64 * g.x + 63 - l.x];", OWN);
    kept("y[64 * g.x] = x[i];", MIRROR);
}
