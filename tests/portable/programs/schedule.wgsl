// Code motion and declarations in the host's work-group loops: each of these was once wrong there, or nearly.

//# ahead_of_return: a uniform statement stays after the return that bounds its index
//= groups 2
//= write u32: 9*32 -> 9*32
//= scalar u32: 1000000000
//= scalar u32: 0
struct ahead_of_return_S { k: u32, m: u32 }
var<immediate> ahead_of_return_s: ahead_of_return_S;
@group(0) @binding(0) var<storage, read_write> ahead_of_return_y: array<u32>;
@compute @workgroup_size(16)
fn ahead_of_return(@builtin(global_invocation_id) id: vec3u) {
    var t: array<u32, 4>;
    if ahead_of_return_s.k >= 4u || id.x >= ahead_of_return_s.m { return; }
    t[ahead_of_return_s.k] = 5u;
    ahead_of_return_y[id.x] = t[1] + t[ahead_of_return_s.k];
}

//# ahead_of_condition: an element of an array value is read only if the condition before it holds
//= groups 2
//= write u32: 9*32 -> 9*32
//= scalar u32: 1000000000
//= scalar u32: 0
struct ahead_of_condition_S { k: u32, m: u32 }
var<immediate> ahead_of_condition_s: ahead_of_condition_S;
@group(0) @binding(0) var<storage, read_write> ahead_of_condition_y: array<u32>;
@compute @workgroup_size(16)
fn ahead_of_condition(@builtin(global_invocation_id) id: vec3u) {
    let v = array<u32, 4>(0u, 1u, ahead_of_condition_s.m, 3u);
    if ahead_of_condition_s.k < 4u { ahead_of_condition_y[v[ahead_of_condition_s.k] + id.x] = 1u; }
}

//# return_in_a_loop: a work-item that has returned executes no further iterations
//= groups 2
//= write u32: 0*32 -> 0 1 2 3 4 5 6 7 8*8 0 1 2 3 4 5 6 7 8*8
//= scalar u32: 8
struct return_in_a_loop_S { m: u32 }
var<immediate> return_in_a_loop_s: return_in_a_loop_S;
@group(0) @binding(0) var<storage, read_write> return_in_a_loop_y: array<u32>;
@compute @workgroup_size(16)
fn return_in_a_loop(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u) {
    for (var k = 0u; k < return_in_a_loop_s.m; k++) {
        if l.x == k { return; }
        return_in_a_loop_y[id.x] += 1u;
    }
}

//# return_ends_a_loop: a loop without a `break` ends when all work-items have returned
//= groups 2
//= write u32: 0*32 -> 8*32
//= scalar u32: 8
struct return_ends_a_loop_S { m: u32 }
var<immediate> return_ends_a_loop_s: return_ends_a_loop_S;
@group(0) @binding(0) var<storage, read_write> return_ends_a_loop_y: array<u32>;
@compute @workgroup_size(16)
fn return_ends_a_loop(@builtin(global_invocation_id) id: vec3u) {
    loop {
        if return_ends_a_loop_y[id.x] >= return_ends_a_loop_s.m { return; }
        return_ends_a_loop_y[id.x] += 1u;
    }
}

//# kept_across_an_assignment: a loaded value is unaffected by a later assignment to its index
//= read u32: 3 5 7 11 13 17 19 23
//= write u32: 0*8 -> 1713 1712 1711 1710 1709 1708 1707 1706
@group(0) @binding(0) var<storage, read> kept_across_an_assignment_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> kept_across_an_assignment_y: array<u32>;
@compute @workgroup_size(8)
fn kept_across_an_assignment(@builtin(local_invocation_index) i: u32) {
    var k = 1u;
    let sum = kept_across_an_assignment_x[k] + i;
    kept_across_an_assignment_y[i] = 1u;
    k = 5u;
    workgroupBarrier();
    kept_across_an_assignment_y[7u - i] += sum + 100u * kept_across_an_assignment_x[k];
}

