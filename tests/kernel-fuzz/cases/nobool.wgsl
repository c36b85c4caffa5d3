//! launch main groups=1 lengths=16 scalars=5,1
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> w: u32;
fn spin(n: u32) -> u32 {
    for (var i = 0u; i < n; i++) { workgroupBarrier(); if i == 2u { return 5u; } }
    return 6u;
}
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = spin(s.k) + s.m; }
