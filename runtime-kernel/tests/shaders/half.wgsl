enable f16;
@group(0) @binding(0) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;
var<workgroup> tile: array<f16, 32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    tile[lane] = dot(x[id.x], vec4<f16>(1.0h, 2.0h, 0.5h, -1.0h));
    workgroupBarrier();
    y[id.x] = max(tile[31u - lane], f16(f32(y[id.x]) * 2.0));
}
