// counts[v] += the number of times that v occurs in values, for v below BINS; larger values are not counted.
//
// Each group counts GROUP · ITEMS values in work-group memory, where atomic additions are cheap and contend only within the
// group, and then adds its counts to the global ones. The global counts are not reset: initialise them to zero.

override GROUP: u32 = 256;
override ITEMS: u32 = 32;
override BINS: u32 = 256;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
var<immediate> scalars: Scalars;

var<workgroup> bins: array<atomic<u32>, BINS>;

@compute @workgroup_size(GROUP)
fn histogram(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var start = 0u; start < BINS; start += GROUP) {
        if start + lane < BINS {
            atomicStore(&bins[start + lane], 0u);
        }
    }
    workgroupBarrier();
    let first = group.x * GROUP * ITEMS + lane;
    for (var item = 0u; item < ITEMS; item++) {
        let i = first + item * GROUP;
        if i < scalars.n {
            let value = values[i];
            if value < BINS {
                atomicAdd(&bins[value], 1u);
            }
        }
    }
    workgroupBarrier();
    for (var start = 0u; start < BINS; start += GROUP) {
        if start + lane < BINS {
            let count = atomicLoad(&bins[start + lane]);
            if count > 0 {
                atomicAdd(&counts[start + lane], count);
            }
        }
    }
}
