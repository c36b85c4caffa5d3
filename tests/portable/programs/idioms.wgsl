// Relatives of what the shaders of other projects do. `src/programs.rs` lists the programs for each kind of idiom.

//# standard_layout: uniform_buffer_standard_layout: elements and members of a uniform buffer as in a storage buffer
//= read u32: 7 1.5f 2.5f 3.5f 4.5f 9 5 6
//= write u32: 0*4 -> 7 3.5f 9 6
struct StandardInner { n: u32 }
struct Standard { n: u32, list: array<f32, 4>, inner: StandardInner, pair: array<u32, 2> }
@group(0) @binding(0) var<uniform> standard_layout_u: Standard;
@group(0) @binding(1) var<storage, read_write> standard_layout_r: array<u32>;
@compute @workgroup_size(1)
fn standard_layout() {
    let list = &standard_layout_u.list;
    standard_layout_r[0] = standard_layout_u.n;
    standard_layout_r[1] = bitcast<u32>((*list)[standard_layout_u.n - 5u]);
    standard_layout_r[2] = standard_layout_u.inner.n;
    standard_layout_r[3] = standard_layout_u.pair[1];
}

//# standard_by_value: such a buffer passed by value
//= by_value standard_by_value_u
//= write f32: 0 -> 321
//= scalar f32: 1
//= scalar f32: 2
//= scalar f32: 3
@group(0) @binding(0) var<uniform> standard_by_value_u: array<f32, 3>;
@group(0) @binding(1) var<storage, read_write> standard_by_value_r: array<f32>;
@compute @workgroup_size(1)
fn standard_by_value() {
    for (var i = 0u; i < 3u; i++) { standard_by_value_r[0] += pow(10.0, f32(i)) * standard_by_value_u[i]; }
}

//# uniform_of_everything: matrices, arrays of matrices and of structures with vectors of three in one buffer
//= read f32: 1 2 3 0 4 5 6 0 7 8 0 0 9 10 0 0 11 12 13 14 15 16 17 18
//= write f32: 0*6 -> 6 10 12 13 14 18
struct UniformPart { v: vec3<f32>, f: f32 }
struct UniformAll { m: mat2x3<f32>, pair: array<mat2x2<f32>, 2>, parts: array<UniformPart, 2> }
@group(0) @binding(0) var<uniform> uniform_of_everything_u: UniformAll;
@group(0) @binding(1) var<storage, read_write> uniform_of_everything_r: array<f32>;
@compute @workgroup_size(1)
fn uniform_of_everything() {
    let i = u32(uniform_of_everything_u.m[0].x);
    uniform_of_everything_r[0] = uniform_of_everything_u.m[i].z;
    uniform_of_everything_r[1] = uniform_of_everything_u.pair[i][0][i];
    uniform_of_everything_r[2] = uniform_of_everything_u.parts[0].v[i];
    uniform_of_everything_r[3] = uniform_of_everything_u.parts[0].v.z;
    uniform_of_everything_r[4] = uniform_of_everything_u.parts[i - 1u].f;
    uniform_of_everything_r[5] = uniform_of_everything_u.parts[i].f;
}

//# unused_bindings: textures, samplers and buffers that the entry point does not use are no arguments
//= read u32: 4
//= write u32: 0 -> 8
@group(0) @binding(0) var unused_bindings_a: texture_2d<f32>;
@group(0) @binding(1) var unused_bindings_b: sampler;
@group(0) @binding(2) var unused_bindings_c: sampler_comparison;
@group(0) @binding(3) var unused_bindings_d: texture_depth_2d;
@group(0) @binding(4) var unused_bindings_e: texture_multisampled_2d<f32>;
@group(0) @binding(5) var unused_bindings_f: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(6) var unused_bindings_g: texture_cube<f32>;
@group(0) @binding(7) var<uniform> unused_bindings_h: mat4x4<f32>;
@group(0) @binding(8) var<storage, read_write> unused_bindings_i: array<atomic<u32>>;
@group(0) @binding(9) var<storage, read> unused_bindings_x: array<u32>;
@group(1) @binding(0) var<storage, read_write> unused_bindings_r: array<u32>;
fn unused_bindings_sampled() -> vec4<f32> {
    return textureSampleLevel(unused_bindings_a, unused_bindings_b, vec2<f32>(), 0.0);
}
@compute @workgroup_size(1)
fn unused_bindings() { unused_bindings_r[0] = 2u * unused_bindings_x[0]; }

