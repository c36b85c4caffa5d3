// Flags of items in work-group memory: naga gives the array a stride of one byte, NVIDIA's Vulkan stores four.
//! launch k groups=1,1,1 lengths=6,1 scalars=0,0,0 seed=0
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<array<u32, 1>>;
var<workgroup> w0: array<bool, 33>;
var<workgroup> w1: array<i32, 33>;
@compute @workgroup_size(33, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 33u + at_lane;
    let lid = at_lane;
    w0[lid] = true;
    w1[lid]++;
    switch 1u {
        default: {
        }
        case 1u: {
            if w0[lid] {
                return;
            }
        }
    }
    y[gid * 3u] += arrayLength(&z);
}
