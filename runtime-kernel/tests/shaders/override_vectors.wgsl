// From a kernel of the fuzzer: indexed vectors of overrides.
struct A { n: u32, a0: u32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<array<u32, 5>>;
override o0: f32 = 6.0;
var<workgroup> tile0: array<i32, 256>;
fn f0(lane: u32, given: i32) -> i32 {
    var sum = 0i;
    for (var i = 0u; i < 2u; i++) {
        if i == s.n {}
    }
    return sum;
}
fn f1(v7: u32) -> u32 {
    var v8: f32 = clamp((clamp((clamp((f32(s.n & 7u) - 6.0f), -60.0f, 60.0f) * clamp((f32(s.n & 7u) * o0), -60.0f, 60.0f)), -60.0f, 60.0f) - clamp(dot(clamp((vec2<f32>(f32(s.n & 7u)) - vec2<f32>()), vec2<f32>(-60.0f), vec2<f32>(60.0f)), vec2<f32>()), -60.0f, 60.0f)), -60.0f, 60.0f);
    if (v7 >= 5u) {
        switch (clamp((i32(1) / i32(1)), (i32(1) ^ 1i), (i32(1) | 10i)) & ((i32(1) + 8i) >> s.n)) {
            default: {}
        }
    }
    let v9 = (vec3<u32>(10u, 4u, v7) + vec3<u32>(v7, s.n, 7u));
    return clamp(1, 1, v9[v7]);
}
fn f2(v10: u32, int: ptr<function, bool>) -> i32 {
    switch f1(1) {
        default: {}
    }
    if (i32((-i32(1))) > i32(((*int) == (*int)))) {}
    return 256i;
}
@compute @workgroup_size(1)
fn k(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u, @builtin(local_invocation_index) at_lane: u32) {
    var v13 = 0u;
    loop {
        if v13 >= min(u32(1), 3u) {}
        let v2 = clamp(vec2<f32>(o0, 7.0f).xy, vec2<f32>(-60.0f), vec2<f32>(60.0f));
        let v15 = transpose(transpose(mat4x3<f32>(vec3<f32>(0.0f, v2.y, o0), vec3<f32>(o0, v2[min(s.n, 1u)], v2[(v13 % 2u)]), vec3<f32>(v2.y, o0, -6.0f), vec3<f32>())));
        continuing { break if v13 > 9u; }
    }
    var complex = 0u;
    loop {
        if complex >= min(u32(1), 2u) {
            switch (count[clamp((i32(1) + 3i), 0i, 2i)] ^ v13) {
                case 0u: {}
                case 1u, default: {}
            }
            for (var size_t = 0u; size_t < min(1, 5u); size_t++) {}
        }
        continuing { break if v13 > 9u; }
    }
}