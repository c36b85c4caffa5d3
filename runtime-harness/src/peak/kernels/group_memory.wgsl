// Bandwidth of work-group memory for `runtime peak`: each invocation reads another element in each round.

override GROUP: u32 = 256;

struct Scalars {
    rounds: u32,
}

@group(0) @binding(0) var<storage, read_write> c: array<vec4f>;
var<immediate> s: Scalars;

var<workgroup> tile: array<vec4f, 2u * GROUP>;

@compute @workgroup_size(GROUP)
fn read_memory(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) item: u32) {
    tile[item] = vec4f(1.0);
    tile[item + GROUP] = vec4f(1.0);
    workgroupBarrier();
    let mask = 2u * GROUP - 1u;
    var s0 = vec4f();
    var s1 = vec4f();
    var s2 = vec4f();
    var s3 = vec4f();
    for (var round = 0u; round < s.rounds; round++) {
        let at = item + round * 16u;
        s0 += tile[at & mask];
        s1 += tile[(at + 4u) & mask];
        s2 += tile[(at + 8u) & mask];
        s3 += tile[(at + 12u) & mask];
    }
    c[group.x * GROUP + item] = (s0 + s1) + (s2 + s3);
}
