//! launch k groups=1,1,1 lengths=24,0,0 scalars=0,0,0 constants=o0=1 seed=0
struct A { n: u32, a0: u32, a1: i32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<array<u32, 2>>;
@group(0) @binding(2) var<storage, read> r: array<u32>;
override o0: i32;
var<private> p0: array<array<i32, 4>, 4>;
var<workgroup> w0: array<i32, 64>;
@compute @workgroup_size(64, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 64u + at_lane;
    let lid = at_lane;
    var v3: i32 = 0i;
    for (var row_ = 2u; row_ < u32((min(group.z, 2u) * 7u)); row_++) {
        v3 += dot4I8Packed(r[u32(gid) * 3u + row_], r[u32(gid) * 3u + row_]);
    }
    y[gid * 3u] = y[gid * 3u] * 31u + 0u;
    p0 = array<array<i32, 4>, 4>(array<i32, 4>(), array<i32, 4>(), array<i32, 4>(0i, 0i, 0i, dot(vec3<i32>(5i, 0i, o0), vec3<i32>(0i, 3i, v3))), array<i32, 4>());
    p0[0u][lid] = dot(vec3<i32>(w0[id[p0[0u][s.a0]]]), vec3<i32>(0i, 0i, 1i));
    for (var v1 = 0u; v1 < 5u; v1 += 1u) {
        var tid = 0u;
        loop {
            if (max(0i, s.a1) != i32((f32(s.n & 7u) - -4.0f))) {
                p0[0u][lid] *= insertBits(select(2147483647i, 64i, (gid > 3u)), w0[s.n], 3u, 6u);
                break;
            }
            p0[3u] = array<i32, 4>();
            continuing {
                p0[gid][1u] = 0i;
                tid += 1u;
                break if tid >= 5u;
            }
        }
    }
    var v4: u32 = 0u;
    for (var row_ = 0u; row_ < u32((5u * 7u)); row_++) {
        v4 = max(v4, (r[u32(gid) * 2u + row_] ^ r[u32(gid) * 2u + row_ + 1u]));
    }
    var linux: u32 = v4;
    for (var row_ = 0u; row_ < u32((2u * 7u)); row_++) {
        linux ^= dot4U8Packed(r[u32(gid) * 17u + row_], r[row_]);
    }
    var v40: u32 = 0u;
    for (var row_ = 0u; row_ < u32(3u); row_++) {
        v40 += r[u32(gid) * 1u + row_] * r[row_];
    }
    y[gid * 3u] += arrayLength(&x);
    y[gid * 3u + 0u] = y[gid * 3u + 0u] * 31u + u32(p0[0u][v40]);
    y[gid * 3u + 0u] = y[gid * 3u + 0u] * 31u + linux;
    y[gid * 3u + 2u] = y[gid * 3u + 2u] * 31u + 1u;
}
