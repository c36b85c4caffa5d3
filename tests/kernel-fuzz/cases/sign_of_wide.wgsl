// NVIDIA's Vulkan driver (580.159, sm_90) refused the pipeline: the sign of a 64-bit integer.
//! launch f groups=1,1,1 lengths=768 seed=8
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(8, 8, 4)
fn f(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) lane: u32) {
    let gid = (group.y * count.x + group.x) * 256u + lane;
    if (sign((i64(gid) - 3li)) <= ((i64(gid) + 10li) / 5li)) {
    }
    y[gid * 3u + 2u] = y[gid * 3u + 2u] * 31u;
}
