// Kernels that are rejected. `//= says` lists words of the error; the line it names is marked with `//!`.

//# no_entry_point: a module without a kernel
//= says compute
fn no_entry_point() { }

//# other_stage: only compute shaders
//= says fragment | @compute
@fragment
fn other_stage() { } //!

//# same_binding: one tensor for each binding
//= says binding | 0
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn same_binding() { r[0] = x[0]; }

//# sampler: textures are read, not sampled
//= says sampler | textureLoad
@group(0) @binding(0) var x: texture_2d<f32>;
@group(0) @binding(1) var s: sampler; //!
@group(0) @binding(2) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn sampler_() { r[0] = textureSampleLevel(x, s, vec2(0.0, 0.0), 0.0).x; }

//# texture_argument: functions take no textures
//= says texture | functions
@group(0) @binding(0) var x: texture_2d<f32>; //!
@group(0) @binding(1) var<storage, read_write> r: array<f32>;
fn first(t: texture_2d<f32>) -> f32 { return textureLoad(t, vec2(0, 0), 0).x; }
@compute @workgroup_size(1) fn texture_argument() { r[0] = first(x); }

//# texture_cube: textures have up to three dimensions
//= says texture | dimensions
@group(0) @binding(0) var x: texture_multisampled_2d<f32>; //!
@group(0) @binding(1) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn texture_cube() { r[0] = textureLoad(x, vec2(0, 0), 0).x; }

//# small_texels: a texel is a word or more
//= says texture | bytes
@group(0) @binding(0) var x: texture_storage_2d<r16float, write>; //!
@compute @workgroup_size(1) fn small_texels() { textureStore(x, vec2(0, 0), vec4(1.0)); }

//# texture_call: an error in a call of textureLoad is that of the text
//= says textureLoad
@group(0) @binding(0) var x: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn texture_call() {
    r[0] = textureLoad(x, vec2(0, 0), 0, 0, 0).x; //!
}

//# vector_scalar: the members of the immediate struct are scalars
//= says scalar | v
struct Arguments { n: u32, v: vec2<f32> }
var<immediate> a: Arguments; //!
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn vector_scalar() { r[0] = a.v.x; }

//# bare_immediate: the immediate is a struct
//= says struct
var<immediate> a: u32; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn bare_immediate() { r[0] = a; }

//# divergent_if: a barrier under a divergent condition
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_if(@builtin(local_invocation_index) i: u32) {
    if (i < 4u) {
        workgroupBarrier(); //!
    }
    r[i] = i;
}

//# divergent_data: a barrier under a condition that is read from a written tensor
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_data(@builtin(local_invocation_index) i: u32) {
    if (r[0] < 4u) {
        storageBarrier(); //!
    }
    r[i] = i;
}

//# divergent_loop: a barrier in a loop that invocations leave at different times
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_loop(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < i; k++) {
        workgroupBarrier(); //!
    }
    r[i] = i;
}

//# divergent_break: a barrier in a loop after a divergent break
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_break(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 4u; k++) {
        workgroupBarrier(); //!
        if (k == i) { break; }
    }
    r[i] = i;
}

//# divergent_continue: a barrier after a divergent continue
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_continue(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 4u; k++) {
        if (k == i) { continue; }
        workgroupBarrier(); //!
    }
    r[i] = i;
}

//# divergent_return: a barrier after a divergent return
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_return(@builtin(local_invocation_index) i: u32) {
    if (i == 3u) { return; }
    workgroupBarrier(); //!
    r[i] = i;
}

//# divergent_switch: a barrier in a divergent case
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_switch(@builtin(local_invocation_index) i: u32) {
    switch (i) {
        case 2u: {
            workgroupBarrier(); //!
        }
        default: { }
    }
    r[i] = i;
}

//# divergent_call: a barrier in a function that is called divergently
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn together() {
    workgroupBarrier(); //!
}
@compute @workgroup_size(8) fn divergent_call(@builtin(local_invocation_index) i: u32) {
    if (i == 3u) { together(); }
    r[i] = i;
}

