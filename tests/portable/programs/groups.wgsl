// Workgroup memory, barriers and atomics: cooperation of invocations.

//# reverse_in_group: §workgroupBarrier-builtin
//= groups 2
//= read i32: 1 2 3 4 5 6 7 8 9 10
//= write i32: 0*10 -> 5 4 3 2 1 10 9 8 7 6
@group(0) @binding(0) var<storage, read> reverse_in_group_x: array<i32>;
@group(0) @binding(1) var<storage, read_write> reverse_in_group_r: array<i32>;
var<workgroup> reverse_in_group_w: array<i32, 5>;
@compute @workgroup_size(5)
fn reverse_in_group(@builtin(local_invocation_index) l: u32, @builtin(global_invocation_id) g: vec3<u32>) {
    reverse_in_group_w[l] = reverse_in_group_x[g.x];
    workgroupBarrier();
    reverse_in_group_r[g.x] = reverse_in_group_w[4u - l];
}

//# tree_reduction: §workgroupBarrier-builtin in a uniform loop
//= read f32: 1 2 3 4 5 6 7 8
//= write f32: 0 -> 36
@group(0) @binding(0) var<storage, read> tree_reduction_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> tree_reduction_r: array<f32>;
var<workgroup> tree_reduction_w: array<f32, 8>;
@compute @workgroup_size(8)
fn tree_reduction(@builtin(local_invocation_index) i: u32) {
    tree_reduction_w[i] = tree_reduction_x[i];
    workgroupBarrier();
    for (var step = 4u; step > 0u; step >>= 1u) {
        if (i < step) { tree_reduction_w[i] += tree_reduction_w[i + step]; }
        workgroupBarrier();
    }
    if (i == 0u) { tree_reduction_r[0] = tree_reduction_w[0]; }
}

//# private_over_barriers: values of an invocation survive barriers in a loop
//= write u32: 0*4 -> 630 941 1254 369
@group(0) @binding(0) var<storage, read_write> private_over_barriers_r: array<u32>;
var<workgroup> private_over_barriers_w: array<u32, 4>;
@compute @workgroup_size(4)
fn private_over_barriers(@builtin(local_invocation_index) i: u32) {
    var own = i; var sum = 0u;
    let square = i * i;
    for (var k = 0u; k < 3u; k++) {
        private_over_barriers_w[i] = own;
        workgroupBarrier();
        let other = private_over_barriers_w[(i + 1u) % 4u];
        workgroupBarrier();
        own += 1u;
        sum += other;
    }
    private_over_barriers_r[i] = sum * 100u + own * 10u + square;
}

//# barrier_in_uniform_if: §uniformity: a barrier under a uniform condition
//= groups 2
//= write u32: 0*6 -> 1 2 0 30 30 30
@group(0) @binding(0) var<storage, read_write> barrier_in_if_r: array<u32>;
var<workgroup> barrier_in_if_w: array<u32, 3>;
@compute @workgroup_size(3)
fn barrier_in_uniform_if(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
    var r = 30u;
    if (g.x == 0u) {
        barrier_in_if_w[i] = i;
        workgroupBarrier();
        r = barrier_in_if_w[(i + 1u) % 3u];
    }
    barrier_in_if_r[g.x * 3u + i] = r;
}

//# barrier_in_function: a function with barriers, called twice
//= write u32: 0*4 -> 2 3 0 1
var<workgroup> barrier_in_function_w: array<u32, 4>;
fn barrier_in_function_shift(i: u32, x: u32) -> u32 {
    barrier_in_function_w[i] = x;
    workgroupBarrier();
    let r = barrier_in_function_w[(i + 1u) % 4u];
    workgroupBarrier();
    return r;
}
@group(0) @binding(0) var<storage, read_write> barrier_in_function_r: array<u32>;
@compute @workgroup_size(4)
fn barrier_in_function(@builtin(local_invocation_index) i: u32) {
    let once = barrier_in_function_shift(i, i);
    barrier_in_function_r[i] = barrier_in_function_shift(i, once);
}

