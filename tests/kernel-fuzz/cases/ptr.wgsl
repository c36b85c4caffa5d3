//! launch main groups=1 lengths=16 scalars=0,3
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> w: array<u32, 4>;
var<private> pv: array<u32, 4>;
fn bump(p: ptr<function, u32>, n: u32) { for (var i = 0u; i < n; i++) { *p = *p * 3u + i; if *p == 77u { return; } } }
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var t: array<u32, 4>;
    bump(&t[s.k + id.x], s.m);
    y[id.x] = t[(s.m * id.x) & 3u];
}