//# limbs: an element that a work-item writes, reads and writes again in one iteration
//= write u32: 0*64 -> 3600809517 524791991 3994737803 3024344069 992279519 1863501923 116541741 830373303 4006930315 1780146437 1093026494 67969444 3524639692 3159404311 66520652 2071015608 3460049067 3194701368 3766386508 260043671 3600809517 524791991 3994737803 3024344069 992279519 1863501923 116541741 830373303 4006930315 1780146437 1093026494 67969444 3524639692 3159404311 66520652 2071015608 3460049067 3194701368 3766386508 260043671 3600809517 524791991 3994737803 3024344069 992279519 1863501923 116541741 830373303 4006930315 1780146437 1093026494 67969444 3524639692 3159404311 66520652 2071015608 3460049067 3194701368 3766386508 260043671 3600809517 524791991 3994737803 3024344069
struct limbs_Number { limbs: array<u32, 32> }
@group(0) @binding(0) var<storage, read_write> limbs_y: array<u32>;
@compute @workgroup_size(64)
fn limbs(@builtin(global_invocation_id) id: vec3u) {
    var a: limbs_Number;
    for (var i = 0u; i < 32u; i++) { a.limbs[i] = (id.x * 13u + i * 7u) % 20u; }
    var r: limbs_Number;
    var borrow = 0u;
    for (var i = 0u; i < 32u; i++) {
        r.limbs[i] = a.limbs[i] - 7u - borrow;
        if a.limbs[i] < 7u + borrow {
            r.limbs[i] += 65536u;
            borrow = 1u;
        } else {
            borrow = 0u;
        }
    }
    var sum = 0u;
    for (var i = 0u; i < 32u; i++) { sum = sum * 31u + r.limbs[i]; }
    limbs_y[id.x] = sum;
}

//# arrays_of_the_items: each work-item has its own array, with divergent indices
//= write u32: 0*64 -> 1001 85 1089 173 1177 181 1265 261 1265 349 1353 437 1441 445 1529 525 1529 613 1617 701 1705 709 1793 789 1793 877 1881 965 1969 973 2057 1053 2057 1141 2145 1229 2233 1237 2321 1317 2321 1405 2409 1493 2497 1501 2585 1581 2585 1669 2673 1757 2761 1765 2849 1845 2849 1933 2937 2021 3025 2029 3113 2109
@group(0) @binding(0) var<storage, read_write> arrays_of_the_items_y: array<u32>;
@compute @workgroup_size(64)
fn arrays_of_the_items(@builtin(local_invocation_index) i: u32) {
    let n = i * 3u;
    var t = array<u32, 8>(n, n + 1u, n + 2u, n + 3u, n + 4u, n + 5u, n + 6u, n + 7u);
    t[i % 8u] += 100u;
    arrays_of_the_items_y[i] = t[(i * 5u) % 8u] * 10u + t[(i + 1u) % 8u];
}

//# array_values_of_the_items: the same for array values
//= write u32: 0*64 -> 1 43 89 131 133 175 221 263 265 307 353 395 397 439 485 527 529 571 617 659 661 703 749 791 793 835 881 923 925 967 1013 1055 1057 1099 1145 1187 1189 1231 1277 1319 1321 1363 1409 1451 1453 1495 1541 1583 1585 1627 1673 1715 1717 1759 1805 1847 1849 1891 1937 1979 1981 2023 2069 2111
@group(0) @binding(0) var<storage, read_write> array_values_of_the_items_y: array<u32>;
@compute @workgroup_size(64)
fn array_values_of_the_items(@builtin(local_invocation_index) i: u32) {
    let n = i * 3u;
    let t = array<u32, 4>(n, n + 1u, n + 2u, n + 3u);
    array_values_of_the_items_y[i] = t[i % 4u] * 10u + t[(i * 3u + 1u) % 4u];
}
