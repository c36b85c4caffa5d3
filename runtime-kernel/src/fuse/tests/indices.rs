//! Indices with quotients, remainders, minima and choices.

use runtime_core::lowering::FusionArg::Tensor;

use super::{List, N, kernel, u32_arg};

/// Each item of the first kernel writes its own element, behind `if i < n`.
const OWN: &str = "if i < s.n { y[i] = 2.0 * x[i]; }";
/// Each group writes its own 64 elements.
const GROUP: &str = "y[64 * g.x + l.x] = x[i];";

fn list(first: &str, next: &str) -> List {
    List::new().then("first", first, [0, 1]).then("next", next, [1, 2])
}

#[track_caller]
fn refused(first: &str, next: &str) {
    list(first, next).fails("next reads \"x\" (argument 0), which first writes");
}

#[test]
fn a_quotient_and_its_remainder_make_the_number_again() {
    list(OWN, "let row = i / 24; let column = i % 24; y[i] = x[row * 24 + column];").fuses(0);
    list(OWN, "y[i] = x[(i >> 3u) * 8 + (i & 7u)];").fuses(0);
    list(OWN, "y[i] = x[(i / s.w) * s.w + i % s.w];").fuses(0);
    list(OWN, "let j = i32(i); y[i] = x[(j / 24) * 24 + j % 24];").fuses(0);
    list(OWN, "let p = vec2u(i, i) / vec2u(24, 1); y[i] = x[p.x * 24 + p.y % 24];").fuses(0);
    // Another divisor.
    refused(OWN, "let row = i / 24; let column = i % 25; y[i] = x[row * 24 + column];");
    refused(OWN, "let row = i / 25; let column = i % 24; y[i] = x[row * 24 + column];");
    refused(OWN, "y[i] = x[(i >> 3u) * 8 + (i & 15u)];");
    refused(OWN, "y[i] = x[(i >> 3u) * 4 + (i & 7u)];");
    // A row that is shorter than its elements.
    refused("y[(i / 24) * 20 + i % 24] = x[i];", "y[i] = x[(i / 24) * 20 + i % 24];");
}

#[test]
fn a_remainder_is_the_number_only_below_the_divisor() {
    list(OWN, "if i < s.n { y[i] = x[i % s.n]; }").fuses(0);
    list(OWN, "y[i] = x[i % 1024];").fuses(0);
    list(OWN, "y[i] = x[i & 1023u];").fuses(0);
    refused(OWN, "y[i] = x[i % 1023];");
    refused(OWN, "y[i] = x[i & 511u];");
    refused("y[i % 32] = x[i];", "y[i] = x[i % 32];");
    refused("y[i % 512] = x[i];", "y[i] = x[i % 256];");
    refused(OWN, "y[i] = x[i % s.w];");
    refused(OWN, "y[i] = x[(i + 1) % 1024];");
    refused(OWN, "y[i] = x[(i + 0xffffffffu) % 1024];");
}

#[test]
fn a_quotient_is_shared_by_several_items() {
    list(GROUP, "y[i] = x[i / 64 * 64];").fuses(1);
    list(GROUP, "y[i] = x[i / 64 * 64 + 63 - i % 64];").fuses(1);
    list("if l.x == 0 { y[g.x] = x[i]; }", "y[i] = x[i / 64];").fuses(1);
    list("if l.x == 0 { y[g.x] = x[i]; }", "y[i] = x[i >> 6u];").fuses(1);
    refused("y[i] = x[i];", "y[i] = x[i / 2];");
    refused("y[i / 2] = x[i];", "y[i / 128] = x[i / 128];");
    refused("if l.x == 0 { y[g.x] = x[i]; }", "y[i] = x[l.x];");
    refused("if l.x == 0 { y[g.x] = x[i]; }", "y[i] = x[i / 65];");
    refused("if l.x == 0 { y[g.x] = x[i]; }", "y[i] = x[(i + 1) / 64];");
    refused("if l.x == 0 { y[g.x] = x[i]; }", "y[i] = x[i >> 5u];");
}

