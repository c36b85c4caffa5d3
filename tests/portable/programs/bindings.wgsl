// Uniform buffers are tensors that are read, by the layout rules of WGSL; the arguments are the buffers that an entry
// point uses, in the order of (group, binding).

//# uniform_struct: §13.4.1, members of a uniform structure are at their aligned offsets
//= read u32: 7 0 0 0 1.5f 2.5f 3.5f 9 4.5f 5.5f 0 0
//= write u32: 9*7 -> 7 1.5f 2.5f 3.5f 9 4.5f 5.5f
struct UniformStruct { n: u32, v: vec3<f32>, after: u32, pair: vec2<f32> }
@group(0) @binding(0) var<uniform> uniform_struct_u: UniformStruct;
@group(0) @binding(1) var<storage, read_write> uniform_struct_r: array<u32>;
@compute @workgroup_size(1)
fn uniform_struct() {
    uniform_struct_r[0] = uniform_struct_u.n;
    uniform_struct_r[1] = bitcast<u32>(uniform_struct_u.v.x);
    uniform_struct_r[2] = bitcast<u32>(uniform_struct_u.v.y);
    uniform_struct_r[3] = bitcast<u32>(uniform_struct_u.v.z);
    uniform_struct_r[4] = uniform_struct_u.after;
    uniform_struct_r[5] = bitcast<u32>(uniform_struct_u.pair.x);
    uniform_struct_r[6] = bitcast<u32>(uniform_struct_u.pair.y);
}

//# uniform_array: an array of vectors in a uniform buffer, indexed by an item
//= read f32: 1 2 3 4 5 6 7 8 9 10 11 12
//= write f32: 0*4 -> 1 6 11 0
@group(0) @binding(0) var<uniform> uniform_array_u: array<vec4<f32>, 3>;
@group(0) @binding(1) var<storage, read_write> uniform_array_r: array<f32>;
@compute @workgroup_size(3)
fn uniform_array(@builtin(local_invocation_index) i: u32) { uniform_array_r[i] = uniform_array_u[i][i]; }

//# uniform_matrix: §13.4.1, columns of three rows are 16 bytes apart
//= read f32: 1 2 3 0 4 5 6 0 7 8 9 0
//= write f32: 0*3 -> 12 15 18
@group(0) @binding(0) var<uniform> uniform_matrix_u: mat3x3<f32>;
@group(0) @binding(1) var<storage, read_write> uniform_matrix_r: array<f32>;
@compute @workgroup_size(1)
fn uniform_matrix() {
    let v = uniform_matrix_u * vec3<f32>(1.0, 1.0, 1.0);
    for (var i = 0; i < 3; i++) { uniform_matrix_r[i] = v[i]; }
}

//# uniform_scalar: a uniform buffer of one number
//= read i32: -3
//= write i32: 0 -> -6
@group(0) @binding(0) var<uniform> uniform_scalar_u: i32;
@group(0) @binding(1) var<storage, read_write> uniform_scalar_r: array<i32>;
@compute @workgroup_size(1)
fn uniform_scalar() { uniform_scalar_r[0] = 2 * uniform_scalar_u; }

//# uniform_barrier: §15.2, a value of a uniform buffer is uniform, so a barrier may depend on it
//= read u32: 2
//= write u32: 0*4 -> 3 2 1 0
@group(0) @binding(0) var<uniform> uniform_barrier_n: u32;
@group(0) @binding(1) var<storage, read_write> uniform_barrier_r: array<u32>;
var<workgroup> uniform_barrier_w: array<u32, 4>;
@compute @workgroup_size(4)
fn uniform_barrier(@builtin(local_invocation_index) i: u32) {
    for (var round = 0u; round < uniform_barrier_n; round++) {
        uniform_barrier_w[i] = i;
        workgroupBarrier();
    }
    uniform_barrier_r[i] = uniform_barrier_w[3u - i];
}

//# gaps: bindings with gaps, which begin above 0 and are declared in another order
//= read u32: 5
//= read u32: 7
//= write u32: 0*2 -> 5 7
@group(0) @binding(9) var<storage, read_write> gaps_r: array<u32>;
@group(0) @binding(2) var<storage, read> gaps_x: array<u32>;
@group(0) @binding(4) var<uniform> gaps_y: u32;
@compute @workgroup_size(1)
fn gaps() {
    gaps_r[0] = gaps_x[0];
    gaps_r[1] = gaps_y;
}

//# other_groups: the order of the arguments is that of the groups, then that of the bindings
//= read u32: 1 2
//= read u32: 3 5
//= write u32: 0*2 -> 6 8
//= read u32: 2
@group(2) @binding(1) var<uniform> other_groups_factor: u32;
@group(0) @binding(1) var<storage, read> other_groups_x: array<u32>;
@group(2) @binding(0) var<storage, read_write> other_groups_r: array<u32>;
@group(1) @binding(0) var<storage, read> other_groups_y: array<u32>;
@compute @workgroup_size(2)
fn other_groups(@builtin(local_invocation_index) i: u32) {
    other_groups_r[i] = (other_groups_y[i] - other_groups_x[i] + 1u) * other_groups_factor;
}

//# second_entry: entry points that number the same buffers differently, directly and through a function
//= read u32: 4
//= write u32: 0 -> 40
@group(0) @binding(0) var<storage, read> second_entry_a: array<u32>;
@group(0) @binding(1) var<storage, read> second_entry_x: array<u32>;
@group(0) @binding(2) var<storage, read_write> second_entry_r: array<u32>;
fn second_entry_read(i: u32) -> u32 { return second_entry_x[i]; }
fn second_entry_scaled(i: u32) -> u32 { return 10u * second_entry_read(i); }
@compute @workgroup_size(1)
fn second_entry_first() { second_entry_r[0] = second_entry_a[0] + second_entry_scaled(0u); }
@compute @workgroup_size(1)
fn second_entry() { second_entry_r[0] = second_entry_scaled(0u); }