//# uniform_load: §workgroupUniformLoad-builtin decides a loop with barriers
//= write u32: 0*5 -> 3 3 3 3 30
var<workgroup> uniform_load_n: u32;
var<workgroup> uniform_load_sum: atomic<u32>;
@group(0) @binding(0) var<storage, read_write> uniform_load_r: array<u32>;
@compute @workgroup_size(4)
fn uniform_load(@builtin(local_invocation_index) i: u32) {
    if (i == 2u) { uniform_load_n = 3u; atomicStore(&uniform_load_sum, 0u); }
    let n = workgroupUniformLoad(&uniform_load_n);
    for (var k = 0u; k < n; k++) {
        workgroupBarrier();
        atomicAdd(&uniform_load_sum, k + i);
        workgroupBarrier();
    }
    uniform_load_r[i] = n;
    if (i == 0u) { uniform_load_r[4] = atomicLoad(&uniform_load_sum); }
}

//# storage_barrier: §storageBarrier-builtin: one invocation writes, another one of the group reads
//= write u32: 0*8 -> 7 6 5 4 3 2 1 0
@group(0) @binding(0) var<storage, read_write> storage_barrier_r: array<u32>;
@compute @workgroup_size(8)
fn storage_barrier(@builtin(local_invocation_index) i: u32) {
    storage_barrier_r[i] = i;
    storageBarrier();
    let other = storage_barrier_r[7u - i];
    storageBarrier();
    storage_barrier_r[i] = other;
}

//# divergent_between_barriers: loops and returns of functions between two barriers
//= write i32: 0*6 -> 5 0 1 3 6 10
fn divergent_sum(n: i32) -> i32 {
    var sum = 0;
    for (var k = 0; ; k++) {
        if (k == 100) { break; }
        if (k > n) { return sum; }
        sum += k;
    }
    return -1;
}
var<workgroup> divergent_w: array<i32, 6>;
@group(0) @binding(0) var<storage, read_write> divergent_r: array<i32>;
@compute @workgroup_size(6)
fn divergent_between_barriers(@builtin(local_invocation_index) i: u32) {
    divergent_w[i] = i32(i);
    workgroupBarrier();
    var r = divergent_w[(i + 5u) % 6u];
    if (i > 0u) { r = divergent_sum(r); }
    divergent_r[i] = r;
}

//# uniform_break: a `break` in the middle of a uniform loop with barriers
//= write u32: 0*4 -> 2 2 2 2
var<workgroup> uniform_break_w: u32;
@group(0) @binding(0) var<storage, read_write> uniform_break_r: array<u32>;
@compute @workgroup_size(4)
fn uniform_break(@builtin(local_invocation_index) i: u32) {
    var turns = 0u;
    loop {
        if (i == turns) { uniform_break_w = turns; }
        let w = workgroupUniformLoad(&uniform_break_w);
        if (w == 2u) { break; }
        turns += 1u;
    }
    uniform_break_r[i] = turns;
}

//# nested_uniform_loops: barriers two loops deep, with continue
//= write u32: 0*3 -> 6 6 6
var<workgroup> nested_uniform_w: array<u32, 3>;
@group(0) @binding(0) var<storage, read_write> nested_uniform_r: array<u32>;
@compute @workgroup_size(3)
fn nested_uniform_loops(@builtin(local_invocation_index) i: u32) {
    var sum = 0u;
    for (var a = 0u; a < 3u; a++) {
        if (a == 1u) { continue; }
        for (var b = 0u; b < 3u; b++) {
            nested_uniform_w[i] = b;
            workgroupBarrier();
            sum += nested_uniform_w[(i + a) % 3u];
            workgroupBarrier();
        }
    }
    nested_uniform_r[i] = sum;
}

