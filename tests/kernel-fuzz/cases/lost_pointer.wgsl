// An out-of-range pointer argument refers to a separate zeroed value, in which the function sees its own writes.
//! launch main groups=1,1,1 lengths=8,1
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> far: array<u32>;
var<private> flags: array<bool, 5>;
var<private> flag: bool;
fn mark(first: ptr<private, bool>, second: ptr<private, bool>) -> bool {
    let before = *second;
    *second = true;
    *first = *second;
    return before;
}
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let before = mark(&flag, &flags[id.x + (far[0] & 1u)]);
    y[id.x] = u32(before) + u32(flag) * 2u + u32(flags[id.x]) * 4u;
}
