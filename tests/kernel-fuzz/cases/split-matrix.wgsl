// GCC 12 split a loop at an index of a matrix, and lost its end.
//! launch k groups=2,1,1 lengths=0,15 scalars=4294967295,0 constants=lanes=8 seed=50000000800
struct A { n: u32, a0: u32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<i32>;
override o0: i32 = 1i;
override lanes: u32 = 1;
var<private> p0: mat2x2<f32> = mat2x2<f32>();
var<workgroup> w0: array<u32, lanes>;
var<workgroup> w1: array<i32, lanes>;
fn f0(v7: u32, v4: ptr<private, mat2x2<f32>>) -> bool {
    var v2: i32 = (-((i32(s.n) / 7i) >> s.n));
    v2 = (insertBits(max(i32(s.n), v2), (v2 & o0), 8u, 4u) - ((v2 - o0) & (v2 % 3i)));
    v2 = ((-v2) / 5i);
    return (max((v2 / 5i), (v2 % v2)) < select((-v2), (i32(s.n) * 2147483647i), (!(s.n > 3u))));
}
@compute @workgroup_size(1, 8, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 8u + at_lane;
    let lid = at_lane;
    let float4 = clamp(vec2<f32>(0.0f, 6.0f), vec2<f32>(-60.0f), vec2<f32>(60.0f));
        loop {
                break;
            switch (i32(w1[lid]) - (z[gid] >> 4u)) {
                default: {
                }
            }
        }
    var v3 = 0u;
    loop {
        var v2 = 0u;
        loop {
                w1[lid]++;
            continuing {
                p0[1u].y = clamp(floor(clamp((clamp((p0[(v2 % 2u)][local.x] * float4.y), -60.0f, 60.0f) + max(p0[v2][lid], p0[(group[min(w0[s.a0], 2u)] % 2u)].x)), -60.0f, 60.0f) * 0.5f), -60.0f, 60.0f);
                z[gid] = w1[lid];
                v2 += 1u;
                break if v2 >= min(abs(s.a0), 5u);
            }
        }
        let v18 = f0((count[v2] + v3), &p0);
            break;
    }
    y[gid * 3u + 1u] = y[gid * 3u + 1u] * 31u + u32(z[gid]);
}