// Bandwidth for `runtime peak`: read, copy and triad (McCalpin 1995, STREAM) of arrays of floats, `rounds` times.
//
// A work-group reads a chunk of `chunk` vectors, a power of two. In each round the chunk is another one if `shift` is not 0, so
// that private caches do not help, and each invocation reads another element, so that no read can be left out.

override GROUP: u32 = 256;

struct Scalars {
    chunk: u32,
    rounds: u32,
    shift: u32,
    factor: f32,
}

@group(0) @binding(0) var<storage, read_write> c: array<vec4f>;
@group(0) @binding(1) var<storage, read> a: array<vec4f>;
@group(0) @binding(2) var<storage, read> b: array<vec4f>;
@group(0) @binding(0) var<storage, read_write> sums: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
var<immediate> s: Scalars;

fn base(group: u32, groups: u32, round: u32) -> u32 {
    return ((group + round * s.shift) % groups) * s.chunk;
}

// Single floats, which lie next to each other for neighbouring invocations: four vectors of a compiler that loads their parts one by
// one do not.
@compute @workgroup_size(GROUP)
fn read_memory(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) item: u32) {
    let length = 4u * s.chunk;
    let mask = length - 1u;
    var s0 = 0.0;
    var s1 = 0.0;
    var s2 = 0.0;
    var s3 = 0.0;
    for (var round = 0u; round < s.rounds; round++) {
        let at = 4u * base(group.x, groups.x, round);
        let turned = item + round * 32u;
        for (var k = 0u; k < length; k += 4u * GROUP) {
            s0 += x[at + ((turned + k) & mask)];
            s1 += x[at + ((turned + k + GROUP) & mask)];
            s2 += x[at + ((turned + k + 2u * GROUP) & mask)];
            s3 += x[at + ((turned + k + 3u * GROUP) & mask)];
        }
    }
    sums[group.x * GROUP + item] = (s0 + s1) + (s2 + s3);
}

@compute @workgroup_size(GROUP)
fn copy_memory(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) item: u32) {
    let mask = s.chunk - 1u;
    for (var round = 0u; round < s.rounds; round++) {
        let at = base(group.x, groups.x, round);
        for (var k = 0u; k < s.chunk; k += GROUP) {
            let i = at + ((item + round * 32u + k) & mask);
            c[i] = a[i];
        }
    }
}

@compute @workgroup_size(GROUP)
fn triad_memory(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) item: u32) {
    let mask = s.chunk - 1u;
    for (var round = 0u; round < s.rounds; round++) {
        let at = base(group.x, groups.x, round);
        for (var k = 0u; k < s.chunk; k += GROUP) {
            let i = at + ((item + round * 32u + k) & mask);
            c[i] = a[i] + s.factor * b[i];
        }
    }
}

// One element per invocation, in order: what processors vectorise.

@compute @workgroup_size(GROUP)
fn copy_flat(@builtin(global_invocation_id) id: vec3u) {
    c[id.x] = a[id.x];
}

@compute @workgroup_size(GROUP)
fn triad_flat(@builtin(global_invocation_id) id: vec3u) {
    c[id.x] = a[id.x] + s.factor * b[id.x];
}
