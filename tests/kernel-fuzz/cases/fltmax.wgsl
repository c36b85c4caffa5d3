//! launch main groups=1 lengths=64 seed=3
const FLT_MAX: f32 = 8192.0;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = min(y[id.x], FLT_MAX); }
