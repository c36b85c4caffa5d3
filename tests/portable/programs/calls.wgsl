// Functions that return early, and pointers to parts of variables: facts known before a call need not hold after it.

//# early_return_private: §function-calls: a loop returns before the private variable is assigned
//= scalar u32: 5
//= write u32: 0*4 -> 11*4
struct EarlyReturnPrivate { k: u32 }
var<immediate> early_return_private_s: EarlyReturnPrivate;
var<private> early_return_private_v: u32;
fn early_return_private_h(z: u32) {
    for (var i = 0u; i < z; i++) { if i == 2u { return; } }
    early_return_private_v = 7u;
}
@group(0) @binding(0) var<storage, read_write> early_return_private_r: array<u32>;
@compute @workgroup_size(4)
fn early_return_private(@builtin(local_invocation_index) i: u32) {
    early_return_private_v = 1u;
    early_return_private_h(early_return_private_s.k);
    var c = 0u;
    for (var j = 0u; j < early_return_private_v; j++) { c += 10u; }
    early_return_private_r[i] = c + early_return_private_v;
}

//# early_return_pointer: §function-calls: a loop returns before the variable of the caller is assigned
//= scalar u32: 5
//= write u32: 0*4 -> 11*4
struct EarlyReturnPointer { k: u32 }
var<immediate> early_return_pointer_s: EarlyReturnPointer;
var<private> early_return_pointer_q: bool;
fn early_return_pointer_h(p: ptr<function, u32>, z: u32) {
    early_return_pointer_q = z == 99u;
    for (var i = 0u; i < z; i++) { if i == 2u { return; } }
    *p = 7u;
}
@group(0) @binding(0) var<storage, read_write> early_return_pointer_r: array<u32>;
@compute @workgroup_size(4)
fn early_return_pointer(@builtin(local_invocation_index) i: u32) {
    var v = 1u;
    early_return_pointer_h(&v, early_return_pointer_s.k);
    var c = 0u;
    for (var j = 0u; j < v; j++) { c += 10u; }
    early_return_pointer_r[i] = c + v;
}

//# early_return_barrier: §function-calls: a loop with a barrier returns a value
//= scalar u32: 3
//= write u32: 0*4 -> 5*4
struct EarlyReturnBarrier { k: u32 }
var<immediate> early_return_barrier_s: EarlyReturnBarrier;
fn early_return_barrier_h(n: u32) -> u32 {
    for (var i = 0u; i < n; i++) { workgroupBarrier(); if i == 2u { return 5u; } }
    return 6u;
}
@group(0) @binding(0) var<storage, read_write> early_return_barrier_r: array<u32>;
@compute @workgroup_size(4)
fn early_return_barrier(@builtin(local_invocation_index) i: u32) {
    early_return_barrier_r[i] = early_return_barrier_h(early_return_barrier_s.k);
}

//# early_return_nested: §function-calls: a return from a switch in a loop of an inner function
//= scalar u32: 2
//= write u32: 0*4 -> 43 43 13 43
struct EarlyReturnNested { k: u32 }
var<immediate> early_return_nested_s: EarlyReturnNested;
var<private> early_return_nested_v: u32;
fn early_return_nested_g(i: u32) {
    loop {
        switch i + early_return_nested_v { case 3u: { return; } default: { early_return_nested_v = 4u; } }
        if early_return_nested_v == 4u { break; }
    }
}
fn early_return_nested_h(i: u32) { early_return_nested_g(i); if i == 9u { early_return_nested_v = 2u; return; } }
@group(0) @binding(0) var<storage, read_write> early_return_nested_r: array<u32>;
@compute @workgroup_size(4)
fn early_return_nested(@builtin(local_invocation_index) i: u32) {
    early_return_nested_v = early_return_nested_s.k - 1u;
    var n = 3u;
    early_return_nested_h(i);
    for (var j = 0u; j < early_return_nested_v; j++) { n += 10u; }
    early_return_nested_r[i] = n;
}

//# private_in_a_loop: a function called in the loop assigns the variable
//= scalar u32: 2
//= write u32: 0*4 -> 51*4
struct PrivateInALoop { k: u32 }
var<immediate> private_in_a_loop_s: PrivateInALoop;
var<private> private_in_a_loop_v: u32;
fn private_in_a_loop_h() { private_in_a_loop_v += 2u; }
@group(0) @binding(0) var<storage, read_write> private_in_a_loop_r: array<u32>;
@compute @workgroup_size(4)
fn private_in_a_loop(@builtin(local_invocation_index) i: u32) {
    private_in_a_loop_v = 1u;
    for (var j = 0u; j < private_in_a_loop_s.k; j++) { private_in_a_loop_h(); }
    var c = 1u;
    for (var j = 0u; j < private_in_a_loop_v; j++) { c += 10u; }
    private_in_a_loop_r[i] = c;
}

