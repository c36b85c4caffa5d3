// Signed and 64-bit indices: a negative one is out of range, and none is truncated to 32 bits before its check.

//# negative_wide: a negative i64 index of a runtime-sized array reads zero and writes nothing
//= needs i64
//= read u32: 5 6 7 8
//= write u32: 9*4 -> 1 1 9 9
//= write u32: 9*6 -> 0 0 0 0 5 6
@group(0) @binding(0) var<storage, read> negative_wide_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> negative_wide_y: array<u32>;
@group(0) @binding(2) var<storage, read_write> negative_wide_r: array<u32>;
@compute @workgroup_size(6)
fn negative_wide(@builtin(local_invocation_index) l: u32) {
    negative_wide_y[i64(l) - 4li] = 1u;
    negative_wide_y[i64(l) - 1000000000000li] = 2u;
    negative_wide_y[i64(l) + 4294967296li] = 3u;
    negative_wide_r[l] = negative_wide_x[i64(l) - 4li];
}

//# large_wide: a u64 beyond 32 bits, and an i64 that would be in range if truncated to 32 bits
//= needs i64
//= read u32: 5 6 7 8
//= write u32: 9*4 -> 9*4
//= write u32: 9*4 -> 0 0 0 5
//= scalar u32: 1
struct LargeWide { one: u32 }
var<immediate> large_wide_s: LargeWide;
@group(0) @binding(0) var<storage, read> large_wide_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> large_wide_y: array<u32>;
@group(0) @binding(2) var<storage, read_write> large_wide_r: array<u32>;
@compute @workgroup_size(1)
fn large_wide() {
    let top = u64(large_wide_s.one) << 32u;
    large_wide_y[top] = 1u;
    large_wide_y[top + 3lu] = 2u;
    large_wide_y[u64(0) - u64(large_wide_s.one)] = 3u;
    large_wide_y[-i64(top)] = 4u;
    large_wide_r[0] = large_wide_x[top];
    large_wide_r[1] = large_wide_x[i64(top) + 1li];
    large_wide_r[2] = large_wide_x[-i64(top) + 1li];
    large_wide_r[3] = large_wide_x[top - (u64(large_wide_s.one) << 32u)];
}

//# negative_in_fixed: arrays of fixed size: in buffers, work-group memory, private memory, and values
//= needs i64
//= read u32: 5 6 7 8
//= write u32: 9*10 -> 0*5 7 8 7 8 7
//= scalar i32: -2
struct NegativeInFixed { k: i32 }
var<immediate> negative_in_fixed_s: NegativeInFixed;
@group(0) @binding(0) var<storage, read> negative_in_fixed_x: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> negative_in_fixed_r: array<u32>;
var<workgroup> negative_in_fixed_w: array<u32, 4>;
var<private> negative_in_fixed_p: array<u32, 4>;
@compute @workgroup_size(1)
fn negative_in_fixed() {
    let k = i64(negative_in_fixed_s.k);
    var own: array<u32, 4>;
    for (var i = 0u; i < 4u; i++) {
        own[i] = negative_in_fixed_x[i];
        negative_in_fixed_w[i] = negative_in_fixed_x[i];
        negative_in_fixed_p[i] = negative_in_fixed_x[i];
    }
    let value = negative_in_fixed_x;
    own[k] = 1u;
    negative_in_fixed_w[k] = 1u;
    negative_in_fixed_p[k * 1000000000000li] = 1u;
    negative_in_fixed_r[0] = negative_in_fixed_x[k];
    negative_in_fixed_r[1] = own[k];
    negative_in_fixed_r[2] = negative_in_fixed_w[k];
    negative_in_fixed_r[3] = negative_in_fixed_p[k];
    negative_in_fixed_r[4] = value[k];
    negative_in_fixed_r[5] = negative_in_fixed_x[k + 4li];
    negative_in_fixed_r[6] = own[u64(k + 5li)];
    negative_in_fixed_r[7] = negative_in_fixed_w[k + 4li];
    negative_in_fixed_r[8] = negative_in_fixed_p[u64(k + 5li)];
    negative_in_fixed_r[9] = value[k + 4li];
}

//# wide_components: vectors and matrices, where an index truncated to 32 bits would be in range
//= needs i64
//= read u32: 5 6 7 8
//= write f32: 9*9 -> 0 0 0 2 0 0 0 4 3
//= write u32: 9*8 -> 9 9 9 5 9 9 9 9
//= scalar u32: 1
struct WideComponents { one: u32 }
var<immediate> wide_components_s: WideComponents;
@group(0) @binding(0) var<storage, read> wide_components_x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> wide_components_r: array<f32>;
@group(0) @binding(2) var<storage, read_write> wide_components_y: array<vec4<u32>>;
@compute @workgroup_size(1)
fn wide_components() {
    let one = i64(wide_components_s.one);
    let top = one << 32u;
    var v = vec4<f32>(1.0, 2.0, 3.0, 4.0);
    let value = vec4<f32>(1.0, 2.0, 3.0, 4.0) * f32(one);
    v[top] = 7.0;
    v[-one] = 7.0;
    var m = mat2x2<f32>(1.0, 2.0, 3.0, 4.0);
    m[top][0] = 7.0;
    m[0][top] = 7.0;
    m[-one][one] = 7.0;
    wide_components_r[0] = v[top];
    wide_components_r[1] = value[top + 1li];
    wide_components_r[2] = value[-one];
    wide_components_r[3] = value[one];
    wide_components_r[4] = m[top][0];
    wide_components_r[5] = m[0][top + 1li];
    wide_components_r[6] = m[-one][-one];
    wide_components_r[7] = m[one][one];
    wide_components_r[8] = v[one + 1li];
    wide_components_y[0][one + 2li] = wide_components_x[0][one - 1li];
    wide_components_y[0][top] = 7u;
    wide_components_y[1][-one] = 7u;
    wide_components_y[top][0] = 7u;
}

//# wide_chains: each index of a chain is checked, atomics too
//= needs i64
//= write u32: 0*8 -> 0 0 0 1 0 2 0 0
//= write u32: 1 2 3 4 5 -> 1 2 9 4 5
//= scalar i32: 1
struct WideChains { one: i32 }
struct WideTail { head: u32, tail: array<array<u32, 2>> }
var<immediate> wide_chains_s: WideChains;
@group(0) @binding(0) var<storage, read_write> wide_chains_r: array<array<atomic<u32>, 4>>;
@group(0) @binding(1) var<storage, read_write> wide_chains_t: WideTail;
@compute @workgroup_size(1)
fn wide_chains() {
    let one = i64(wide_chains_s.one);
    atomicAdd(&wide_chains_r[0][one + 2li], 1u);
    atomicAdd(&wide_chains_r[one][one], 2u);
    atomicAdd(&wide_chains_r[-one][one], 4u);
    atomicAdd(&wide_chains_r[one][-one], 8u);
    atomicAdd(&wide_chains_r[0][one + 3li], 16u);
    atomicStore(&wide_chains_r[one + 1li][-one], 32u);
    wide_chains_t.tail[0][one] = 9u;
    wide_chains_t.tail[-one][one] = 10u;
    wide_chains_t.tail[one][-one] = 11u;
    wide_chains_t.tail[one + 1li][0] = 12u;
    wide_chains_t.tail[0][one + 1li] = 13u;
}
