// y = alpha · x + y, for n elements.
//
// An invocation has one element, and neighbours have neighbours: a sub-group reads and writes whole lines of memory, and there is
// nothing to reuse. What counts is the bandwidth of memory.

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
