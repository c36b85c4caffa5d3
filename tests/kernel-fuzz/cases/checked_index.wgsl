//! launch k groups=1,1,1 lengths=0,0 scalars=0,0,0 constants=lanes=33 seed=0
struct A { n: u32, a0: u32, a1: u32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
override lanes: u32 = 1;
var<private> p0: array<array<i32, 1>, 2> = array<array<i32, 1>, 2>();
@compute @workgroup_size(lanes, 1, 1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    let gid = (group.y * count.x + group.x) * 33u + local.x;
    let lid = local.x;
    p0[0u][0u] = 7i;
    var v1: array<mat2x2<f32>, 5> = array<mat2x2<f32>, 5>();
    p0[0u][lid] *= 0i;
    var v9 = 0u;
    loop {
        v1[0u][v9][p0[0u][0u]] = 0f;
        y[(gid * 3u + 1u)] ^= 1u;
        v1[0i] = mat2x2<f32>((v1[0i][p0[p0[p0[(v9 - 3u)][0i]][0u]][0u]] + vec2<f32>()), vec2<f32>(array<mat2x2<f32>, 5>()[s.a1][id.x][select(0u, gid, (s.n > 3u))], 0f));
        continuing {
            v9 += 1u;
            break if v9 >= gid;
        }
    }
}
