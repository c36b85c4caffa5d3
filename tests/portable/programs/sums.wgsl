// Sums along each item's own part of memory: on the host their range checks are made before the loop.

//# rows_of_products: the last rows of one array are not there: they are zeros
//= groups 2
//= read i32: -9 -2 5 12 -4 3 10 -6 1 8 -8 -1 6 13 -3 4 11 -5 2 9 -7 0 7 -9 -2 5 12 -4 3 10 -6 1 8 -8 -1 6 13 -3 4 11 -5 2 9 -7 0 7 -9 -2 5 12 -4 3 10 -6 1 8 -8 -1 6 13 -3 4 11 -5 2 9 -7 0 7 -9 -2 5 12 -4 3 10 -6 1 8 -8
//= read i32: -6 -1 4 9 -3 2 7 -5 0 5 10 -2 3 8 -4 1 6 -6 -1 4 9 -3 2 7 -5 0 5 10 -2 3 8 -4 1 6 -6 -1 4 9 -3 2 7 -5 0 5 10 -2 3 8 -4 1 6 -6 -1 4 9 -3 2 7 -5 0 5 10 -2 3 8 -4 1 6 -6 -1 4 9 -3 2 7 -5 0
//= write i32: 0*16 -> 196 146 56 134 -102 44 -86 29 -80 -65 -67 -77 4 -76 14 -50
//= scalar u32: 5
struct rows_of_products_S { n: u32 }
var<immediate> rows_of_products_s: rows_of_products_S;
@group(0) @binding(0) var<storage, read> rows_of_products_a: array<i32>;
@group(0) @binding(1) var<storage, read> rows_of_products_b: array<i32>;
@group(0) @binding(2) var<storage, read_write> rows_of_products_y: array<i32>;
@compute @workgroup_size(8)
fn rows_of_products(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    var sum = 0i;
    for (var k = 0u; k < rows_of_products_s.n; k++) { sum += rows_of_products_a[i * rows_of_products_s.n + k] * rows_of_products_b[i * rows_of_products_s.n + k]; }
    rows_of_products_y[i] = sum;
}

//# rows_from_below: a signed counter from below zero: what is in front of the array is zero
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 18 67 101 106 113 91 102 96
//= scalar i32: -3
//= scalar i32: 4
struct rows_from_below_S { from_: i32, to: i32 }
var<immediate> rows_from_below_s: rows_from_below_S;
@group(0) @binding(0) var<storage, read> rows_from_below_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_from_below_y: array<u32>;
@compute @workgroup_size(8)
fn rows_from_below(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0u;
    for (var k = rows_from_below_s.from_; k < rows_from_below_s.to; k++) { sum += rows_from_below_a[i32(id.x) * 3i + k]; }
    rows_from_below_y[id.x] = sum;
}

//# rows_that_wrap: an index that passes the largest number goes on at zero
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 8 35 67 89 114 149 132 125
//= scalar u32: 4294967290
//= scalar u32: 9
struct rows_that_wrap_S { first: u32, n: u32 }
var<immediate> rows_that_wrap_s: rows_that_wrap_S;
@group(0) @binding(0) var<storage, read> rows_that_wrap_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_that_wrap_y: array<u32>;
@compute @workgroup_size(8)
fn rows_that_wrap(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0u;
    for (var k = 0u; k < rows_that_wrap_s.n; k++) { sum += rows_that_wrap_a[rows_that_wrap_s.first + id.x * 2u + k]; }
    rows_that_wrap_y[id.x] = sum;
}

//# rows_of_nothing: a counter that is at its limit, or beyond it
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 9*8
//= scalar u32: 7
//= scalar u32: 7
struct rows_of_nothing_S { first: u32, n: u32 }
var<immediate> rows_of_nothing_s: rows_of_nothing_S;
@group(0) @binding(0) var<storage, read> rows_of_nothing_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_of_nothing_y: array<u32>;
@compute @workgroup_size(8)
fn rows_of_nothing(@builtin(global_invocation_id) id: vec3u) {
    var sum = 9u;
    for (var k = rows_of_nothing_s.first; k < rows_of_nothing_s.n; k++) { sum += rows_of_nothing_a[id.x * 5u + k]; }
    for (var k = rows_of_nothing_s.first + 4000000000u; k < rows_of_nothing_s.n; k++) { sum += rows_of_nothing_a[id.x * 5u + k]; }
    rows_of_nothing_y[id.x] = sum;
}

