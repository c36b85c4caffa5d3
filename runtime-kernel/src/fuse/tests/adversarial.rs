//! Pairs that look as if they could be fused, and race if they are.

use super::{List, N, kernel, u32_arg};
use runtime_core::lowering::FusionArg::Tensor;

const SCALE: &str = "if i < s.n { y[i] = 2.0 * x[i]; }";

/// A kernel that reads what `scale` writes.
#[track_caller]
fn refused(body: &str) {
    List::new()
        .then("scale", SCALE, [0, 1])
        .then("next", body, [1, 2])
        .fails("next reads \"x\" (argument 0), which scale writes");
}

#[test]
fn reads_of_other_items_are_refused() {
    refused("if i < s.n { y[i] = x[s.n - 1 - i]; }");
    refused("if i < s.n { y[i] = x[i ^ 1]; }");
    refused("if i < s.n { y[i] = x[i + 1]; }");
    refused("if i > 0 { y[i] = x[i - 1]; }");
    refused("y[i] = x[2 * i];");
    refused("y[i] = x[i / 2];");
    refused("y[i] = x[i % 32];");
    refused("y[i] = x[0];");
    refused("y[i] = x[u32(y[i])];");
    refused("for (var k = 0u; k < 2; k++) { y[i] += x[i + k]; }");
    refused("var j = i; if x[i] > 0.0 { j = 5; } y[i] = x[j];");
    refused("y[i] = x[s.w * i];");
    refused("y[i] = x[g.x * 32 + l.x];");
    refused("y[i] = x[groups.x + i];");
    refused("y[i] = x[(i + 64) % s.n];");
    refused("for (var k = i; k < s.n; k += 64) { y[k] = x[k]; }");
}

#[test]
fn writes_to_what_others_read_are_refused() {
    let list = || List::new().then("shift", "if i < s.n { y[i] = x[i + 1]; }", [0, 1]);
    list().then("next", SCALE, [2, 0]).fails(
        "next writes \"y\" (argument 1), which shift reads (\"x\", argument 0), at indices of other items",
    );
    list()
        .then("next", "y[i + 1] = x[i];", [2, 1])
        .fails("next writes \"y\" (argument 1), which shift writes (argument 1)");
}

#[test]
fn overlapping_rows_are_refused() {
    // Rows of 33 elements that begin every 32.
    let rows = |length: u32| format!("for (var k = 0u; k < {length}; k++) {{ y[i * 32 + k] = x[i]; }}");
    let sum = |length: u32| format!("for (var k = 0u; k < {length}; k++) {{ y[i] += x[i * 32 + k]; }}");
    List::new().then("rows", &rows(32), [0, 1]).then("sum", &sum(32), [1, 2]).fuses(0);
    List::new().then("rows", &rows(33), [0, 1]).then("sum", &sum(32), [1, 2]).fails("of other items");
    List::new().then("rows", &rows(32), [0, 1]).then("sum", &sum(33), [1, 2]).fails("of other items");
}

#[test]
fn indices_that_wrap_around_are_refused() {
    // Items i and i + 2³⁰ would share an element; there are no more than 2¹⁰ items.
    let wide = "if i < s.n { y[4 * i] = x[i]; }";
    List::new().then("a", wide, [0, 1]).then("b", "y[i] = x[4 * i];", [1, 2]).fuses(0);
    for stride in ["0x80000000", "0x40000000", "0x401005"] {
        let own = format!("y[{stride}u * i] = x[i];");
        List::new().then("a", &own, [0, 1]).then("b", &format!("y[i] = x[{stride}u * i];"), [1, 2]).fails("");
    }
    let args = |x, y| [Tensor(x), Tensor(y), u32_arg(N), u32_arg(32)];
    let many = |code: &str, x, y, groups: u32| (kernel("big", code), [groups, 1, 1], args(x, y).to_vec());
    for (groups, fuses) in [(1 << 24, true), (1 << 26, true), ((1 << 26) + 1, false), (1 << 27, false)] {
        let mut list = List::new();
        list.launches = vec![many("y[i] = x[i];", 0, 1, groups), many("y[i] = x[i];", 1, 2, groups)];
        assert_eq!(list.plan().seams[0].fused, fuses, "{groups}");
    }
}

