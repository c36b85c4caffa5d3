//! launch main groups=1 lengths=16 scalars=3,0
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let LANES = s.k * 2u;
    y[id.x] = LANES + id.x * LANES;
}