//# rows_with_an_end_that_moves: a limit that the loop assigns
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 1 64 149 85 31 113 141 133
//= scalar u32: 9
struct rows_with_an_end_that_moves_S { n: u32 }
var<immediate> rows_with_an_end_that_moves_s: rows_with_an_end_that_moves_S;
@group(0) @binding(0) var<storage, read> rows_with_an_end_that_moves_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_with_an_end_that_moves_y: array<u32>;
@compute @workgroup_size(8)
fn rows_with_an_end_that_moves(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0u;
    var n = rows_with_an_end_that_moves_s.n;
    for (var k = 0u; k < n; k++) {
        sum += rows_with_an_end_that_moves_a[id.x * 2u + k];
        n = min(n, sum);
    }
    rows_with_an_end_that_moves_y[id.x] = sum;
}

//# rows_that_depend_on_the_sum: an index made of the sum so far
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 30 40 31 24 41 31 27 26
//= scalar u32: 6
struct rows_that_depend_on_the_sum_S { n: u32 }
var<immediate> rows_that_depend_on_the_sum_s: rows_that_depend_on_the_sum_S;
@group(0) @binding(0) var<storage, read> rows_that_depend_on_the_sum_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_that_depend_on_the_sum_y: array<u32>;
@compute @workgroup_size(8)
fn rows_that_depend_on_the_sum(@builtin(global_invocation_id) id: vec3u) {
    var sum = id.x;
    for (var k = 0u; k < rows_that_depend_on_the_sum_s.n; k++) { sum += rows_that_depend_on_the_sum_a[sum + k]; }
    rows_that_depend_on_the_sum_y[id.x] = sum;
}

//# rows_of_several_sums: maximum, minimum, exclusive and inclusive or, of two rows
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 3510626218 3791526457 1911129179 2551229875 2551521100 3831129779 3830329485 440320211
//= scalar u32: 7
//= scalar u32: 2
struct rows_of_several_sums_S { n: u32, first: u32 }
var<immediate> rows_of_several_sums_s: rows_of_several_sums_S;
@group(0) @binding(0) var<storage, read> rows_of_several_sums_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_of_several_sums_y: array<u32>;
@compute @workgroup_size(8)
fn rows_of_several_sums(@builtin(global_invocation_id) id: vec3u) {
    var x = 0u;
    var most = 0u;
    var least = 4294967295u;
    var bits = 0u;
    for (var k = 0u; k < rows_of_several_sums_s.n; k++) {
        let e = rows_of_several_sums_a[id.x * 3u + k];
        let f = rows_of_several_sums_a[rows_of_several_sums_s.first + k];
        x ^= e * f;
        most = max(most, e);
        least = min(e + f, least);
        bits |= e << (k % 5u);
    }
    rows_of_several_sums_y[id.x] = x + 1000u * most + 100000u * least + bits * 10000000u;
}

//# rows_of_some_items: a loop behind a condition, with a start of the item's own, and a counter that is read after it
//= groups 1
//= read u32: 1 2 5 10 17 26 6 19 3 20 8 29 21 15 11 9 9 11 15 21 29 8 20 3
//= write u32: 0*8 -> 3505 7 8407 6508 7 10 11 7
//= scalar u32: 5
struct rows_of_some_items_S { n: u32 }
var<immediate> rows_of_some_items_s: rows_of_some_items_S;
@group(0) @binding(0) var<storage, read> rows_of_some_items_a: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows_of_some_items_y: array<u32>;
@compute @workgroup_size(8)
fn rows_of_some_items(@builtin(global_invocation_id) id: vec3u) {
    var sum = 7u;
    if id.x % 3u != 1u {
        sum = 0u;
        var k = id.x;
        for (; k < id.x + rows_of_some_items_s.n; k++) { sum += rows_of_some_items_a[id.x * 4u + k]; }
        sum = sum * 100u + k;
    }
    rows_of_some_items_y[id.x] = sum;
}
