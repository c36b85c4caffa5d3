// out = x · a - b, for n elements, one per invocation. After vector_add with the same a and b: (a + b) · a - b.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> a: array<T>;
@group(0) @binding(2) var<storage, read> b: array<T>;
@group(0) @binding(3) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn multiply_subtract(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < scalars.n {
        out[i] = x[i] * a[i] - b[i];
    }
}
