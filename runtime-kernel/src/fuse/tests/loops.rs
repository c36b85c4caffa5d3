//! Loops over the whole grid, and over rows.

use runtime_core::lowering::FusionArg::Tensor;

use super::{List, N, kernel, u32_arg};

const GRID: &str = "for (var k = i; k < s.n; k += groups.x * 64) { y[k] = x[k]; }";

fn list(first: &str, next: &str) -> List {
    List::new().then("first", first, [0, 1]).then("next", next, [1, 2])
}

#[track_caller]
fn refused(first: &str, next: &str) {
    list(first, next).fails("next reads \"x\" (argument 0), which first writes");
}

/// A loop over the rows of all groups, and over a row.
fn rows(pitch: &str, width: &str, index: &str) -> String {
    format!(
        "for (var row = g.x; row < 50; row += groups.x) {{
             for (var k = l.x; k < {width}; k += 64) {{ y[row * {pitch} + k] = x[row * {pitch} + {index}]; }}
         }}"
    )
}

#[test]
fn loops_over_the_grid_visit_the_same_elements() {
    list(GRID, GRID).fuses(0);
    list(GRID, "if i < s.n { y[i] = x[i]; }").fuses(0);
    list("y[i] = x[i];", GRID).fuses(0);
    list("if l.x == 0 { y[g.x] = x[i]; }", "for (var k = g.x; k < s.w; k += groups.x) { y[k] = x[k]; }")
        .fuses(1);
    let four = "for (var k = 4 * i; k < s.n; k += groups.x * 256) { y[k] = x[k]; }";
    list(four, four).fuses(0);
    let twice = "for (var k = i; k < s.n; k += groups.x * 128) { y[k] = x[k]; }";
    list(GRID, twice).fuses(0);
}

#[test]
fn loops_over_the_grid_with_other_steps_are_refused() {
    refused(GRID, "for (var k = i; k < s.n; k += groups.x * 32) { y[k] = x[k]; }");
    refused(GRID, "for (var k = i; k < s.n; k += groups.x * 96) { y[k] = x[k]; }");
    refused(GRID, "for (var k = i; k < s.n; k += groups.x * 64 + 1) { y[k] = x[k]; }");
    refused(GRID, "for (var k = i; k < s.n; k += groups.y * 64) { y[k] = x[k]; }");
    refused(GRID, "for (var k = i; k < s.n; k += 64) { y[k] = x[k]; }");
    refused("y[i] = x[i];", "for (var k = i; k < s.n; k += groups.x) { y[k] = x[k]; }");
    refused(GRID, "for (var k = i / 2; k < s.n; k += groups.x * 64) { y[k] = x[k]; }");
}

#[test]
fn loops_over_the_grid_with_other_starts_are_refused() {
    refused(GRID, "for (var k = i + 1; k < s.n; k += groups.x * 64) { y[k] = x[k]; }");
    refused(GRID, "for (var k = l.x; k < s.n; k += groups.x * 64) { y[k] = x[k]; }");
    refused(GRID, "for (var k = 64 * l.x + g.x; k < s.n; k += groups.x * 64) { y[k] = x[k]; }");
    refused(GRID, "for (var k = i; k < s.n; k += groups.x * 64) { y[k] = x[k + 64]; }");
    refused(GRID, "for (var k = i; k < s.n; k += groups.x * 64) { y[k] = x[s.n - 1 - k]; }");
    refused("y[i] = x[groups.x + i];", "y[groups.x + i] = x[2 * groups.x + i];");
}

#[test]
fn other_numbers_of_groups_are_other_strides() {
    let launch = |list: List, name: &str, groups: u32, args: [usize; 2]| {
        let args = [Tensor(args[0]), Tensor(args[1]), u32_arg(N), u32_arg(32)];
        list.launch(&kernel(name, GRID), [groups, 1, 1], &args)
    };
    let pair = |first, second| launch(launch(List::new(), "first", first, [0, 1]), "next", second, [1, 2]);
    pair(4, 4).fuses(0);
    pair(4, 5).fails("next reads \"x\" (argument 0), which first writes");
    pair(8, 4).fails("next reads \"x\" (argument 0), which first writes");
    // Neither loop goes around.
    pair(16, 20).fuses(0);
}

#[test]
fn rows_of_all_groups_stay_in_their_group() {
    let own = rows("s.w", "s.w", "k");
    let plan = list(&own, &own).fuses(0);
    assert_eq!(plan.relies_on, [(0, 3), (1, 3)]);
    list(&own, &rows("s.w", "s.w", "0")).fuses(1);
    list(&own, &rows("s.w", "s.w", "(s.w - 1 - k)")).fuses(1);
    list(&own, "y[i] = x[g.x * s.w + l.x / 2];").fuses(1);
    // Row by row, in steps of a group.
    let steps = "for (var row = g.x; row < 50; row += groups.x) {
                     for (var first = 0u; first < s.w; first += 64) {
                         if first + l.x < s.w { y[row * s.w + first + l.x] = x[row * s.w + first + l.x]; }
                     }
                 }";
    list(&own, steps).fuses(0);
}

#[test]
fn rows_that_overlap_are_refused() {
    let own = rows("32", "32", "k");
    list(&own, &rows("32", "32", "k")).fuses(0);
    refused(&rows("32", "33", "k"), &rows("32", "33", "k"));
    refused(&own, &rows("32", "32", "(k + 1)"));
    refused(&own, &rows("31", "31", "k"));
    refused(&own, &rows("32", "40", "k"));
    refused(&own, "for (var row = g.x; row < 50; row += groups.x) { y[i] = x[(row + 1) * 32]; }");
    refused(&own, "for (var row = l.x; row < 50; row += groups.x) { y[i] = x[row * 32]; }");
}

#[test]
fn loops_that_may_wrap_around_are_refused() {
    let wide =
        |end: &str| format!("for (var k = i; k < {end}; k += groups.x * 64) {{ y[k & 1023u] = x[k]; }}");
    refused(&wide("0xffffffffu"), &wide("0xffffffffu"));
    let step = "for (var k = i; k < s.n; k += groups.x * 0x10000000u) { y[k] = x[k]; }";
    refused(step, step);
}
