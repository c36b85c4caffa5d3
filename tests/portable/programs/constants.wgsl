// Types and constants that mean the same however they are written. `src/programs.rs` lists the programs.

//# alias_of_array: an alias names the same type
//= read f32: 0 1 2 3 4 5 6 7
//= write f32: 0*8 -> 3 2 1 0 7 6 5 4
//= groups 2
alias AliasRow = array<f32, 4>;
@group(0) @binding(0) var<storage, read> alias_of_array_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> alias_of_array_y: array<f32>;
fn alias_reversed(r: array<f32, 4>) -> array<f32, 4> { return array<f32, 4>(r[3], r[2], r[1], r[0]); }
@compute @workgroup_size(1) fn alias_of_array(@builtin(global_invocation_id) id: vec3u) {
    let at = 4 * id.x;
    var r: AliasRow = AliasRow(alias_of_array_x[at], alias_of_array_x[at + 1], alias_of_array_x[at + 2], alias_of_array_x[at + 3]);
    r = alias_reversed(r);
    for (var i = 0u; i < 4; i++) { alias_of_array_y[at + i] = r[i]; }
}

//# alias_of_scalar: the idiom of element types, with a function that spells the type
//= write f32: 0*2 -> 3 4
alias AliasScalar = f32;
@group(0) @binding(0) var<storage, read_write> alias_of_scalar_y: array<AliasScalar>;
fn alias_sum(p: array<f32, 4>) -> f32 { return p[0] + p[3]; }
fn alias_first(p: ptr<function, array<f32, 4>>) -> AliasScalar { return (*p)[1]; }
@compute @workgroup_size(1) fn alias_of_scalar() {
    var p: array<AliasScalar, 4>;
    p[0] = 1; p[3] = 2; p[1] = 4;
    alias_of_scalar_y[0] = alias_sum(p);
    alias_of_scalar_y[1] = alias_first(&p);
}

//# alias_of_matrix: inside other types, and in the type of a variable with an initial value
//= write f32: 0*2 -> 4 5
alias AliasMatrix = mat2x2<f32>;
alias AliasPair = array<AliasMatrix, 2>;
@group(0) @binding(0) var<storage, read_write> alias_of_matrix_y: array<f32>;
var<private> alias_of_matrix_p: array<AliasMatrix, 2>;
fn alias_last(a: array<mat2x2<f32>, 2>) -> f32 { return a[1][1].y; }
@compute @workgroup_size(1) fn alias_of_matrix() {
    alias_of_matrix_p[1][1].y = 4;
    alias_of_matrix_y[0] = alias_last(alias_of_matrix_p);
    var q: array<mat2x2<f32>, 2> = AliasPair();
    q[1][1].y = 5;
    let r: AliasPair = q;
    alias_of_matrix_y[1] = alias_last(r);
}

//# alias_of_member: in structures, which keep their names
//= write f32: 0*3 -> 3 4 2
alias AliasTwo = array<f32, 2>;
struct AliasS { r: array<f32, 2>, t: AliasTwo }
@group(0) @binding(0) var<storage, read_write> alias_of_member_y: array<f32>;
@compute @workgroup_size(1) fn alias_of_member() {
    let a = AliasTwo(1, 2);
    let b = array<f32, 2>(3, 4);
    var s = AliasS(a, b);
    s.r = s.t;
    alias_of_member_y[0] = s.r[0];
    alias_of_member_y[1] = s.t[1];
    let c = array(1.0, 2.0);
    s.t = c;
    alias_of_member_y[2] = s.t[1];
}

//# let_division: a let is no constant: division and remainder by zero have their run-time values
//= write i32: 0*7 -> 7 0 -2147483648 0 8 3 1
@group(0) @binding(0) var<storage, read_write> let_division_y: array<i32>;
@compute @workgroup_size(1) fn let_division() {
    let a = 7;
    let b = 0;
    let_division_y[0] = a / b;
    let_division_y[1] = a % b;
    let low = -2147483647 - 1;
    let c = -1;
    let_division_y[2] = low / c;
    let_division_y[3] = low % c;
    let v = vec2(0, 2);
    let q = vec2(8, 7) / v;
    let_division_y[4] = q.x;
    let_division_y[5] = q.y;
    let_division_y[6] = 1 / (vec2(b, 1) * 1).x;
}

