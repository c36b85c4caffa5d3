//! launch passed_literal groups=1,1,1 lengths=1,1 scalars=0,0 seed=0
struct A { n: u32, at: i32, }
var<immediate> s: A;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
fn element(nothing: u32, flags: array<array<bool, 5>, 4>) -> u32 {
    return select(x[0u], 7u, flags[0u][s.at]);
}
fn column(nothing: u32, m: mat4x4<f32>) -> f32 {
    return m[min(s.n, 3u)][s.at];
}
@compute @workgroup_size(1)
fn passed_literal(@builtin(global_invocation_id) id: vec3u) {
    y[id.x] += element(0u, array<array<bool, 5>, 4>(array<bool, 5>(), array<bool, 5>(), array<bool, 5>(), array<bool, 5>()))
        + u32(column(3u, mat4x4<f32>(vec4<f32>(7.0, 6.0, 3.0, 3.0), vec4<f32>(6.0, 5.0, 6.0, 1.0), vec4<f32>(2.0, 7.0, 2.0, 0.0), vec4<f32>(7.0))));
}
