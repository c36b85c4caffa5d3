// NVIDIA's Vulkan driver (580.159, sm_90) computed the address in more bits than the index has: the store was lost.
//! launch k groups=1,1,1 lengths=576,192,0 scalars=0,0,0 seed=9930000069
struct A { n: u32, a0: i32, a1: u64, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<array<vec2<i32>, 3>>;
var<private> p0: vec3<i32> = vec3<i32>();
var<workgroup> w0: array<u64, 256>;
@compute @workgroup_size(256, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 256u + local.x;
    p0[((z[gid][2i][w0[local.x]] | p0[0u]) * 2i)] = z[gid][(s.a1 % 3lu)][1u];
    if (p0[i64(s.n)] < 2i) {
        return;
    }
    y[gid * 3u + 0u] = y[gid * 3u + 0u] * 31u + 1u;
}
