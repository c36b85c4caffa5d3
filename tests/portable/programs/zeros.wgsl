// Work-group memory is zero-initialised. Each program runs many groups, so that memory is reused.

//# zeroed_counts: atomics that are incremented without being set
//= groups 64
//= write u32: 9*64 -> 64*64
@group(0) @binding(0) var<storage, read_write> zeroed_counts_r: array<atomic<u32>>;
var<workgroup> zeroed_counts_w: array<atomic<u32>, 64>;
@compute @workgroup_size(64)
fn zeroed_counts(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3<u32>) {
    for (var i = 0u; i < 64u; i++) { atomicAdd(&zeroed_counts_w[(l * 5u + i) & 63u], 1u); }
    workgroupBarrier();
    if (g.x == 0u) { atomicStore(&zeroed_counts_r[l], 64u); }
    workgroupBarrier();
    if (atomicLoad(&zeroed_counts_w[l]) != 64u) { atomicMax(&zeroed_counts_r[l], 1000u); }
}

//# zeroed_padding: elements skipped by a condition, padding between columns, and arrays of arrays
//= groups 8
//= write u32: 9*8 -> 0*8
struct ZeroedPadding { a: u32, v: vec3<f32>, rows: array<array<u32, 3>, 5> }
@group(0) @binding(0) var<storage, read_write> zeroed_padding_r: array<u32>;
var<workgroup> zeroed_padding_w: array<u32, 72>;
var<workgroup> zeroed_padding_s: ZeroedPadding;
var<workgroup> zeroed_padding_m: array<mat2x2<f32>, 3>;
var<workgroup> zeroed_padding_b: bool;
@compute @workgroup_size(4, 2)
fn zeroed_padding(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3<u32>) {
    var sum = 0u;
    for (var i = l; i < 72u; i += 8u) { sum += zeroed_padding_w[i]; }
    sum += zeroed_padding_s.a + u32(zeroed_padding_s.v[l % 3u]) + zeroed_padding_s.rows[l % 5u][l % 3u];
    sum += u32(zeroed_padding_m[l % 3u][l & 1u].y) + u32(zeroed_padding_b);
    workgroupBarrier();
    for (var i = l; i < 72u; i += 8u) { zeroed_padding_w[i] = 7u; }
    for (var i = 0u; i < 5u; i++) { zeroed_padding_s.rows[i][l % 3u] = 7u; }
    zeroed_padding_s.a = 7u;
    zeroed_padding_s.v = vec3<f32>(7.0);
    zeroed_padding_m[l % 3u] = mat2x2<f32>(7.0, 7.0, 7.0, 7.0);
    zeroed_padding_b = true;
    if (g.x == 7u || sum != 0u) { zeroed_padding_r[l] = sum; }
}

//# zeroed_index: an index that is set only under a false condition
//= groups 4
//= write u32: 9*16 -> 0*16
//= scalar u32: 0
struct ZeroedIndex { k: u32 }
var<immediate> zeroed_index_s: ZeroedIndex;
@group(0) @binding(0) var<storage, read_write> zeroed_index_r: array<u32>;
var<workgroup> zeroed_index_w: u32;
var<workgroup> zeroed_index_t: array<u32, 4>;
@compute @workgroup_size(4)
fn zeroed_index(@builtin(global_invocation_id) id: vec3<u32>) {
    if (zeroed_index_s.k == 1u) { zeroed_index_w = 3u; }
    zeroed_index_t[zeroed_index_w] = 5u;
    zeroed_index_r[id.x] = zeroed_index_t[1];
}

//# helper_twice: a function's work-group memory is the same at every call
//= groups 64
//= write u32: 0*32768 -> 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256 15*256 16*256
@group(0) @binding(0) var<storage, read_write> helper_twice_r: array<u32>;
var<workgroup> helper_twice_w: array<atomic<u32>, 256>;
fn helper_twice_part(group: u32, part: u32, item: u32) {
    atomicStore(&helper_twice_w[item], 0u);
    workgroupBarrier();
    for (var i = 0u; i < 15u; i++) { atomicAdd(&helper_twice_w[(item * 7u + i) & 255u], 1u); }
    workgroupBarrier();
    atomicAdd(&helper_twice_w[item], part);
    helper_twice_r[256u * (2u * group + part) + item] += atomicLoad(&helper_twice_w[item]);
}
@compute @workgroup_size(256)
fn helper_twice(@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {
    helper_twice_part(g.x, 0u, item.x);
    helper_twice_part(g.x, 1u, item.x);
}
