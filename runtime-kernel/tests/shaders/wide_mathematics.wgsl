@group(0) @binding(0) var<storage, read_write> x: array<vec3<f64>>;
@group(0) @binding(1) var<storage, read_write> y: array<i64>;
@group(0) @binding(2) var<storage, read_write> z: array<u64>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var v = x[id.x];
    v = fma(v, sqrt(abs(v)), floor(v) + ceil(v) + trunc(v) + round(v) + fract(v) + sign(v));
    v = mix(min(v, v.zyx), max(v, v.yyy), vec3<f64>(0.25lf)) + normalize(v) * length(v) * dot(v, v);
    v = clamp(cross(v, v.yzx), vec3<f64>(-1.0lf), vec3<f64>(1.0lf)) + inverseSqrt(v);
    x[id.x] = select(v, -v % vec3<f64>(3.0lf), v < vec3<f64>(0.0lf));
    let n = y[id.x];
    y[id.x] = clamp(abs(n) / (n - 1li) % max(n, 2li), min(n, 5li), 100li) << (u32(n) & 31u);
    z[id.x] = ((z[id.x] >> 3u) ^ bitcast<u64>(n)) | ~u64(f64(n));
}
