//! launch main groups=1 lengths=16 scalars=100000000,3 seed=5
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var t: array<u32, 4>;
    if s.k >= 4u || id.x >= s.m { return; }
    t[s.k] = 5u;
    y[id.x] = t[1] + t[s.k];
}