//# barrier_in_switch: a uniform switch with barriers in its cases
//= groups 3
//= write u32: 0*6 -> 1 0 11 10 7 7
var<workgroup> barrier_in_switch_w: array<u32, 2>;
@group(0) @binding(0) var<storage, read_write> barrier_in_switch_r: array<u32>;
@compute @workgroup_size(2)
fn barrier_in_switch(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
    var r = 0u;
    switch (g.x) {
        case 0u: { barrier_in_switch_w[i] = i; workgroupBarrier(); r = barrier_in_switch_w[1u - i]; }
        case 1u: { barrier_in_switch_w[i] = i + 10u; workgroupBarrier(); r = barrier_in_switch_w[1u - i]; }
        default: { r = 7u; }
    }
    barrier_in_switch_r[g.x * 2u + i] = r;
}

//# uniform_return: all invocations return before a barrier
//= groups 2
//= write u32: 9*4 -> 9 9 1 0
var<workgroup> uniform_return_w: array<u32, 2>;
@group(0) @binding(0) var<storage, read_write> uniform_return_r: array<u32>;
@compute @workgroup_size(2)
fn uniform_return(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
    if (g.x == 0u) { return; }
    uniform_return_w[i] = i;
    workgroupBarrier();
    uniform_return_r[g.x * 2u + i] = uniform_return_w[1u - i];
}

//# workgroup_structs: structs, vectors and matrices in workgroup memory
//= write f32: 0*4 -> 13 23 33 10
struct WorkgroupStruct { v: vec3<f32>, n: u32 }
var<workgroup> workgroup_structs_s: array<WorkgroupStruct, 3>;
var<workgroup> workgroup_structs_m: mat2x2<f32>;
@group(0) @binding(0) var<storage, read_write> workgroup_structs_r: array<f32>;
@compute @workgroup_size(3)
fn workgroup_structs(@builtin(local_invocation_index) i: u32) {
    workgroup_structs_s[i].v = vec3<f32>(10, 0, 3) + vec3<f32>(f32(i) * 10, 0, 0);
    workgroup_structs_s[i].n = i;
    if (i == 0u) { workgroup_structs_m = mat2x2<f32>(1, 2, 3, 4); }
    workgroupBarrier();
    let other = workgroup_structs_s[2u - i];
    workgroup_structs_r[other.n] = other.v.x + other.v.z;
    if (i == 1u) { workgroup_structs_r[3] = workgroup_structs_m[0].x + workgroup_structs_m[0].y + workgroup_structs_m[1].x + workgroup_structs_m[1].y; }
}

//# atomic_operations: §atomic-rmw over several groups
//= groups 4
//= write u32: 5 100 3 0xff 1 7 1000 -> 37 68 31 0xe0 33 7 1000
//= write i32: 5 -5 -> 31 -31
@group(0) @binding(0) var<storage, read_write> atomic_operations_u: array<atomic<u32>, 7>;
@group(0) @binding(1) var<storage, read_write> atomic_operations_i: array<atomic<i32>, 2>;
@compute @workgroup_size(8)
fn atomic_operations(@builtin(global_invocation_id) g: vec3<u32>) {
    atomicAdd(&atomic_operations_u[0], 1u);
    atomicSub(&atomic_operations_u[1], 1u);
    atomicMax(&atomic_operations_u[2], g.x);
    atomicAnd(&atomic_operations_u[3], ~g.x);
    atomicOr(&atomic_operations_u[4], 32u);
    atomicXor(&atomic_operations_u[5], g.x);
    atomicMin(&atomic_operations_u[6], g.x + 1000u);
    atomicMax(&atomic_operations_i[0], i32(g.x));
    atomicMin(&atomic_operations_i[1], -i32(g.x));
}

