// Before version 15, clang has `_Float16` on few processors; what packs halves must not need it.
//! launch k groups=62 lengths=3968 scalars= seed=1
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(32)
fn k(@builtin(global_invocation_id) id: vec3u) {
    let half = id.x * 16u + 5u;
    let wide = unpack2x16float(half | ((half ^ 0x8003u) << 16u));
    y[2u * id.x] = bitcast<u32>(wide.x) ^ bitcast<u32>(wide.y);
    y[2u * id.x + 1u] = pack2x16float(wide.yx);
}
