
// Kernels with f64 and i64, appended to `suite.wgsl` on devices that support these types.
struct Eight { a: f64, b: i64, c: f64, d: i64, e: f64, f: i64, g: f64, h: i64 }
var<immediate> eight: Eight;
@group(0) @binding(0) var<storage, read_write> wide0: array<f64>;

@compute @workgroup_size(X, Y, Z)
fn sum9(@builtin(global_invocation_id) id: vec3u) {
    if id.x == 0u {
        wide0[0] = eight.a + f64(eight.b) + eight.c + f64(eight.d) + eight.e + f64(eight.f) + eight.g + f64(eight.h);
    }
}