#[test]
fn a_minimum_is_the_index_where_it_is_in_range() {
    list(OWN, "if i < s.n { y[i] = x[min(i, s.n - 1)]; }").fuses(0);
    list(OWN, "y[i] = x[min(i, 1023)];").fuses(0);
    list(OWN, "y[i] = x[max(i, 0)];").fuses(0);
    list(OWN, "y[i] = x[clamp(i, 0, 1023)];").fuses(0);
    list(OWN, "y[i] = x[min(i, arrayLength(&x) - 1)];").fuses(0);
    list(OWN, "y[i] = x[select(0, i, i < 1024)];").fuses(0);
    list(OWN, "y[i] = x[select(i, 0, i >= 1024)];").fuses(0);
    list(OWN, "y[i] = x[i32(min(i, 1023))];").fuses(0);
    refused(OWN, "y[i] = x[min(i, s.n - 2)];");
    refused(OWN, "y[i] = x[max(i, 1)];");
    refused(OWN, "y[i] = x[max(i, 1) - 1];");
    refused(OWN, "y[i] = x[min(i + 1, s.n - 1)];");
    refused(OWN, "y[i] = x[clamp(i, 1, 1023)];");
    refused(OWN, "y[i] = x[select(0, i, i < 1023)];");
    refused(OWN, "y[i] = x[select(i, 0, i >= 1023)];");
    refused(OWN, "y[i] = x[select(i, 0, i < 1023)];");
}

#[test]
fn a_number_that_is_only_bounded_stays_in_its_group() {
    list(GROUP, "y[i] = x[g.x * 64 + u32(x[g.x * 64]) % 64];").fuses(1);
    list(GROUP, "y[i] = x[g.x * 64 + (u32(x[g.x * 64]) & 63u)];").fuses(1);
    list(GROUP, "y[i] = x[g.x * 64 + min(u32(x[g.x * 64]), 63)];").fuses(1);
    list(GROUP, "let k = u32(x[g.x * 64]) >> 26u; y[i] = x[g.x * 64 + k];").fuses(1);
    list(GROUP, "y[i] = x[g.x * 64 + max(l.x, 1) - 1];").fuses(1);
    list(GROUP, "y[i] = x[g.x * 64 + (l.x + 1) % 64];").fuses(1);
    list(GROUP, "y[i] = x[g.x * 64 + 63 - (l.x + 1) % 64];").fuses(1);
    refused(GROUP, "y[i] = x[g.x * 64 + (l.x + 2) % 65];");
    refused(GROUP, "y[i] = x[g.x * 64 + u32(x[g.x * 64]) % 65];");
    refused(GROUP, "y[i] = x[g.x * 64 + (u32(x[g.x * 64]) & 127u)];");
    refused(GROUP, "y[i] = x[g.x * 64 + min(u32(x[g.x * 64]), 64)];");
    refused(GROUP, "let k = u32(x[g.x * 64]) >> 25u; y[i] = x[g.x * 64 + k];");
    refused(GROUP, "y[i] = x[g.x * 64 + u32(i32(x[g.x * 64]) % 64)];");
}

#[test]
fn the_reason_says_why_an_index_is_no_proof() {
    let gather = kernel("next", "y[i] = x[counts[l.x]];");
    let gather = gather.replacen("@group", "var<workgroup> counts: array<u32, 64>; @group", 1);
    let args = [Tensor(1), Tensor(2), u32_arg(N), u32_arg(32)];
    let list_of_two = List::new().then("first", OWN, [0, 1]).launch(&gather, [16, 1, 1], &args);
    list_of_two.fails("at indices that depend on data");
    list(OWN, "y[i] = x[i * l.x];").fails("at indices of next that are not understood");
    list("y[i * l.x] = x[i];", OWN).fails("at indices of first that are not understood");
}

#[test]
fn tensors_that_are_only_read_need_no_proof() {
    List::new()
        .then("first", OWN, [0, 1])
        .then("next", "y[i] = x[i] + x[i % 7];", [1, 2])
        .fails("next reads \"x\" (argument 0)");
    let bias = "if i < s.n { y[i] = x[i % 7] + x[u32(x[i])] + x[max(i, 1) - 1]; }";
    List::new().then("bias", bias, [0, 1]).then("again", bias, [0, 2]).then("own", OWN, [1, 3]).fuses(0);
}
