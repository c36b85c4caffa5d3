// sums[g] = sum of block g of x. A block has GROUP · ITEMS elements; the last one may be shorter.
//
// Each invocation adds ITEMS elements, GROUP apart, so that adjacent invocations read adjacent elements; then the group adds the
// sums of its invocations in a tree. For the sum of all elements, launch again on the sums until one is left; two launches cover
// (GROUP · ITEMS)² elements. The order of additions is the same in every run. GROUP must be a power of two.

alias T = f32;

override GROUP: u32 = 256;
override ITEMS: u32 = 16;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> sums: array<T>;
var<immediate> scalars: Scalars;

var<workgroup> partial: array<T, GROUP>;

@compute @workgroup_size(GROUP)
fn reduction(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * GROUP * ITEMS + lane;
    var sum = T(0);
    for (var item = 0u; item < ITEMS; item++) {
        let i = first + item * GROUP;
        if i < scalars.n {
            sum += x[i];
        }
    }
    partial[lane] = sum;
    workgroupBarrier();
    for (var half = GROUP / 2; half > 0; half /= 2) {
        if lane < half {
            partial[lane] += partial[lane + half];
        }
        workgroupBarrier();
    }
    if lane == 0 {
        sums[group.x] = partial[0];
    }
}
