//! launch main groups=1 lengths=16 scalars=400000000,0 seed=5
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let v = array<u32, 4>(0u, 1u, s.m, 3u);
    if s.k < 4u { y[v[s.k] + id.x] = 1u; }
}
