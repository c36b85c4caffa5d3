//! launch main groups=1 lengths=16 seed=3
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3u) {
    y[i64(id.x) - 1000000000000li] = 1u;
}
