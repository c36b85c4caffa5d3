//! launch main groups=1 lengths=32,1
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> scale: array<u32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let near = (i32(id.x) - 16) * i32(scale[0] | 1u);
    let far = i64(near);
    var flags = 0u;
    if far < 9 { flags |= 1u; }
    if far > -9 { flags |= 2u; }
    if u64(near) < 9 { flags |= 4u; }
    if i64(id.x - 16u) < 9 { flags |= 8u; }
    y[id.x] = flags | (u32(far >> 40u) << 4u);
}