//# divergent_argument: a barrier in a function under a divergent argument
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn perhaps(yes: bool) {
    if (yes) {
        workgroupBarrier(); //!
    }
}
@compute @workgroup_size(8) fn divergent_argument(@builtin(local_invocation_index) i: u32) {
    perhaps(i == 3u);
    r[i] = i;
}

//# divergent_variable: a barrier under a variable that was assigned in divergent control flow
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_variable(@builtin(local_invocation_index) i: u32) {
    var n = 1u;
    if (i == 3u) { n = 2u; }
    if (n == 1u) {
        workgroupBarrier(); //!
    }
    r[i] = i;
}

//# divergent_loop_variable: a barrier under a variable that a later iteration makes divergent
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_loop_variable(@builtin(local_invocation_index) i: u32) {
    var n = 1u;
    for (var k = 0u; k < 3u; k++) {
        if (n == 1u) {
            workgroupBarrier(); //!
        }
        n = i;
    }
    r[i] = n;
}

//# divergent_axis: invocation ids vary by WGSL, also along an axis where the group has one invocation
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8, 1, 1) fn divergent_axis(@builtin(local_invocation_id) l: vec3u) {
    if (l.y == 0u) {
        workgroupBarrier(); //!
    }
    r[l.x] = l.x;
}

//# divergent_element: a barrier under a part of an array that a component of an invocation id selects
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
struct Pair { x: array<u32, 2> }
@compute @workgroup_size(8, 1, 1) fn divergent_element(@builtin(local_invocation_id) l: vec3u) {
    var pair: Pair;
    let p = &pair.x;
    let q = &(*p)[l.y];
    if (*q == 0u) {
        workgroupBarrier(); //!
    }
    r[l.x] = l.x;
}

//# divergent_component: by WGSL, a vector varies as a whole
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_component(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {
    let both = vec2u(i, g.x);
    if (both.y == 0u) {
        workgroupBarrier(); //!
    }
    r[i] = i;
}

//# divergent_iteration: a barrier at the start of an iteration, of which a divergent `continue` skips the rest
//= says barrier
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_iteration(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 4u; k++) {
        workgroupBarrier(); //!
        if (k == i) { continue; }
        r[i] = k;
    }
}

//# divergent_load: workgroupUniformLoad is a barrier
//= says barrier
var<workgroup> n: u32;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_load(@builtin(local_invocation_index) i: u32) {
    if (i > 1u) {
        r[i] = workgroupUniformLoad(&n); //!
    }
}

//# syntax: naga's own message and lines
//= says expected
@compute @workgroup_size(1) fn syntax() {
    let x = ; //!
}

//# types: naga's own message and lines
//= says
@compute @workgroup_size(1) fn types() {
    let x: u32 = 1.5; //!
}

//# constant_division: a constant expression that divides by zero
//= says
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn constant_division() {
    r[0] = 7u / 0u; //!
}

//# missing_override: an override without a value
//= says n | constant
override n: u32; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn missing_override() { r[0] = n; }

//# unknown_override: a value for an override that does not exist
//= constant m=4
//= says m | size
override size: u32 = 1u;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn unknown_override() { r[0] = size; }

//# wrong_override: a constant of another type
//= constant size=green
//= says size | green
override size: u32 = 1u;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn wrong_override() { r[0] = size; }

//# no_alias: an element type for a kernel without one
//= element f16
//= says alias T
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn no_alias() { r[0] = 1u; }

//# empty_group: a work-group without invocations
//= says empty_group | work-group size
@compute @workgroup_size(0) fn empty_group() { }

//# subgroups_on_the_host: where subgroups are emulated, all invocations of a work-group take part
//= needs subgroups
//= says on a device without subgroups | all invocations
diagnostic(off, subgroup_uniformity);
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn subgroups_on_the_host(@builtin(local_invocation_index) i: u32) {
    if i < 4u {
        r[i] = subgroupAdd(i); //!
    }
}

