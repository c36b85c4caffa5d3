//! launch main groups=1 lengths=16
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
fn bump(p: ptr<function, u32>) { *p = *p * 3u + 1u; }
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var t: array<u32, 4>;
    bump(&t[(id.x & 3u)]);
    y[id.x] = t[id.x & 3u];
}
