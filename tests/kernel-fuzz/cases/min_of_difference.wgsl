//! launch main groups=1 lengths=96,384 seed=7
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> z: array<i32>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let i = 3u * id.x;
    let o = 12u * id.x;
    let a = x[i];
    let b = x[i + 1u];
    let c = x[i + 2u];
    z[o] = min(a, min(b, 0i - c));
    z[o + 1u] = min(a, min(b, c * -1i));
    z[o + 2u] = min(a, min(b, ~c + 1i));
    z[o + 3u] = min(a, min(b, i32(0u - u32(c))));
    z[o + 4u] = min(a, min(b, i32(-i64(c))));
    z[o + 5u] = min(a, min(b, (1i - c) - 1i));
    z[o + 6u] = max(a, max(b, -abs(c)));
    let v = -vec3(a, b, c);
    z[o + 7u] = min(v.x, min(b, v.z));
    var most = -2147483647i - 1i;
    for (var k = 0u; k < 3u; k++) { most = max(most, -x[i + k]); }
    z[o + 8u] = clamp(most, -a, 1000000000i);
    let inner = select(-c, b, b < -c);
    z[o + 9u] = select(inner, a, a < inner);
    var zero = 0i;
    if id.x > 1000u { zero = 0i; }
    z[o + 10u] = min(a, min(b, zero - c));
    z[o + 11u] = max(a, max(b, -(c << 1u)));
}
