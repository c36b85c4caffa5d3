//! launch main groups=1 lengths=16 scalars=0,7 seed=0
struct S { k: u32, m: u32 }
var<immediate> s: S;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u) {
    for (var k = 0u; k < s.m; k++) {
        if l.x == k { return; }
        y[id.x] += 1u;
    }
}
