// y = alpha · x + y, for n elements.
//
// One element per invocation; adjacent invocations access adjacent elements, so that a sub-group reads and writes whole cache
// lines. There is no reuse: the kernel is bound by memory bandwidth.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    alpha: T,
    n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < scalars.n {
        y[i] = scalars.alpha * x[i] + y[i];
    }
}