//# continue_before_an_assignment: a `continue` reaches the `continuing` block before the assignment
//= scalar u32: 2
//= write u32: 0*4 -> 3 3 7 3
struct ContinueBeforeAnAssignment { k: u32 }
var<immediate> continue_before_an_assignment_s: ContinueBeforeAnAssignment;
@group(0) @binding(0) var<storage, read_write> continue_before_an_assignment_r: array<u32>;
@compute @workgroup_size(4)
fn continue_before_an_assignment(@builtin(local_invocation_index) i: u32) {
    var n = 7u;
    var c = 0u;
    loop {
        n = 7u;
        if i != continue_before_an_assignment_s.k { n = 3u; continue; }
        n = 7u;
        continuing { for (var j = 0u; j < n; j++) { c += 1u; } break if c > 0u; }
    }
    continue_before_an_assignment_r[i] = c;
}

//# pointer_to_an_element: §function-calls: the address of an array's element
//= write u32: 0*4 -> 1 4 1 1
fn pointer_to_an_element_bump(p: ptr<function, u32>) { *p = *p * 3u + 1u; }
@group(0) @binding(0) var<storage, read_write> pointer_to_an_element_r: array<u32>;
@compute @workgroup_size(4)
fn pointer_to_an_element(@builtin(local_invocation_index) i: u32) {
    var t: array<u32, 4>;
    pointer_to_an_element_bump(&t[i]);
    if i == 1u { pointer_to_an_element_bump(&t[i]); }
    pointer_to_an_element_r[i] = t[i];
}

//# pointer_out_of_range: a function with a pointer to an element out of range changes nothing
//= scalar u32: 1000000000
//= scalar u32: 5
//= write u32: 0*4 -> 0*4
struct PointerOutOfRange { k: u32, m: u32 }
var<immediate> pointer_out_of_range_s: PointerOutOfRange;
fn pointer_out_of_range_bump(p: ptr<function, u32>, n: u32) {
    for (var i = 0u; i < n; i++) { *p = *p * 3u + i; if *p == 77u { return; } }
}
@group(0) @binding(0) var<storage, read_write> pointer_out_of_range_r: array<u32>;
@compute @workgroup_size(4)
fn pointer_out_of_range(@builtin(local_invocation_index) i: u32) {
    var t: array<u32, 4>;
    pointer_out_of_range_bump(&t[pointer_out_of_range_s.k + i], pointer_out_of_range_s.m);
    pointer_out_of_range_r[i] = t[(pointer_out_of_range_s.m * i) & 3u] + t[0];
}

//# pointer_to_parts: rows, members and columns, also in private memory and through another function
//= write u32: 0*4 -> 12 30 0xa 7
struct PointerToParts { a: u32, rows: array<array<u32, 2>, 2> }
var<private> pointer_to_parts_p: array<PointerToParts, 2>;
fn pointer_to_parts_row(p: ptr<function, array<u32, 2>>, by: u32) { (*p)[by & 1u] += by; }
fn pointer_to_parts_add(p: ptr<private, u32>, by: u32) { *p += by; }
fn pointer_to_parts_sum(p: ptr<private, array<u32, 2>>) -> u32 { return (*p)[0] + (*p)[1]; }
fn pointer_to_parts_inner(p: ptr<function, PointerToParts>, i: u32) { pointer_to_parts_row(&(*p).rows[i], 3u); }
fn pointer_to_parts_column(p: ptr<function, vec2f>) { *p = (*p).yx + 1; }
@group(0) @binding(0) var<storage, read_write> pointer_to_parts_r: array<u32>;
@compute @workgroup_size(1)
fn pointer_to_parts(@builtin(local_invocation_index) i: u32) {
    var s: PointerToParts;
    pointer_to_parts_row(&s.rows[i + 1], 5u);
    pointer_to_parts_inner(&s, i + 1);
    pointer_to_parts_row(&s.rows[0], 4u);
    pointer_to_parts_r[0] = s.rows[1][1] + s.rows[0][0];
    pointer_to_parts_add(&pointer_to_parts_p[i + 1].rows[i][1], 10u);
    pointer_to_parts_add(&pointer_to_parts_p[1].rows[i][0], 20u);
    pointer_to_parts_r[1] = pointer_to_parts_sum(&pointer_to_parts_p[i + 1].rows[0]);
    pointer_to_parts_r[2] = pointer_to_parts_p[1].rows[0][1];
    var m = mat2x2f(1, 2, 3, 4);
    pointer_to_parts_column(&m[i + 1]);
    pointer_to_parts_r[3] = u32(m[1][0]) + u32(m[1][1]) - u32(m[0][1]);
}

