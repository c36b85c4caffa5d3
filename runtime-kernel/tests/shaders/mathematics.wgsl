@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> b: array<vec2<u32>>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var v = x[id.x];
    v = clamp(mix(sqrt(abs(v)), pow(v, vec4(2.5)), 0.25), vec4(-1.0), vec4(1.0));
    v += exp(v) + log2(v) + sin(v) * cosh(v) + fract(v) + trunc(round(v)) + sign(v) + fma(v, v, v);
    v = normalize(v) * length(v) + cross(v.xyz, v.zxy).xxyz + smoothstep(vec4(0.0), vec4(1.0), v);
    let parts = frexp(v.x);
    v.y = ldexp(parts.fract, parts.exp) + modf(v.z).whole + atan2(v.x, v.y) + inverseSqrt(v.w);
    x[id.x] = v + vec4(unpack2x16float(pack2x16float(v.xy)), unpack4x8snorm(pack4x8snorm(v)).xy);
    let w = b[id.x];
    b[id.x] = vec2(reverseBits(w.x) + firstLeadingBit(w.y), extractBits(insertBits(w.x, w.y, 3u, 5u), 1u, 7u))
        + countTrailingZeros(w) + vec2(dot4U8Packed(w.x, w.y), u32(transpose(mat2x3<f32>(v.xyz, v.yzw))[0].x));
}
