// NVIDIA's Vulkan driver (580.159, sm_90) took a wrong case for the absolute value of the most negative integer.
//! launch k groups=1,1,1 lengths=1,0 scalars=0,0,-2147483648 seed=141424509518
struct A { n: u32, a0: i32, a1: i32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(13, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 13u + local.x;
    switch abs(s.a1) {
        case 0i, 1i: {
            return;
        }
        case 2i: {
            let v4 = ((0u / gid) >= 10u);
        }
        default: {
        }
    }
    y[gid * 3u + 0u] = y[gid * 3u + 0u] * 31u + 0u;
}
