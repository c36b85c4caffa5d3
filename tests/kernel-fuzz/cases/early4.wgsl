//! launch main groups=1 lengths=16 scalars=5,0
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> q: bool;
fn h(p: ptr<function, u32>, z: u32) {
    q = z == 99u;
    for (var i = 0u; i < z; i++) { if i == 2u { return; } }
    *p = 7u;
}
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var v = 1u;
    h(&v, s.k);
    var c = 0u;
    for (var j = 0u; j < v; j++) { c += 10u; }
    y[id.x] = c + v;
}