//# continue_past_a_let: §behavior-of-statements: what `continuing` uses must be declared on all paths to it
//= says bypasses the declaration of "j"
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<workgroup> t: array<u32, 4>;
@compute @workgroup_size(16) fn continue_past_a_let(@builtin(global_invocation_id) id: vec3u) {
    var k = 0u;
    loop {
        if k >= r[0] { break; }
        if r[1] == 1u { continue; } //!
        let j = (r[id.x] * 7u) & 3u;
        r[id.x] = t[k & 3u] + j;
        continuing { t[j] = 5u; k = k + 1u; }
    }
}

//# continue_past_a_var: a variable too
//= says bypasses the declaration of "j"
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn continue_past_a_var() {
    var k = 0u;
    loop {
        switch r[1] { case 1u: { continue; } default: { } } //!
        var j = 7u;
        r[0] += j;
        continuing { k += 1u; { r[2] = j; } break if k > 3u; }
    }
}

//# continue_past_a_pointer: also if only the condition of `break if` uses it, through another value
//= says bypasses the declaration of "p"
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn continue_past_a_pointer(@builtin(local_invocation_index) i: u32) {
    loop {
        { if r[1] == 1u { continue; } } //!
        let p = &r[i];
        continuing { break if *p + 1u > 3u; }
    }
}

//# doubled_by_inlining: a few lines that expand to a million statements
//= says doubled_by_inlining | 400000
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<private> p: u32;
fn f0() { p += 1u; }
fn f1() { f0(); if p > 1u { f0(); } }
fn f2() { f1(); if p > 2u { f1(); } }
fn f3() { f2(); if p > 3u { f2(); } }
fn f4() { f3(); if p > 4u { f3(); } }
fn f5() { f4(); if p > 5u { f4(); } }
fn f6() { f5(); if p > 6u { f5(); } }
fn f7() { f6(); if p > 7u { f6(); } }
fn f8() { f7(); if p > 8u { f7(); } }
fn f9() { f8(); if p > 9u { f8(); } }
fn f10() { f9(); if p > 10u { f9(); } }
fn f11() { f10(); if p > 11u { f10(); } }
fn f12() { f11(); if p > 12u { f11(); } }
fn f13() { f12(); if p > 13u { f12(); } }
fn f14() { f13(); if p > 14u { f13(); } }
fn f15() { f14(); if p > 15u { f14(); } }
fn f16() { f15(); if p > 16u { f15(); } }
fn f17() { f16(); if p > 17u { f16(); } }
fn f18() { f17(); if p > 18u { f17(); } }
fn f19() { f18(); if p > 19u { f18(); } }
fn f20() { f19(); if p > 20u { f19(); } }
@compute @workgroup_size(16) fn doubled_by_inlining() { f20(); r[0] = p; }

//# too_many_brackets: the nesting limit of the parser
//= says nested too deep | 120
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn too_many_brackets() {
    r[0] = ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1u)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))); //!
}

//# doubled_members: a few lines that declare a structure with a million members
//= says S11 | more than 10000
struct S0 { a: u32, b: u32 }
struct S1 { a: S0, b: S0 }
struct S2 { a: S1, b: S1 }
struct S3 { a: S2, b: S2 }
struct S4 { a: S3, b: S3 }
struct S5 { a: S4, b: S4 }
struct S6 { a: S5, b: S5 }
struct S7 { a: S6, b: S6 }
struct S8 { a: S7, b: S7 }
struct S9 { a: S8, b: S8 }
struct S10 { a: S9, b: S9 }
struct S11 { a: S10, b: S10 } //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn doubled_members() { var s: S11; r[0] = 1u; }

//# by_value_unknown: the name of a buffer that is passed by value is that of a uniform buffer
//= by_value paramz
//= says paramz | params
@group(0) @binding(0) var<uniform> params: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn by_value_unknown() { r[0] = params.x; }