//# let_shift: a shift by the width or more uses the amount modulo the width
//= write u32: 0*4 -> 14 7 2 4
@group(0) @binding(0) var<storage, read_write> let_shift_y: array<u32>;
@compute @workgroup_size(1) fn let_shift() {
    let s = 33u;
    let_shift_y[0] = 7u << s;
    let_shift_y[1] = 14u >> s;
    let v = vec2u(1u, 2u) << vec2(s);
    let_shift_y[2] = v.x;
    let_shift_y[3] = v.y;
}

//# partly_constant: a vector of which only a part is constant is none
//= write i32: 0 4 0*5 -> 9 7 2 0 3 14 28
@group(0) @binding(0) var<storage, read_write> partly_constant_y: array<i32>;
@compute @workgroup_size(1) fn partly_constant() {
    let x = partly_constant_y[1];
    let q = vec2(7, 8) / vec2(0, x);
    partly_constant_y[1] = q.x;
    partly_constant_y[2] = q.y;
    var r = vec3(7, 8, 15);
    r %= vec3(vec2(0, x), x * 3);
    partly_constant_y[3] = r.x;
    partly_constant_y[4] = r.z;
    let s = vec2(7, 7) << vec2(33u, u32(x) / 2);
    partly_constant_y[5] = s.x;
    partly_constant_y[6] = s.y;
    partly_constant_y[0] = 9;
}

//# let_index: an index that is a let may be out of range
//= read u32: 1 2 3
//= write u32: 0*4 -> 0|1|2|3 0|1|2|3 2 0|7|8
@group(0) @binding(0) var<storage, read> let_index_x: array<u32, 3>;
@group(0) @binding(1) var<storage, read_write> let_index_y: array<u32>;
@compute @workgroup_size(1) fn let_index() {
    let i = 3u;
    let_index_y[0] = let_index_x[i];
    let n = -1i;
    let_index_y[1] = let_index_x[n];
    let one = 1;
    let_index_y[2] = let_index_x[one];
    let v = vec2u(7, 8);
    let_index_y[3] = v[i];
    var p: array<u32, 2>;
    p[i] = 5;
}

//# let_of_override: the value of an override in a let is no constant either
//= constant LET_ZERO=0
//= write i32: 0*2 -> 7 1
override LET_ZERO: i32 = 1;
@group(0) @binding(0) var<storage, read_write> let_of_override_y: array<i32>;
@compute @workgroup_size(1) fn let_of_override() {
    let z = LET_ZERO;
    let_of_override_y[0] = 7 / z;
    let_of_override_y[1] = 1 << u32(z + 32);
}

//# constant_functions: built-in functions of constants, also of abstract ones
//= write f32: 0*10 -> 2 1065353216 3 6 -2 255 0.5 1.5 1.5 4
const CF_A = mix(1.0, 3.0, 0.5);
const CF_B = bitcast<u32>(1.0f);
const CF_C = extractBits(0xf0u, 4u, 2u);
const CF_D = ldexp(1.5, 2);
const CF_E = determinant(mat2x2(1.0, 2.0, 3.0, 4.0));
const CF_F = pack4x8unorm(vec4(1.0, 0.0, 0.0, 0.0));
const CF_G = modf(1.5).fract;
const CF_LOWEST: f32 = bitcast<f32>(0xff7fffffu);
@group(0) @binding(0) var<storage, read_write> constant_functions_y: array<f32>;
@compute @workgroup_size(1) fn constant_functions() {
    constant_functions_y[0] = CF_A; constant_functions_y[1] = f32(CF_B); constant_functions_y[2] = f32(CF_C);
    constant_functions_y[3] = CF_D; constant_functions_y[4] = CF_E; constant_functions_y[5] = f32(CF_F);
    constant_functions_y[6] = CF_G;
    const c = quantizeToF16(1.5);
    constant_functions_y[7] = max(CF_LOWEST, c);
    constant_functions_y[8] = mix(1.0, 2.0, 0.5);
    const s = frexp(8.0);
    constant_functions_y[9] = f32(s.exp);
}