#[test]
fn counters_that_wrap_around_are_unknown() {
    let next = |from: &str, to: &str, step: &str| {
        format!(
            "for (var k = {from}; k < {to}; k += {step}) {{ y[i] += x[i * 4 + (k & 3u)]; y[i] += x[i * 4 + k]; }}"
        )
    };
    List::new()
        .then("a", "y[4 * i] = x[i];", [0, 1])
        .then("b", &next("0u", "0xffffffffu", "3u"), [1, 2])
        .fails("");
    let row = |bound: &str| format!("for (var k = 0u; k < {bound}; k += 1u) {{ y[i] += x[i * 4 + k]; }}");
    List::new().then("a", "y[4 * i] = x[i];", [0, 1]).then("b", &row("4u"), [1, 2]).fuses(0);
    List::new().then("a", "y[4 * i] = x[i];", [0, 1]).then("b", &row("k + 4u"), [1, 2]).fails("");
    List::new().then("a", "y[4 * i] = x[i];", [0, 1]).then("b", &row("5u"), [1, 2]).fails("");
    let signed = "for (var k = 0; k < 8; k += 2) { y[i] += x[i * 8 + u32(k)]; }";
    List::new().then("a", "y[8 * i] = x[i];", [0, 1]).then("b", signed, [1, 2]).fuses(0);
    let twice = "for (var k = 0u; k < 4u; k += 1u) { y[i] += x[i * 4 + k]; k += 1u; }";
    List::new().then("a", "y[4 * i] = x[i];", [0, 1]).then("b", twice, [1, 2]).fails("");
}

#[test]
fn groups_that_share_rows_are_refused() {
    let sum = "tile[l.x] = x[i]; workgroupBarrier(); if l.x == 0 { y[g.x] = tile[0] + tile[63]; }";
    List::new().then("sum", sum, [0, 1]).then("spread", "y[i] = x[g.x];", [1, 2]).fuses(1);
    List::new().then("sum", sum, [0, 1]).then("spread", "y[i] = x[i];", [1, 2]).fails("of other items");
    List::new()
        .then("sum", sum, [0, 1])
        .then("spread", "y[i] = x[groups.x - 1 - g.x];", [1, 2])
        .fails("spread");
    // The writer is the first item, the reader another one of the same group.
    let one = "if l.x == 0 { y[g.x] = x[i]; }";
    List::new().then("one", one, [0, 1]).then("other", "if l.x == 1 { y[g.x] = x[g.x]; }", [1, 2]).fuses(1);
    List::new().then("one", one, [0, 1]).then("same", "if l.x == 0 { y[g.x] = x[g.x]; }", [1, 2]).fuses(0);
}

#[test]
fn rows_of_two_dimensions_need_a_guard_that_keeps_them_apart() {
    let grid = |name: &str, guard: &str| {
        kernel(name, &format!("let j = id.y * s.w + id.x; if {guard} {{ y[j] = x[j]; }}"))
    };
    let list = |guard: &str, width: u32| {
        let args = |x, y| [Tensor(x), Tensor(y), u32_arg(N), u32_arg(width)];
        List::new().launch(&grid("a", guard), [2, 16, 1], &args(0, 1)).launch(
            &grid("b", guard),
            [2, 16, 1],
            &args(1, 2),
        )
    };
    let plan = list("id.x < s.w", 100).fuses(0);
    assert_eq!(plan.relies_on, [(0, 3), (1, 3)]);
    list("id.x <= s.w", 100).fails("of other items");
    list("id.x < s.n", 100).fails("of other items");
    list("id.y < s.w", 100).fails("of other items");
    list("i < 0xffffffffu", 128).fuses(0);
    list("i < 0xffffffffu", 127).fails("of other items");
    list("all(id.xy < vec2u(s.w, s.n))", 100).fuses(0);
    list("!(id.x >= s.w || id.y >= s.n)", 100).fuses(0);
    // The product wraps around.
    list("id.x < s.w", 0x8000_0000).fails("");
    list("id.x < s.w", 0x1200_0000).fails("");
}