//# overrides_by_name: overrides of all types without a default
//= constant overrides_by_name_items=4
//= constant overrides_by_name_twice=true
//= constant overrides_by_name_minus=-3
//= constant 42=0.5
//= write f32: 0*4 -> -2.5 -0.5 1.5 3.5
override overrides_by_name_items: u32;
override overrides_by_name_twice: bool;
override overrides_by_name_minus: i32;
@id(42) override overrides_by_name_half: f32;
override overrides_by_name_step: u32 = select(1u, 2u, overrides_by_name_twice);
@group(0) @binding(0) var<storage, read_write> overrides_by_name_r: array<f32>;
@compute @workgroup_size(overrides_by_name_items)
fn overrides_by_name(@builtin(local_invocation_index) i: u32) {
    overrides_by_name_r[i] =
        f32(i32(i * overrides_by_name_step) + overrides_by_name_minus) + overrides_by_name_half;
}

//# list_of_work: an atomic counter beside a list, and a dispatch size that one item stores
//= groups 2
//= write u32: 0*3 -> 4 1 1
//= write u32: 0*7 -> 4 _ _ _ _ 0 0
struct ListOfWork { count: atomic<u32>, items: array<u32> }
@group(0) @binding(0) var<storage, read_write> list_of_work_size: array<u32, 3>;
@group(0) @binding(1) var<storage, read_write> list_of_work_r: ListOfWork;
@compute @workgroup_size(4)
fn list_of_work(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    if id.x % 2u == 0u {
        let place = atomicAdd(&list_of_work_r.count, 1u);
        list_of_work_r.items[place] = id.x;
    }
    if all(id == vec3u()) { list_of_work_size = array(2u * groups.x, 1u, 1u); }
}

//# grid_stride: a loop over the tensor in steps of the whole launch
//= groups 2
//= write u32: 1*11 -> 1 2 3 4 5 6 7 8 9 10 11
@group(0) @binding(0) var<storage, read_write> grid_stride_r: array<u32>;
@compute @workgroup_size(2)
fn grid_stride(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    for (var i = id.x; i < arrayLength(&grid_stride_r); i += groups.x * 2u) { grid_stride_r[i] += i; }
}

//# barrier_by_the_launch: barriers in loops and conditions that depend on the launch, on a uniform buffer and on overrides
//= constant barrier_by_the_launch_n=3
//= groups 2
//= read u32: 2
//= write u32: 0*8 -> 1 2 3 0 1 2 3 0
override barrier_by_the_launch_n: u32;
@group(0) @binding(0) var<uniform> barrier_by_the_launch_u: u32;
@group(0) @binding(1) var<storage, read_write> barrier_by_the_launch_r: array<u32>;
var<workgroup> barrier_by_the_launch_w: array<u32, 4>;
@compute @workgroup_size(4)
fn barrier_by_the_launch(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u,
                         @builtin(num_workgroups) groups: vec3u, @builtin(workgroup_id) group: vec3u) {
    var rounds = barrier_by_the_launch_u;
    if group.x >= groups.x { return; }
    while rounds > 0u && groups.x == 2u {
        barrier_by_the_launch_w[i] = i;
        if barrier_by_the_launch_n == 3u { workgroupBarrier(); }
        barrier_by_the_launch_r[id.x] = barrier_by_the_launch_w[(i + 1u) % 4u];
        storageBarrier();
        textureBarrier();
        workgroupBarrier();
        rounds -= 1u;
    }
}

//# uniform_flag: one item decides by an atomic, and all read its decision
//= groups 3
//= write u32: 0*7 -> 3 1 1 1 1 1 1
@group(0) @binding(0) var<storage, read_write> uniform_flag_r: array<atomic<u32>>;
var<workgroup> uniform_flag_ticket: u32;
@compute @workgroup_size(2)
fn uniform_flag(@builtin(local_invocation_index) i: u32) {
    if i == 0u { uniform_flag_ticket = atomicAdd(&uniform_flag_r[0], 1u); }
    let ticket = workgroupUniformLoad(&uniform_flag_ticket);
    if ticket < 3u { workgroupBarrier(); }
    atomicAdd(&uniform_flag_r[1u + 2u * ticket + i], 1u);
}

//# random_state: a generator in private memory, hexadecimal numbers, rotations and shifts
//= write u32: 0*4 -> 277803737 2 0x80000000 15
var<private> random_state_s: u32 = 0u;
const RANDOM_STATE_BITS = array(1u, 2u, 4u, 8u);
@group(0) @binding(0) var<storage, read_write> random_state_r: array<u32>;
fn random_state_next() -> u32 {
    random_state_s = random_state_s * 747796405u + 277803737u;
    return random_state_s;
}
@compute @workgroup_size(1)
fn random_state() {
    random_state_r[0] = random_state_next();
    random_state_r[1] = firstTrailingBit(extractBits(0xF4u, 0u, 8u));
    random_state_r[2] = reverseBits(1u);
    for (var i = 0; i < 4; i++) { random_state_r[3] |= RANDOM_STATE_BITS[i]; }
}

