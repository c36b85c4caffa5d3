// sums[g] = the sum of block g of x; a block has GROUP · ITEMS elements, the last one what is left of n.
//
// Every invocation adds ITEMS elements, GROUP apart, so that neighbours read neighbours; then the group adds what its invocations have
// in a tree. The sum of everything takes further launches: the sums are the x of the next, until one is left; two
// launches do (GROUP · ITEMS)² elements. The order of additions is the same in every run. GROUP must be a power of two.

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
