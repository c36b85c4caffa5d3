// Bandwidth for `runtime peak`: read, copy and triad (McCalpin 1995, STREAM) of arrays of vec4<f32>, `rounds` times.
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
var<immediate> s: Scalars;

fn base(group: u32, groups: u32, round: u32) -> u32 {
    return ((group + round * s.shift) % groups) * s.chunk;
}

@compute @workgroup_size(GROUP)
fn read_memory(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) item: u32) {
    let mask = s.chunk - 1u;
    var s0 = vec4f();
    var s1 = vec4f();
    var s2 = vec4f();
    var s3 = vec4f();
    for (var round = 0u; round < s.rounds; round++) {
        let at = base(group.x, groups.x, round);
        let turned = item + round * 32u;
        for (var k = 0u; k < s.chunk; k += 4u * GROUP) {
            s0 += a[at + ((turned + k) & mask)];
            s1 += a[at + ((turned + k + GROUP) & mask)];
            s2 += a[at + ((turned + k + 2u * GROUP) & mask)];
            s3 += a[at + ((turned + k + 3u * GROUP) & mask)];
        }
    }
    c[group.x * GROUP + item] = (s0 + s1) + (s2 + s3);
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