//# by_value_storage: a storage buffer is not passed by value
//= by_value x
//= says no uniform buffer
@group(0) @binding(0) var<storage> x: u32;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn by_value_storage() { r[0] = x; }

//# by_value_too_large: a buffer that is passed by value is small
//= by_value table
//= says more than 64 numbers | pass it as a tensor
@group(0) @binding(0) var<uniform> table: array<vec4<u32>, 17>; //!
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn by_value_too_large() { r[0] = table[0].x; }

//# by_value_beside_scalars: a kernel has one source of scalars
//= by_value params
//= says var<immediate>
struct Scalars { n: u32 }
var<immediate> scalars: Scalars;
@group(0) @binding(0) var<uniform> params: u32; //!
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn by_value_beside_scalars() { r[0] = params + scalars.n; }

//# push_constant: the older name of the scalars
//= says var<immediate>
var<push_constant> n: u32; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn push_constant() { r[0] = n; }

//# uniform_without_length: the other layout of one uniform buffer permits no array without a length in another
//= says "list" has no size
@group(0) @binding(0) var<uniform> table: array<u32, 4>;
@group(0) @binding(1) var<uniform> list: array<vec4<u32>>; //!
@group(0) @binding(2) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn uniform_without_length() { r[0] = table[1] + list[1].x; }

//# uniform_atomic: nor an atomic
//= says "count"
@group(0) @binding(0) var<uniform> table: array<u32, 4>;
@group(0) @binding(1) var<uniform> count: atomic<u32>; //!
@group(0) @binding(2) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn uniform_atomic() { r[0] = table[1] + atomicLoad(&count); }

//# storage_pointer: a pointer to a tensor is the address of one
//= says "p" of function 'first' is `ptr<storage, array<u32, 4>, read_write>` | `ptr<function,
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn first(p: ptr<storage, array<u32, 4>, read_write>) -> u32 { return (*p)[0]; }
@compute @workgroup_size(1) fn storage_pointer() { var own: array<u32, 4>; r[1] = first(&own); } //!

//# alias_arguments: §alias-analysis, two pointers to one variable, one of which is written through
//= says "a" and "b" of function 'alias_first' both point into "v" | writes through "b"
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn alias_first(a: ptr<function, u32>, b: ptr<function, u32>) -> u32 { let old = *a; *b += 1u; return old; }
@compute @workgroup_size(1) fn alias_arguments() {
    var v = 0u;
    r[0] = alias_first(&v, &v); //!
}

//# alias_parts: §alias-analysis, a part of a variable counts as the variable
//= says "a" and "b" of function 'alias_parts_of' both point into "s" | writes through "a"
struct S { x: array<u32, 3>, y: u32 }
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn alias_parts_of(a: ptr<function, u32>, n: u32, b: ptr<function, array<u32, 3>>) -> u32 { *a = n; return (*b)[1]; }
@compute @workgroup_size(1) fn alias_parts() {
    var s: S;
    let p = &s;
    r[0] = alias_parts_of(&p.y, 2u, &p.x); //!
}

//# alias_tensor: §alias-analysis, two pointers to elements of one tensor
//= says "a" and "b" of function 'alias_move' both point into "r" | writes through "a"
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn alias_move(a: ptr<storage, u32, read_write>, b: ptr<storage, u32, read_write>) { *a = *b; }
@compute @workgroup_size(1) fn alias_tensor() {
    alias_move(&r[0], &r[1]); //!
}

//# alias_variable: §alias-analysis, a pointer to a variable that the function writes
//= says 'alias_both' reads "p" through its argument "a" | writes "p" itself
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<private> p: u32;
fn alias_both(a: ptr<private, u32>) -> u32 { p = 2u; return *a; }
@compute @workgroup_size(1) fn alias_variable() {
    r[0] = alias_both(&p); //!
}

