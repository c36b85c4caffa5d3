// NVIDIA's Vulkan driver (580.159) crashes while it creates the pipeline.
//! launch k groups=1,1,1 lengths=0,0 scalars=0,0,0 seed=0
struct A { n: u32, a0: i32, a1: u32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@compute @workgroup_size(5, 3, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 15u + at_lane;
    let lid = at_lane;
    var float4 = 0u;
    while float4 < 2u {
        float4 += 1u;
        var v3: f32 = 0f;
        if (lid <= 8u) {
            v3 = array<f32, 16>()[s.a0];
            return;
        }
    }
    for (var v5 = 0u; v5 < count.y; v5 += 1u) {
    }
    y[gid * 3u] += arrayLength(&x);
}