//# constant_size: such constants where only constants may be
//= write u32: 0*2 -> 3 7
const CS_SIZE = pack4xU8(vec4u(3, 0, 0, 0));
alias CsRow = array<u32, CS_SIZE>;
@group(0) @binding(0) var<storage, read_write> constant_size_y: array<u32>;
@compute @workgroup_size(insertBits(0u, 1u, 0u, 1u)) fn constant_size() {
    var row: CsRow;
    row[2] = 7;
    for (var i = 0u; i < CS_SIZE; i++) { constant_size_y[0] += 1; constant_size_y[1] += row[i]; }
    const_assert transpose(mat2x2f(1, 2, 3, 4))[0].y == 3;
}

//# constant_structures: structures of constants where the kernel runs
//= write f32: 0*4 -> 0.5 1 0.25 2
@group(0) @binding(0) var<storage, read_write> constant_structures_y: array<f32>;
@compute @workgroup_size(1) fn constant_structures() {
    let m = modf(1.5);
    constant_structures_y[0] = m.fract;
    constant_structures_y[1] = m.whole;
    let v = modf(vec2(2.25, 1));
    constant_structures_y[2] = v.fract.x;
    constant_structures_y[3] = v.whole.x;
}

//# constant_circuit: the other side of a logical operator is not evaluated
//= write u32: 0*2 -> 1 2
const CC_ZERO = 0.0f;
@group(0) @binding(0) var<storage, read_write> constant_circuit_y: array<u32>;
@compute @workgroup_size(1) fn constant_circuit() {
    constant_circuit_y[0] = select(1u, 3u, false && 1.0f / CC_ZERO == 0.0f);
    constant_circuit_y[1] = select(3u, 2u, true || 1 / 0 == 0);
}

//# constant_atanh: a constant and the same expression of a tensor agree
//= read f32: -0.99999994
//= write u32: 0*2 -> 1 1
@group(0) @binding(0) var<storage, read> constant_atanh_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> constant_atanh_y: array<u32>;
@compute @workgroup_size(1) fn constant_atanh() {
    const c = atanh(-0.99999994f);
    constant_atanh_y[0] = u32(abs(c + 8.664339) < 1e-3);
    constant_atanh_y[1] = u32(abs(atanh(constant_atanh_x[0]) - c) < 0.05);
}

//# constant_agreement: so do the other functions, also halfway between two numbers
//= read f32: 1.0001 -0.5 1.5 2.3 2049 2051 0.5 1 -0.25
//= write u32: 0*11 -> 1*11
@group(0) @binding(0) var<storage, read> constant_agreement_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> constant_agreement_y: array<u32>;
fn constant_agreement_near(a: f32, b: f32) -> u32 { return u32(abs(a - b) <= 1e-3 * abs(b)); }
@compute @workgroup_size(1) fn constant_agreement() {
    let x = &constant_agreement_x;
    const a = acosh(1.0001f);
    constant_agreement_y[0] = constant_agreement_near(acosh((*x)[0]), a);
    const b = asinh(-0.5f);
    constant_agreement_y[1] = constant_agreement_near(asinh((*x)[1]), b);
    const c = tan(1.5f);
    constant_agreement_y[2] = constant_agreement_near(tan((*x)[2]), c);
    const d = pow(2.3f, 1.5f);
    constant_agreement_y[3] = constant_agreement_near(pow((*x)[3], (*x)[2]), d);
    const e = log2(2.3f);
    constant_agreement_y[4] = constant_agreement_near(log2((*x)[3]), e);
    const f = quantizeToF16(vec2(2049f, 2051f));
    let quantized = quantizeToF16(vec2((*x)[4], (*x)[5]));
    constant_agreement_y[5] = u32(all(quantized == f));
    const g = pack4x8unorm(vec4(0.5f, 1.5f, -0.5f, 1f));
    constant_agreement_y[6] = u32(pack4x8unorm(vec4((*x)[6], (*x)[2], (*x)[1], (*x)[7])) == g);
    const h = pack4x8snorm(vec4(0.5f, 1.5f, -0.25f, 1f));
    constant_agreement_y[7] = u32(pack4x8snorm(vec4((*x)[6], (*x)[2], (*x)[8], (*x)[7])) == h);
    const i = pack2x16float(vec2(2049f, 2051f));
    constant_agreement_y[8] = u32(pack2x16float(vec2((*x)[4], (*x)[5])) == i);
    const j = ldexp(1.5f, -120);
    constant_agreement_y[9] = u32(ldexp((*x)[2], -120) == j);
    // A device may have no subnormal numbers.
    const k = ldexp(1.5f, -140);
    let small = ldexp((*x)[2], -140);
    constant_agreement_y[10] = u32(small == k || small == 0);
}