//# alias_through_calls: §alias-analysis, the same where other functions access both
//= says 'alias_outer' writes "p" through its argument "a" | reads "p" itself
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<private> p: array<u32, 4>;
fn alias_reader(i: u32) -> u32 { return p[i]; }
fn alias_writer(a: ptr<private, u32>) { if r[1] > 9u { *a = 2u; } }
fn alias_outer(a: ptr<private, u32>) -> u32 { alias_writer(a); return alias_reader(1u); }
@compute @workgroup_size(1) fn alias_through_calls() {
    r[0] = alias_outer(&p[0]); //!
}

//# alias_passed_on: §alias-analysis, an argument that is passed on twice, in a function that nothing calls
//= says "a" and "b" of function 'alias_swap' both point into what "q" points to
fn alias_swap(a: ptr<function, u32>, b: ptr<function, u32>) { let old = *a; *a = *b; *b = old; }
fn alias_unused(q: ptr<function, array<u32, 2>>) {
    alias_swap(&q[0], &q[1]); //!
}
@compute @workgroup_size(1) fn alias_passed_on() { }

//# alias_atomic: §alias-analysis, atomic operations write, and workgroupUniformLoad reads
//= says "a" and "b" of function 'alias_add' both point into "w" | writes through "a"
struct S { n: atomic<u32>, m: u32 }
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<workgroup> w: S;
fn alias_add(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, u32>) -> u32 {
    atomicAdd(a, 1u);
    return workgroupUniformLoad(b);
}
@compute @workgroup_size(1) fn alias_atomic() {
    r[0] = alias_add(&w.n, &w.m); //!
}

//# too_many_braces: the nesting limit of blocks
//= says nested too deep | 127
@compute @workgroup_size(1) fn too_many_braces() {
    {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}} //!
}

//# loop_may_end: §behaviors, a loop with a `break` does not end a function
//= says 'loop_may_end_f' can end without returning
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn loop_may_end_f(n: u32) -> u32 { loop { if n > 2u { break; } if n == 1u { return 1u; } } } //!
@compute @workgroup_size(1) fn loop_may_end() { r[0] = loop_may_end_f(1u); }

//# continuing_twice: §loop-statement, a `continuing` block does not declare a name twice
//= says redefinition | a
@compute @workgroup_size(1) fn continuing_twice() {
    loop { let b = 1; continuing { let a = 1; let a = 2; break if a > 1; } } //!
}

//# loop_never_ends: §behaviors, a loop without `break` ends a function only if it returns
//= says loop_never_ends_f
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn loop_never_ends_f(n: u32) -> u32 { loop { loop { break; } } } //!
@compute @workgroup_size(1) fn loop_never_ends() { r[0] = loop_never_ends_f(1u); }

//# shift_of_a_sum: §expression-grammar, operands of shifts need parentheses
//= says `<<` follows `-` without parentheses
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn shift_of_a_sum() {
    r[0] = r[1] - r[2] << r[3]; //!
}

//# and_of_or: bitwise operators do not mix
//= says `|` follows `&` without parentheses
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn and_of_or() {
    r[0] = r[1] & r[2] | r[3]; //!
}

//# mixed_logic: && and || do not mix
//= says `||` follows `&&` without parentheses
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn mixed_logic() {
    if r[1] > 1u && r[2] > 1u || r[3] > 1u { //!
        r[0] = 1u;
    }
}

//# chained_comparison: comparisons do not chain
//= says `==` follows `<` without parentheses
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn chained_comparison() {
    let yes = true;
    if r[1] < r[2] == yes { r[0] = 1u; } //!
}

//# atomic_assigned: §atomic-types, only atomic operations access atomics
//= says `t[1]` is an atomic | `atomicStore`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<workgroup> t: array<atomic<u32>, 2>;
@compute @workgroup_size(1) fn atomic_assigned() {
    t[1] = 3u; //!
    r[0] = atomicLoad(&t[1]);
}

