//! launch main groups=1 lengths=64 seed=3
// WGSL: work-group memory starts as zeros.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> counts: array<atomic<u32>, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) item: vec3u, @builtin(global_invocation_id) id: vec3u) {
    atomicAdd(&counts[(item.x * 5u) & 63u], 1u);
    workgroupBarrier();
    y[id.x] = atomicLoad(&counts[item.x]);
}