//# a_run_time_array_alone: a structure with only a run-time-sized array
//= read u32: 1 2 3 4
//= write u32: 0*4 -> 4 3 2 1
struct ARunTimeArrayAlone { values: array<u32> }
@group(0) @binding(0) var<storage, read> a_run_time_array_alone_x: ARunTimeArrayAlone;
@group(0) @binding(1) var<storage, read_write> a_run_time_array_alone_r: ARunTimeArrayAlone;
@compute @workgroup_size(4)
fn a_run_time_array_alone(@builtin(local_invocation_index) i: u32) {
    a_run_time_array_alone_r.values[i] = a_run_time_array_alone_x.values[arrayLength(&a_run_time_array_alone_x.values) - 1u - i];
}

//# names_of_macros: names that compilers or the generated code use for macros and types
//= scalar u32: 3
//= write u32: 0*4 -> 16 17 18 19
struct NamesOfMacros { UNORDERED: u32 }
struct uint4 { linux: u32, i386: u32, errno: u32 }
var<immediate> names_of_macros_s: NamesOfMacros;
const FLT_MAX: f32 = 3.4e38;
const M_PI = 3.0;
const HALF_MAX = 3u;
const DBL_MAX_1 = 1u;
fn INFINITY(NAN: u32) -> u32 { let LANES_w = NAN; return LANES_w + HALF_MAX - DBL_MAX_1; }
@group(0) @binding(0) var<storage, read_write> names_of_macros_r: array<u32>;
@compute @workgroup_size(4)
fn names_of_macros(@builtin(local_invocation_index) EOF: u32) {
    let LANES = names_of_macros_s.UNORDERED * 2u;
    var UNORDERED = uint4(1u, 2u, u32(min(FLT_MAX, M_PI)));
    let LANES_ = LANES + 1u;
    var unix = UNORDERED.linux;
    UNORDERED.errno += unix + UNORDERED.i386;
    names_of_macros_r[EOF] = INFINITY(LANES) + LANES_ - 5u + UNORDERED.errno - LANES + EOF + 6u;
    names_of_macros_r[EOF] -= 0u;
}

//# pointers_that_share: §alias-analysis, pointers may share memory that is only read, or that one of them does not access
//= write u32: 0*6 -> 14 9 5 11 24 8
@group(0) @binding(0) var<storage, read_write> pointers_that_share_r: array<u32>;
var<private> shared_private: array<u32, 2> = array<u32, 2>(5u, 7u);
fn share_sum(a: ptr<private, u32>, b: ptr<private, u32>, c: ptr<private, array<u32, 2>>) -> u32 {
    return *a + *b + (*c)[1] + shared_private[0] - 10u;
}
fn share_unused(a: ptr<function, u32>, b: ptr<function, u32>) -> u32 { let q = b; *a += 2u; return *a; }
fn share_neither(a: ptr<private, u32>) -> u32 { shared_private[0] += 0u; let q = a; return shared_private[0]; }
fn share_other(a: ptr<function, u32>, b: ptr<function, u32>) -> u32 { *a += 3u; *b += *a; return *b; }
fn share_length(a: ptr<storage, array<u32>, read_write>, b: ptr<storage, u32, read_write>) { *b = arrayLength(a) * 4u; }
@compute @workgroup_size(1)
fn pointers_that_share() {
    var v = array<u32, 2>(7u, 8u);
    var w = 0u;
    pointers_that_share_r[0] = share_sum(&shared_private[1], &shared_private[1], &shared_private) - 2u;
    pointers_that_share_r[1] = share_unused(&v[0], &v[0]);
    pointers_that_share_r[2] = share_neither(&shared_private[0]);
    pointers_that_share_r[3] = share_other(&v[1], &w);
    share_length(&pointers_that_share_r, &pointers_that_share_r[4]);
    // Within one function, pointers may share what they write.
    let p = &w;
    let q = &w;
    *p = 3u;
    *q += 5u;
    pointers_that_share_r[5] = *p;
}
