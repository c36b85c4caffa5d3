// out[i] = (x[i - 1] + 2 · x[i] + x[i + 1]) / 4, for n elements, one per invocation; an end is its own neighbour.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn blur(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < scalars.n {
        let left = max(i, 1u) - 1u;
        let right = min(i + 1u, scalars.n - 1u);
        out[i] = (x[left] + T(2) * x[i] + x[right]) / T(4);
    }
}