//# atomic_results: §atomic-rmw returns the old value; §atomic-exchange; §atomic-compare-exchange-weak
//= write u32: 10 0*6 -> 99 10 15 7 1 0 50
@group(0) @binding(0) var<storage, read_write> atomic_results_r: array<atomic<u32>, 7>;
@compute @workgroup_size(1)
fn atomic_results() {
    let before = atomicAdd(&atomic_results_r[0], 5u);
    atomicStore(&atomic_results_r[1], before);
    let swapped = atomicExchange(&atomic_results_r[0], 7u);
    atomicStore(&atomic_results_r[2], swapped);
    var exchanged = atomicCompareExchangeWeak(&atomic_results_r[0], 7u, 50u);
    // It may fail for no reason.
    while (!exchanged.exchanged) { exchanged = atomicCompareExchangeWeak(&atomic_results_r[0], 7u, 50u); }
    atomicStore(&atomic_results_r[3], exchanged.old_value);
    atomicStore(&atomic_results_r[4], select(0u, 1u, exchanged.exchanged));
    let refused = atomicCompareExchangeWeak(&atomic_results_r[0], 7u, 60u);
    atomicStore(&atomic_results_r[5], select(0u, 1u, refused.exchanged));
    atomicStore(&atomic_results_r[6], refused.old_value);
    atomicStore(&atomic_results_r[0], 99u);
}

//# atomic_lock_free: a compare-and-exchange loop of all invocations of several groups
//= groups 8
//= write u32: 0 -> 2016
@group(0) @binding(0) var<storage, read_write> atomic_lock_free_r: atomic<u32>;
@compute @workgroup_size(8)
fn atomic_lock_free(@builtin(global_invocation_id) g: vec3<u32>) {
    var old = atomicLoad(&atomic_lock_free_r);
    loop {
        let result = atomicCompareExchangeWeak(&atomic_lock_free_r, old, old + g.x);
        if (result.exchanged) { break; }
        old = result.old_value;
    }
}

//# atomic_structs: atomics in structs of workgroup memory
//= groups 2
//= write u32: 0*2 -> 66 66
struct AtomicStructs { n: u32, sum: atomic<u32>, largest: atomic<i32> }
var<workgroup> atomic_structs_s: AtomicStructs;
@group(0) @binding(0) var<storage, read_write> atomic_structs_r: array<u32>;
@compute @workgroup_size(12)
fn atomic_structs(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
    if (i == 0u) { atomicStore(&atomic_structs_s.sum, 0u); atomicStore(&atomic_structs_s.largest, -5); }
    workgroupBarrier();
    atomicAdd(&atomic_structs_s.sum, i);
    atomicMax(&atomic_structs_s.largest, i32(i));
    workgroupBarrier();
    if (i == 3u && atomicLoad(&atomic_structs_s.largest) == 11) { atomic_structs_r[g.x] = atomicLoad(&atomic_structs_s.sum); }
}

//# atomics_out_of_range: an atomic operation out of range is skipped, or applied to the last element
//= write u32: 1 2 -> 1 2|10
@group(0) @binding(0) var<storage, read_write> atomics_out_of_range_r: array<atomic<u32>>;
@compute @workgroup_size(4)
fn atomics_out_of_range(@builtin(local_invocation_index) i: u32) {
    atomicAdd(&atomics_out_of_range_r[i + 2u], 1u);
    atomicAdd(&atomics_out_of_range_r[i * 1073741823u + 70u], 1u);
}

//# tiled_transpose: two-dimensional groups over a matrix whose size is not a multiple of theirs
//= groups 2 2
//= read u32: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14
//= write u32: 0*15 -> 0 5 10 1 6 11 2 7 12 3 8 13 4 9 14
@group(0) @binding(0) var<storage, read> tiled_transpose_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> tiled_transpose_r: array<u32>;
var<workgroup> tiled_transpose_w: array<array<u32, 5>, 4>;
@compute @workgroup_size(4, 4)
fn tiled_transpose(@builtin(local_invocation_id) l: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>) {
    let column = g.x * 4u + l.x; let row = g.y * 4u + l.y;
    if (column < 5u && row < 3u) { tiled_transpose_w[l.y][l.x] = tiled_transpose_x[row * 5u + column]; }
    workgroupBarrier();
    let to_column = g.y * 4u + l.x; let to_row = g.x * 4u + l.y;
    if (to_column < 3u && to_row < 5u) { tiled_transpose_r[to_row * 3u + to_column] = tiled_transpose_w[l.x][l.y]; }
}