//# constant_shift: abstract numbers may be shifted by any amount, and keep their sign
//= write i32: 0*6 -> -1 -1 0 0 0 -2
@group(0) @binding(0) var<storage, read_write> constant_shift_y: array<i32>;
const CONSTANT_SHIFT = 64u;
@compute @workgroup_size(1) fn constant_shift() {
    constant_shift_y[0] = -5 >> 200u;
    const v = vec2(-1, 1) >> vec2(CONSTANT_SHIFT);
    constant_shift_y[1] = v.x;
    constant_shift_y[2] = v.y;
    const zero = 0 << 64u;
    constant_shift_y[3] = zero;
    constant_shift_y[4] = (vec2(0, 0) << vec2(CONSTANT_SHIFT, 300)).y;
    constant_shift_y[5] = (-1 << 63) >> 62;
}

//# constant_composites: such constants in arrays and structures
//= write f32: 0*5 -> 0.5 2 4 0.25 7
struct ConstantPair { a: f32, b: vec2f }
const CONSTANT_ARRAY = array(modf(1.5).fract, 2.0);
const CONSTANT_PAIR = ConstantPair(mix(CONSTANT_ARRAY[0], CONSTANT_ARRAY[1], 1.0), vec2(2));
const CONSTANT_PARTS = array(modf(3.5), modf(7.25));
@group(0) @binding(0) var<storage, read_write> constant_composites_y: array<f32>;
@compute @workgroup_size(1) fn constant_composites() {
    constant_composites_y[0] = CONSTANT_ARRAY[0];
    constant_composites_y[1] = CONSTANT_PAIR.a;
    constant_composites_y[2] = ldexp(CONSTANT_PAIR.b.y, 1);
    constant_composites_y[3] = CONSTANT_PARTS[1].fract;
    let parts = CONSTANT_PARTS[1];
    constant_composites_y[4] = parts.whole;
}

//# constant_halves: hexadecimal literals, beside what is rewritten for naga
//= needs f16
//= write f16: 0*5 -> 12 0.75 7 60 2
enable f16;
@group(0) @binding(0) var<storage, read_write> constant_halves_y: array<f16>;
@compute @workgroup_size(1) fn constant_halves() {
    constant_halves_y[0] = 0x3p+2h;
    let x = constant_halves_y[0] * 0x1p-4h;
    constant_halves_y[1] = x;
    const y = mix(0xep-1h, 0h, 0);
    constant_halves_y[2] = y;
    let bits = bitcast<vec2<u32>>(vec4<f16>(x, 1h, 0h, 0h));
    constant_halves_y[3] = f16(bits.x >> 24u);
    constant_halves_y[4] = f16(frexp(4 * x).exp);
}

//# constant_tables: all of a table that a loop copies (GCC 12 lost zeros and ones at the end with AVX-512)
//= write u32: 0*96 -> 5*28 0*4 4294967280*28 4294967295*4 2147483648*28 4294967295*4
@group(0) @binding(0) var<storage, read_write> constant_tables_y: array<u32, 96>;
const CONSTANT_TABLE_A = array(5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 5u, 0u, 0u, 0u, 0u);
const CONSTANT_TABLE_B = array(~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~15u, ~0u, ~0u, ~0u, ~0u);
const CONSTANT_TABLE_C = array(0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u, ~0u, ~0u, ~0u, ~0u);
@compute @workgroup_size(1) fn constant_tables() {
    for (var i = 0u; i < 32u; i++) {
        constant_tables_y[i] = CONSTANT_TABLE_A[i];
    }
    for (var i = 0u; i < 32u; i++) {
        constant_tables_y[i + 32u] = CONSTANT_TABLE_B[i];
    }
    for (var i = 0u; i < 32u; i++) {
        constant_tables_y[i + 64u] = CONSTANT_TABLE_C[i];
    }
}
