//! launch min_of_negation groups=1,1,1 lengths=0,1 seed=264294968096
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> z: array<i32>;
var<workgroup> w: array<i32, 1>;
@compute @workgroup_size(1)
fn min_of_negation(@builtin(global_invocation_id) id: vec3u) {
    z[id.x] = min(w[0], min(max(0i, x[id.x]), -z[id.x]));
}
