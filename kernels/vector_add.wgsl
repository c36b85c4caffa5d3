// c = a + b, for n elements, one per invocation.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> c: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn vector_add(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < scalars.n {
        c[i] = a[i] + b[i];
    }
}
