// NVIDIA's Vulkan driver (580.159, sm_90) loses the decrement.
//! launch k groups=1,1,1 lengths=2,0 scalars=0,0 seed=0
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> p0: vec2<u64> = vec2<u64>();
@compute @workgroup_size(1, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 1u + local.x;
    for (var v1 = 0u; v1 < 1u; v1++) {
        p0 = vec2<u64>(p0[v1], 1lu);
        for (var v0 = 0u; v0 < 3u; v0 += 2u) {
            p0 %= vec2<u64>(p0.x, 10lu);
            p0.x--;
        }
    }
    y[gid * 3u + 1u] = y[gid * 3u + 1u] * 31u + u32(p0.x);
}
