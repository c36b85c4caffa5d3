// Exclusive prefix sums: out[i] = x[0] + … + x[i - 1], within blocks of GROUP · ITEMS elements.
//
// `scan` scans every block separately and writes the block's sum to totals. A full scan takes three launches: `scan` of x,
// `scan` of the totals (again three launches if they exceed one block), and `scan_offset`, which adds to every element of a
// block the scanned total of the blocks before it.
//
// Within a block, each invocation adds ITEMS consecutive elements, the group scans the sums of its invocations (Hillis and
// Steele), and each invocation then scans its elements. Elements are loaded and stored through work-group memory, so that
// adjacent invocations access adjacent elements of x and out. Work-group memory has a gap after every 32 elements: invocations
// that are ITEMS elements apart then use different banks of a GPU's work-group memory.

alias T = f32;

override GROUP: u32 = 256;
override ITEMS: u32 = 8;

struct Scalars {
    n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
@group(0) @binding(2) var<storage, read_write> totals: array<T>;
var<immediate> scalars: Scalars;

var<workgroup> block: array<T, GROUP * ITEMS + GROUP * ITEMS / 32 + 1>;
var<workgroup> sums: array<T, GROUP>;

fn place(i: u32) -> u32 {
    return i + i / 32;
}

@compute @workgroup_size(GROUP)
fn scan(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let start = group.x * GROUP * ITEMS;
    for (var item = 0u; item < ITEMS; item++) {
        let i = item * GROUP + lane;
        var value = T(0);
        if start + i < scalars.n {
            value = x[start + i];
        }
        block[place(i)] = value;
    }
    workgroupBarrier();

    var sum = T(0);
    for (var item = 0u; item < ITEMS; item++) {
        sum += block[place(lane * ITEMS + item)];
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var step = 1u; step < GROUP; step *= 2) {
        var before = T(0);
        if lane >= step {
            before = sums[lane - step];
        }
        workgroupBarrier();
        sums[lane] += before;
        workgroupBarrier();
    }

    var before = T(0);
    if lane > 0 {
        before = sums[lane - 1];
    }
    for (var item = 0u; item < ITEMS; item++) {
        let at = place(lane * ITEMS + item);
        let value = block[at];
        block[at] = before;
        before += value;
    }
    workgroupBarrier();
    for (var item = 0u; item < ITEMS; item++) {
        let i = item * GROUP + lane;
        if start + i < scalars.n {
            out[start + i] = block[place(i)];
        }
    }
    if lane == 0 {
        totals[group.x] = sums[GROUP - 1];
    }
}
