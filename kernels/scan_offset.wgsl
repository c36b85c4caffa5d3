// out[i] += offsets[b] for every element of block b: the last step of an exclusive scan, see `scan.wgsl`.
//
// Each group processes a block of GROUP · ITEMS elements, as in `scan`, and reads its offset once.

alias T = f32;

override GROUP: u32 = 256;
override ITEMS: u32 = 8;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> offsets: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn scan_offset(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let offset = offsets[group.x];
    let first = group.x * GROUP * ITEMS + lane;
    for (var item = 0u; item < ITEMS; item++) {
        let i = first + item * GROUP;
        if i < scalars.n {
            out[i] += offset;
        }
    }
}