//# other_stages: a vertex and a fragment shader, and what only they use, are left alone
//= read u32: 4
//= write u32: 0 -> 5
@group(0) @binding(0) var other_stages_texture: texture_2d<f32>;
@group(0) @binding(1) var other_stages_sampler: sampler;
@group(0) @binding(2) var<uniform> other_stages_n: u32;
@group(0) @binding(3) var<storage, read_write> other_stages_r: array<u32>;
@group(0) @binding(4) var<uniform> other_stages_unused: vec4<f32>;
@vertex
fn other_stages_vertex(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> { return vec4<f32>(f32(i)); }
@fragment
fn other_stages_fragment(@location(0) at: vec2<f32>) -> @location(0) vec4<f32> {
    return textureSample(other_stages_texture, other_stages_sampler, at) + other_stages_slope(at.x) + other_stages_unused;
}
fn other_stages_slope(x: f32) -> vec4<f32> { return vec4<f32>(dpdx(x)); }
@compute @workgroup_size(1)
fn other_stages() { other_stages_r[0] = other_stages_n + 1u; }

//# by_value_struct: the numbers of a uniform structure are scalars: a scalar, a vector as a whole and its parts
//= by_value by_value_struct_u
//= write f32: 0*6 -> 7 1.5 2.5 3.5 2.5 4
//= scalar u32: 7
//= scalar f32: 1.5
//= scalar f32: 2.5
//= scalar f32: 3.5
//= scalar i32: -4
struct ByValueStruct { n: u32, v: vec3<f32>, s: i32 }
@group(0) @binding(0) var<uniform> by_value_struct_u: ByValueStruct;
@group(0) @binding(1) var<storage, read_write> by_value_struct_r: array<f32>;
@compute @workgroup_size(1)
fn by_value_struct() {
    let v = by_value_struct_u.v;
    by_value_struct_r[0] = f32(by_value_struct_u.n);
    by_value_struct_r[1] = v.x;
    by_value_struct_r[2] = v.y;
    by_value_struct_r[3] = by_value_struct_u.v.z;
    by_value_struct_r[4] = by_value_struct_u.v[by_value_struct_u.n - 6u];
    by_value_struct_r[5] = f32(-by_value_struct_u.s);
}

//# by_value_whole: a structure is copied as a whole, and passed on to a function
//= by_value by_value_whole_u
//= write u32: 0*2 -> 33 6
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 30
//= scalar u32: 6
struct ByValuePair { a: vec2<u32>, b: u32 }
struct ByValueWhole { pair: ByValuePair, last: u32 }
@group(0) @binding(0) var<uniform> by_value_whole_u: ByValueWhole;
@group(0) @binding(1) var<storage, read_write> by_value_whole_r: array<u32>;
fn by_value_whole_sum(p: ByValuePair) -> u32 { return p.a.x + p.a.y + p.b; }
fn by_value_whole_last() -> u32 { return by_value_whole_u.last; }
@compute @workgroup_size(1)
fn by_value_whole() {
    let all = by_value_whole_u;
    by_value_whole_r[0] = by_value_whole_sum(all.pair);
    by_value_whole_r[1] = by_value_whole_last();
}

//# by_value_matrix: a matrix, an array and a nested array of structures, with a computed column
//= by_value by_value_matrix_u
//= write f32: 0*4 -> 9 3 2 6
//= scalar f32: 1
//= scalar f32: 2
//= scalar f32: 3
//= scalar f32: 4
//= scalar f32: 5
//= scalar f32: 6
//= scalar f32: 7
//= scalar f32: 8
//= scalar f32: 9
//= scalar f32: 10
struct ByValueItem { v: vec2<f32>, f: f32 }
struct ByValueMatrix { m: mat2x2<f32>, list: array<ByValueItem, 2> }
@group(0) @binding(0) var<uniform> by_value_matrix_u: ByValueMatrix;
@group(0) @binding(1) var<storage, read_write> by_value_matrix_r: array<f32>;
@compute @workgroup_size(4)
fn by_value_matrix(@builtin(local_invocation_index) i: u32) {
    switch i {
        case 0u: { by_value_matrix_r[i] = by_value_matrix_u.list[1].v.y; }
        case 1u: { by_value_matrix_r[i] = by_value_matrix_u.m[i].x; }
        case 2u: { by_value_matrix_r[i] = by_value_matrix_u.m[0][i - 1u]; }
        default: { by_value_matrix_r[i] = by_value_matrix_u.list[i - 3u].v[1]; }
    }
}

//# by_value_two: two buffers are one list of scalars, in the order of the options; a third remains a tensor
//= by_value by_value_two_b
//= by_value by_value_two_a
//= read u32: 100
//= write u32: 0 -> 123
//= scalar u32: 20
//= scalar u32: 3
@group(0) @binding(0) var<uniform> by_value_two_a: u32;
@group(0) @binding(1) var<uniform> by_value_two_b: u32;
@group(0) @binding(2) var<uniform> by_value_two_c: u32;
@group(0) @binding(3) var<storage, read_write> by_value_two_r: array<u32>;
@compute @workgroup_size(1)
fn by_value_two() { by_value_two_r[0] = by_value_two_a + by_value_two_b + by_value_two_c; }