//# atomic_through_pointer: nor does an assignment through a pointer
//= says `*p` is an atomic
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<workgroup> n: atomic<u32>;
fn assign(p: ptr<workgroup, atomic<u32>>) {
    *p = 3u; //!
}
@compute @workgroup_size(1) fn atomic_through_pointer() { assign(&n); r[0] = atomicLoad(&n); }

//# atomics_copied: nor is a struct with atomics a value
//= says `s` contains atomics
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
struct Counts { n: atomic<u32>, m: u32 }
var<workgroup> s: Counts;
@compute @workgroup_size(1) fn atomics_copied() {
    let copy = s; //!
    r[0] = copy.m;
}

//# atomic_on_read: §atomic-types, atomics are in tensors that can be written
//= says "a" contains atomics | declare `var<storage, read_write> a`
@group(0) @binding(0) var<storage, read> a: array<atomic<u32>, 4>; //!
@group(0) @binding(1) var<storage, read_write> o: array<u32, 4>;
@compute @workgroup_size(1) fn atomic_on_read() {
    o[0] = atomicAdd(&a[0], 5u);
}

//# endless_loop: §behaviors-rules, a loop has an end
//= says this loop never ends | `break`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn endless_loop() {
    loop { //!
        r[0] += 1u;
        continue;
    }
}

//# endless_for: so has one without a condition, also within others
//= says this loop never ends
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn endless_for() {
    while r[1] > 2u {
        if r[0] == 7u { break; }
        for (var i = 0u; ; i++) { r[0] += i; } //!
    }
}

//# endless_switch: a `break` of a switch does not leave the loop around it
//= says this loop never ends
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn endless_switch() {
    loop { //!
        switch r[0] { case 1u, 2u: { break; } default: { r[0] = 1u; } }
    }
}

//# bounds_of_clamp: §clamp, the lower bound is below the upper one
//= says lower bound 5 is above the upper bound 1
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn bounds_of_clamp() {
    r[0] = clamp(r[1], 5.0, 1.0); //!
}

//# bounds_of_vectors: in each component
//= says lower bound 4 is above the upper bound 3
@group(0) @binding(0) var<storage, read_write> r: array<vec2<i32>>;
const low = vec2(1, 4);
@compute @workgroup_size(1) fn bounds_of_vectors() {
    r[0] = clamp(r[1], low, vec2(3)); //!
}

//# equal_edges: §smoothstep, the edges differ
//= says both edges are 2
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn equal_edges() {
    r[0] = smoothstep(2.0, 2.0, r[1]); //!
}

//# bits_beyond: §extractBits, offset and count are within the number
//= says offset 20 and count 13 go beyond the 32 bits
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn bits_beyond() {
    r[0] = extractBits(r[1], 20u, 13u); //!
}

//# bits_of_an_infinity: a constant is a number, also where its function could run
//= says `bitcast<f32>` | has no value
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn bits_of_an_infinity() {
    r[0] = bitcast<f32>(0x7f800000u); //!
}

//# infinite_half: naga has infinite constants
//= says `distance` | no number of `f16`
//= needs f16
enable f16;
@group(0) @binding(0) var<storage, read_write> r: array<f16>;
@compute @workgroup_size(1) fn infinite_half() {
    r[0] = distance(vec2(65504h), -vec2(65504h)); //!
}

//# beyond_halves: §quantizeToF16, of vectors
//= says quantizeToF16 | has no value
@group(0) @binding(0) var<storage, read_write> r: array<vec2f>;
const large = vec2f(1, 65520);
@compute @workgroup_size(1) fn beyond_halves() {
    r[0] = quantizeToF16(large); //!
}

//# constant_bits_beyond: where only a constant may be
//= says `extractBits` has no value as a constant | beyond the 32 bits
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn constant_bits_beyond() {
    const a = mix(1.0, 2.0, 0.5);
    const b = extractBits(u32(a), 30u, 3u); //!
    r[0] = b;
}