//# subgroup_sums: §subgroupadd-builtin and others, for any subgroup size
//= needs subgroups
//= write u32: 0*4 -> 1 1 1 1
@group(0) @binding(0) var<storage, read_write> subgroup_sums_r: array<u32>;
var<workgroup> subgroup_sums_wrong: atomic<u32>;
@compute @workgroup_size(64)
fn subgroup_sums(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32,
                 @builtin(subgroup_invocation_id) lane: u32) {
    if (i == 0u) { atomicStore(&subgroup_sums_wrong, 0u); }
    workgroupBarrier();
    let sum = subgroupAdd(lane);
    let before = subgroupExclusiveAdd(1u);
    let first = subgroupBroadcastFirst(lane);
    let largest = subgroupMax(lane);
    if (sum != size * (size - 1u) / 2u) { atomicOr(&subgroup_sums_wrong, 1u); }
    if (before != lane) { atomicOr(&subgroup_sums_wrong, 2u); }
    if (first != 0u) { atomicOr(&subgroup_sums_wrong, 4u); }
    if (largest != size - 1u) { atomicOr(&subgroup_sums_wrong, 8u); }
    workgroupBarrier();
    if (i < 4u) { subgroup_sums_r[i] = select(0u, 1u, (atomicLoad(&subgroup_sums_wrong) & (1u << i)) == 0u); }
}

//# subgroups_in_three_dimensions: §subgroup_invocation_id, work-groups of several dimensions have subgroups, too
//= groups 1 2
//= needs subgroups
//= write u32: 0*6 -> 24 24 1 1 1 276
@group(0) @binding(0) var<storage, read_write> subgroups_3d_y: array<atomic<u32>>;
var<workgroup> subgroups_3d_first: atomic<u32>;
@compute @workgroup_size(4, 2, 3)
fn subgroups_in_three_dimensions(@builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) id: u32,
                                 @builtin(num_subgroups) count: u32, @builtin(subgroup_size) size: u32,
                                 @builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) i: u32) {
    let items = subgroupAdd(1u);
    let before = subgroupExclusiveAdd(1u);
    let all_in_order = subgroupAll(before <= lane && lane < size && id < count);
    let first = subgroupBroadcastFirst(i);
    let sum = subgroupAdd(i);
    if before == 0u {
        atomicAdd(&subgroups_3d_first, 1u);
        atomicAdd(&subgroups_3d_y[group.y], items);
        if group.y == 0u { atomicAdd(&subgroups_3d_y[5], sum); }
    }
    workgroupBarrier();
    if i == 0u {
        // Mesa 22.3 forms a subgroup of each row, which its `num_subgroups` does not count.
        subgroups_flag(2u, atomicLoad(&subgroups_3d_first) >= count && count * size >= 24u);
        subgroups_flag(3u, all_in_order);
        subgroups_flag(4u, first < 24u);
    }
}
fn subgroups_flag(at: u32, is: bool) { atomicMax(&subgroups_3d_y[at], u32(is)); }

//# subgroup_lanes_in_two_dimensions: §subgroup_invocation_id, in functions and structures as well
//= needs subgroups
//= write u32: 9*16 -> 1*16
struct LanesOfSquare { @builtin(local_invocation_id) item: vec3u, @builtin(local_invocation_index) index: u32 }
@group(0) @binding(0) var<storage, read_write> lanes_of_square_y: array<u32>;
@compute @workgroup_size(2, 8)
fn subgroup_lanes_in_two_dimensions(all: LanesOfSquare, @builtin(subgroup_invocation_id) lane: u32) {
    lanes_of_square_y[all.item.x + 2u * all.item.y] = u32(subgroupShuffle(all.index, lane) == all.index);
}
