// out = factor · x, for n elements, one per invocation.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    factor: T,
    n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn scale(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < scalars.n {
        out[i] = scalars.factor * x[i];
    }
}
