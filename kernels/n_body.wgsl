// Gravity: accelerations[i] = sum over j of mass j · d / (|d|² + softening)^1.5, where d points from body i to body j.
// A body is (x, y, z, mass); the fourth component of an acceleration is 0.
//
// Each invocation computes one body. The group loads GROUP bodies at a time into work-group memory, where every invocation reads
// all of them: each body is read from memory once per group (Nyland, Harris and Prins, GPU Gems 3, 2007).

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    n: u32,
    softening: T,
}

@group(0) @binding(0) var<storage, read> bodies: array<vec4<T>>;
@group(0) @binding(1) var<storage, read_write> accelerations: array<vec4<T>>;
var<immediate> scalars: Scalars;

var<workgroup> tile: array<vec4<T>, GROUP>;

@compute @workgroup_size(GROUP)
fn n_body(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let own = body(id.x);
    var sum = vec3<T>();
    for (var start = 0u; start < scalars.n; start += GROUP) {
        tile[lane] = body(start + lane);
        workgroupBarrier();
        for (var j = 0u; j < GROUP; j++) {
            let other = tile[j];
            let d = other.xyz - own.xyz;
            let inverse = inverseSqrt(dot(d, d) + scalars.softening);
            sum += d * (other.w * inverse * inverse * inverse);
        }
        workgroupBarrier();
    }
    if id.x < scalars.n {
        accelerations[id.x] = vec4<T>(sum, T(0));
    }
}

// Body i; beyond the last one, a body without mass.
fn body(i: u32) -> vec4<T> {
    if i < scalars.n {
        return bodies[i];
    }
    return vec4<T>();
}