//# float_sum: a sum of floats by compare and exchange
//= groups 2
//= write u32: 0 -> 36f
@group(0) @binding(0) var<storage, read_write> float_sum_r: atomic<u32>;
fn float_sum_add(x: f32) {
    var old = atomicLoad(&float_sum_r);
    loop {
        let exchange = atomicCompareExchangeWeak(&float_sum_r, old, bitcast<u32>(bitcast<f32>(old) + x));
        if exchange.exchanged { break; }
        old = exchange.old_value;
    }
}
@compute @workgroup_size(4)
fn float_sum(@builtin(global_invocation_id) id: vec3u) { float_sum_add(f32(id.x + 1u)); }

//# uniform_subgroups: conditions of `subgroup_size` and `num_subgroups` are uniform, so barriers may depend on them
//= needs subgroups
//= write u32: 0*64 -> 2016*64
@group(0) @binding(0) var<storage, read_write> uniform_subgroups_r: array<u32>;
var<workgroup> uniform_subgroups_sums: array<u32, 64>;
@compute @workgroup_size(64)
fn uniform_subgroups(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32,
                     @builtin(num_subgroups) count: u32, @builtin(subgroup_id) subgroup: u32) {
    let sum = subgroupAdd(i);
    if subgroupElect() { uniform_subgroups_sums[subgroup] = sum; }
    var total = 0u;
    for (var k = 0u; k < count; k++) {
        workgroupBarrier();
        total += uniform_subgroups_sums[k];
    }
    if size <= 128u { workgroupBarrier(); }
    uniform_subgroups_r[i] = total;
}

//# pointers_to_tensors: functions take pointers to tensors, to parts of them, to uniform buffers and to work-group memory
//= read u32: 3 0 0 0 10 20 30 40
//= write u32: 0*7 -> 5 10 20 30 40 2 3
struct PointersTensor { count: u32, list: array<u32> }
struct PointersUniform { n: u32, v: vec4<u32> }
@group(0) @binding(0) var<uniform> pointers_to_tensors_u: PointersUniform;
@group(0) @binding(1) var<storage, read_write> pointers_to_tensors_r: PointersTensor;
var<workgroup> pointers_to_tensors_w: array<array<u32, 4>, 2>;
fn pointers_component(v: ptr<uniform, PointersUniform>, i: u32) -> u32 { return v.v[i]; }
fn pointers_vector(v: ptr<uniform, vec4<u32>>) -> vec4<u32> { return *v; }
fn pointers_store(row: ptr<workgroup, array<u32, 4>>, i: u32, x: u32) { (*row)[i] = x; }
fn pointers_fill(list: ptr<storage, array<u32>, read_write>, row: ptr<workgroup, array<u32, 4>>, i: u32) {
    (*list)[i] = pointers_read(row, i);
}
fn pointers_read(row: ptr<workgroup, array<u32, 4>>, i: u32) -> u32 {
    if i >= 4u { return 99u; }
    return row[i];
}
fn pointers_finish(r: ptr<storage, PointersTensor, read_write>) {
    r.count = arrayLength(&r.list) - 1u;
    r.list[4] += 2u;
}
@compute @workgroup_size(4)
fn pointers_to_tensors(@builtin(local_invocation_index) i: u32) {
    let last = &pointers_to_tensors_w[1];
    pointers_store(&pointers_to_tensors_w[i % 2u], i, pointers_component(&pointers_to_tensors_u, i));
    workgroupBarrier();
    if i % 2u == 0u { pointers_store(last, i, pointers_vector(&pointers_to_tensors_u.v)[i]); }
    workgroupBarrier();
    pointers_fill(&pointers_to_tensors_r.list, last, i);
    storageBarrier();
    if i == 0u {
        pointers_finish(&pointers_to_tensors_r);
        pointers_to_tensors_r.list[5] = pointers_to_tensors_u.n;
    }
}

//# pointers_to_atomics: functions take pointers to atomics in tensors and in work-group memory, out of range too
//= write u32: 0*3 -> 4 6 0
//= write u32: 9*4 -> 0*4
@group(0) @binding(0) var<storage, read_write> pointers_to_atomics_r: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> pointers_to_atomics_old: array<u32>;
var<workgroup> pointers_to_atomics_w: array<atomic<u32>, 2>;
fn pointers_count(counter: ptr<storage, atomic<u32>, read_write>) -> u32 { return atomicAdd(counter, 1u); }
fn pointers_add(counter: ptr<workgroup, atomic<u32>>, x: u32) { atomicAdd(counter, x); }
@compute @workgroup_size(4)
fn pointers_to_atomics(@builtin(local_invocation_index) i: u32) {
    let old = pointers_count(&pointers_to_atomics_r[0]);
    pointers_to_atomics_old[old] = pointers_count(&pointers_to_atomics_r[i + 3u]);
    pointers_add(&pointers_to_atomics_w[i % 2u], i);
    workgroupBarrier();
    if i == 0u {
        let sum = atomicLoad(&pointers_to_atomics_w[0]) + atomicLoad(&pointers_to_atomics_w[1]);
        atomicStore(&pointers_to_atomics_r[1], sum);
    }
}