//# inserted_bits_beyond: §insertBits, too
//= says offset 33 and count 0 go beyond
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn inserted_bits_beyond() {
    r[0] = insertBits(r[1], r[2], 33u, 0u); //!
}

//# large_exponent: §ldexp, the exponent is in the range of the type
//= says exponent 129 is above 128
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn large_exponent() {
    r[0] = ldexp(r[1], 129); //!
}

//# large_lane: §subgroupbroadcast, an index is below 128
//= needs subgroups
//= says the index 128 of a subgroup is not below 128
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn large_lane(@builtin(local_invocation_index) i: u32) {
    r[i] = subgroupBroadcast(i, 128u); //!
}

//# bool_lane: an index is no bool
//= needs subgroups
//= says `bool`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn bool_lane(@builtin(local_invocation_index) i: u32) {
    r[i] = subgroupShuffle(i, i > 1u); //!
}

//# bool_operand: most operations take numbers
//= needs subgroups
//= says does not take `i > 1u` (of type `bool`)
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn bool_operand(@builtin(local_invocation_index) i: u32) {
    if subgroupBroadcastFirst(i > 1u) { r[i] = i; } //!
}

//# divergent_subgroup: §uniformity, all of a subgroup take part
//= needs subgroups
//= says a subgroup operation must be reached by all invocations of a subgroup | `diagnostic(off, subgroup_uniformity);`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn divergent_subgroup(@builtin(local_invocation_index) i: u32) {
    if i < 4u {
        r[i] = subgroupAdd(i); //!
    }
}

//# varying_distance: §subgroupshuffleup, one distance for all of a subgroup
//= needs subgroups
//= says this one varies | subgroupShuffle
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn varying_distance(@builtin(local_invocation_index) i: u32) {
    r[i] = subgroupShuffleUp(i, i); //!
}

//# subgroups_not_enabled: §enable-extensions-sec, subgroups need a directive
//= says `subgroupAdd` is part of subgroups | `enable subgroups;`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn subgroups_not_enabled(@builtin(local_invocation_index) i: u32) {
    r[i] = subgroupAdd(i); //!
}

//# subgroup_value_not_enabled: so do their built-in values
//= says `subgroup_size` is part of subgroups
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(8) fn subgroup_value_not_enabled(@builtin(subgroup_size) size: u32) { //!
    r[0] = size;
}

//# diagnostic_of_a_variable: §attributes, diagnostics are about functions and statements with blocks
//= says `@diagnostic` is not allowed here
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn diagnostic_of_a_variable() {
    @diagnostic(off, derivative_uniformity) var x = 1u; //!
    r[0] = x;
}

//# diagnostic_severity: and have one of four severities
//= says severity `never`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@diagnostic(never, derivative_uniformity) //!
@compute @workgroup_size(1) fn diagnostic_severity() { r[0] = 1u; }

//# large_constant: §floating-point-evaluation, constants do not overflow
//= says infinite
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn large_constant() {
    r[0] = 3e38f * 10f; //!
}

//# large_abstract_constant: nor do those without a type
//= says overflow
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn large_abstract_constant() {
    r[0] = f32(9223372036854775807 + 1); //!
}

//# unused_side: §logical-expressions, the side of `||` that is not evaluated has a type, too
//= says `foo(1)` | constant of type `bool`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
const unused = true || foo(1); //!
@compute @workgroup_size(1) fn unused_side() { r[0] = u32(unused); }

//# large_half: a number that `f16` does not have is not rounded to one
//= says `65519.0h` | no number of `f16`
//= needs f16
enable f16;
@group(0) @binding(0) var<storage, read_write> r: array<f16>;
@compute @workgroup_size(1) fn large_half() {
    r[0] = 65519.0h; //!
}

//# large_cast: an integer beyond `u32` has no bits of 32
//= says `bitcast<u32>(4294967296)` | beyond
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn large_cast() {
    r[0] = bitcast<u32>(4294967296); //!
}
