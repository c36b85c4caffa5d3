// GCC 12 split the loop at v1 == 3, and lost its end.
//! launch k groups=3,1,1 lengths=4,4 scalars=2,1,4294967295 seed=58589935212
struct A { n: u32, a0: u64, a1: u32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<private> p0: array<f32, 3>;
fn f0(v7: u32, v8: ptr<function, i32>, v9: ptr<function, vec4<u64>>) -> i32 {
    return (*v8);
}
@compute @workgroup_size(1, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 1u + at_lane;
    var v1 = 0u;
    loop {
            p0 = array<f32, 3>(min(clamp(dot(vec4<f32>(p0[min(s.a0, 2lu)], p0[clamp(i32(gid), 0i, 2i)], p0[0i], p0[i32(s.n)]), vec4<f32>(1.0f, p0[i32(gid)], 3.0f, 5.0f)), -60.0f, 60.0f), min(p0[v1], p0[(i32(s.n) + 5i)])), p0[i32(gid)], sign(clamp((p0[s.a0] * p0[clamp(i64(s.n), 0li, 2li)]), -60.0f, 60.0f)));
            y[select(gid * 3u + 0u, 4294967295u, any(vec3<bool>((s.n > 3u))))] += firstTrailingBit(u32(abs(p0[(s.a0 % 3lu)])));
        continuing {
            v1 += 1u;
            break if v1 >= min(group.y, 5u);
        }
    }
}