//# half_frexp: §frexp-builtin, the exponent of an f16 is an i32
//= needs f16
//= read f16: 1 -10 0 0.25 65504 6e-8 3 -0.375
//= write i32: 9*14 -> 1 8 4 -10 0 0 -1 8 16 -23 8 2 -1 -12
enable f16;
struct HalfFrexp { at: array<vec4h, 2> }
@group(0) @binding(0) var<storage, read> half_frexp_x: HalfFrexp;
@group(0) @binding(1) var<storage, read_write> half_frexp_y: array<i32>;
fn half_frexp_of(x: f16) -> i32 {
    let e: i32 = frexp(x).exp;
    return max(e, -100);
}
@compute @workgroup_size(1)
fn half_frexp() {
    var r = frexp(half_frexp_x.at[0].x);
    half_frexp_y[0] = r.exp;
    half_frexp_y[1] = i32(r.fract * 16h);
    r = frexp(half_frexp_x.at[0].y);
    half_frexp_y[2] = r.exp;
    half_frexp_y[3] = i32(r.fract * 16h);
    half_frexp_y[4] = half_frexp_of(half_frexp_x.at[0].z);
    half_frexp_y[5] = i32(frexp(half_frexp_x.at[0].z).fract * 16h);
    let two = frexp(half_frexp_x.at[0].wz);
    half_frexp_y[6] = two.exp.x + two.exp.y;
    half_frexp_y[7] = i32(two.fract.x * 16h);
    let four = frexp(half_frexp_x.at[1]);
    half_frexp_y[8] = four.exp.x;
    half_frexp_y[9] = four.exp.y;
    half_frexp_y[10] = i32(four.fract.y * 16h);
    half_frexp_y[11] = select(four.exp.z, 0, four.exp.z == 1);
    half_frexp_y[12] = frexp(half_frexp_x.at[1].wwz).exp[1];
    half_frexp_y[13] = i32(ldexp(four.fract.w, four.exp.w + 5));
}

//# strict_rules: §expression-grammar, §behaviors-rules, §attributes and others: what is just valid
//= read u32: 6 3
//= write u32: 0*9 -> 24 7 1 5 6 10 8 4 2147483648
@group(0) @binding(0) var<storage, read> strict_rules_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> strict_rules_y: array<u32>;
var<workgroup> strict_rules_n: atomic<u32>;
fn strict_rules_of(p: ptr<workgroup, atomic<u32>>) -> u32 { return atomicLoad(p); }
fn strict_rules_first(n: u32) -> u32 {
    var i = n;
    @diagnostic(off, derivative_uniformity)
    loop { if i % 4u == 0u { return i; } i++; }
}
@diagnostic(off, derivative_uniformity)
@compute @workgroup_size(1)
fn strict_rules() {
    let a = strict_rules_x[0];
    let b = strict_rules_x[1];
    strict_rules_y[0] = (a - b) << b;
    strict_rules_y[1] = (a & b) | (a ^ 1u);
    let both = a < b + 4u && b << 1u == a && array<vec2<u32>, 2>()[0].x == 0u;
    strict_rules_y[2] = select(0u, 1u, both);
    strict_rules_y[3] = clamp(a, 5u, 5u);
    strict_rules_y[4] = extractBits(a, 0u, 32u) + extractBits(a, 32u, 0u);
    atomicStore(&strict_rules_n, 9u);
    atomicAdd(&strict_rules_n, 1u);
    strict_rules_y[5] = strict_rules_of(&strict_rules_n);
    strict_rules_y[6] = strict_rules_first(a);
    // §integer-types: concrete integers wrap, also in constants.
    const wrapped = 2147483647i + 1i;
    strict_rules_y[8] = bitcast<u32>(wrapped);
    switch a @diagnostic(off, derivative_uniformity) {
        default: { for (;;) { if strict_rules_y[7] > 3u { break; } strict_rules_y[7] += 2u; } }
    }
}

//# negations: two signs without a blank are a subtraction and a negation, and `i--` stays a decrement
//= read i32: 7 3
//= write i32: 0*3 -> 10 -3 6
@group(0) @binding(0) var<storage, read> negations_x: array<i32>;
@group(0) @binding(1) var<storage, read_write> negations_y: array<i32>;
@compute @workgroup_size(1)
fn negations() {
    let a = negations_x[0];
    let b = negations_x[1];
    negations_y[0] = a--b;
    negations_y[1] = ---b;
    negations_y[2] = a;
    negations_y[2]--;
}
