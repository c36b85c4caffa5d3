// A view is read by the strides of its layout, whose place among the scalars is not the first.

//# strided_copy: layouts: a transposed view is read by its shape and its strides, which functions take by value
//= scalar f32: 2
//= scalar u32: 1
//= scalar u32: 3
//= scalar u32: 2
//= scalar i32: 0
//= scalar i32: 1
//= scalar i32: 3
//= scalar u32: 6
//= read f32: 0 1 2 3 4 5
//= write f32: 9*8 -> 0 6 2 8 4 10 9 9
struct Layout { shape: array<u32, 3>, strides: array<i32, 3> }
struct StridedCopy { factor: f32, strided_copy_x_layout: Layout, n: u32 }
var<immediate> strided_copy_s: StridedCopy;
@group(0) @binding(0) var<storage, read> strided_copy_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> strided_copy_y: array<f32>;
fn strided_copy_offset(l: Layout, index: u32) -> u32 {
    var rest = index;
    var sum = 0u;
    for (var d = 3u; d > 0; d--) {
        sum += rest % l.shape[d - 1] * u32(l.strides[d - 1]);
        rest /= l.shape[d - 1];
    }
    return sum;
}
@compute @workgroup_size(8)
fn strided_copy(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < strided_copy_s.n {
        strided_copy_y[i] = strided_copy_s.factor * strided_copy_x[strided_copy_offset(strided_copy_s.strided_copy_x_layout, i)];
    }
}

//# pad_struct: §structure-member-layout, a store of a structure leaves the bytes between its members as they are
//= write f32: 100*24 -> -1 100*3 -2 -3 -4 -5 -6 -7 100*14
struct PadStruct { a: f32, b: vec3f, c: f32, d: vec2f }
@group(0) @binding(0) var<storage, read_write> pad_struct_y: array<PadStruct>;
@compute @workgroup_size(1)
fn pad_struct() {
    pad_struct_y[0] = PadStruct(-1, vec3f(-2, -3, -4), -5, vec2f(-6, -7));
}

//# pad_vec3_array: §array-layout-rules, a store of an array leaves the bytes behind each vector as they are
//= write u32: 9*8 -> 1 2 3 9 4 5 6 9
struct PadVectors { a: array<vec3u, 2> }
@group(0) @binding(0) var<storage, read_write> pad_vec3_array_y: PadVectors;
@compute @workgroup_size(1)
fn pad_vec3_array() {
    pad_vec3_array_y.a = array<vec3u, 2>(vec3u(1, 2, 3), vec3u(4, 5, 6));
}

//# pad_matrices: §internal-value-layout, a store of a matrix leaves the bytes behind each column of three as they are
//= write f32: 9*32 -> 1 2 3 9 4 5 6 9 9*8 1 2 3 9 4 5 6 9 7 8 9 9 0 0 0 9
struct PadMatrices { a: mat2x3f, b: array<vec4f, 2>, c: mat4x3f }
@group(0) @binding(0) var<storage, read_write> pad_matrices_y: PadMatrices;
@compute @workgroup_size(1)
fn pad_matrices() {
    pad_matrices_y.a = mat2x3f(1, 2, 3, 4, 5, 6);
    let c = mat4x3f(vec3f(1, 2, 3), vec3f(4, 5, 6), vec3f(7, 8, 9), vec3f());
    pad_matrices_y.c = c;
}

//# pad_half: §internal-value-layout, the same for f16
//= needs f16
//= write f16: 9*12 -> 1 2 3 9 4 5 6 9 7 8 9*2
enable f16;
struct PadHalf { a: mat2x3<f16>, b: vec2<f16>, c: f16 }
@group(0) @binding(0) var<storage, read_write> pad_half_y: array<PadHalf>;
@compute @workgroup_size(1)
fn pad_half() {
    let old = pad_half_y[0];
    pad_half_y[0] = PadHalf(mat2x3<f16>(1, 2, 3, 4, 5, 6), vec2<f16>(7, 8), old.c);
}

//# pad_nested: §structure-member-layout, the same in parts of parts
//= write u32: 9*40 -> 1 9 2 3 4 9*3 5 6 7 9 10 11 12 9 1 9 2 3 4 9*3 5 6 7 9 10 11 12 9 9*8
struct PadInner { @size(8) a: u32, @size(12) b: array<u32, 3> }
struct PadNested { inner: PadInner, @align(32) rows: array<vec3u, 2> }
@group(0) @binding(0) var<storage, read_write> pad_nested_y: array<PadNested, 2>;
@compute @workgroup_size(1)
fn pad_nested() {
    let inner = PadInner(1, array<u32, 3>(2, 3, 4));
    let value = PadNested(inner, array<vec3u, 2>(vec3u(5, 6, 7), vec3u(10, 11, 12)));
    pad_nested_y = array<PadNested, 2>(value, value);
}

//# pad_copies: §structure-member-layout, a copy of a structure has the members of its source and the padding of its target
//= groups 2
//= read u32: 1 2 3 4 5 6 7 8 11 12 13 14 15 16 17 18
//= write u32: 9*24 -> 1 9*3 5 6 7 9 11 9*3 15 16 17 9 9*8
struct PadCopied { a: u32, b: vec3u }
@group(0) @binding(0) var<storage, read> pad_copies_x: array<PadCopied>;
@group(0) @binding(1) var<storage, read_write> pad_copies_y: array<PadCopied, 3>;
@compute @workgroup_size(2)
fn pad_copies(@builtin(global_invocation_id) id: vec3u) {
    // Beyond the second element nothing is read and nothing is written.
    if id.x < arrayLength(&pad_copies_x) {
        pad_copies_y[id.x] = pad_copies_x[id.x];
    }
    pad_copies_y[id.x + 3] = pad_copies_x[id.x];
}

//# pad_through_memory: §workgroupUniformLoad-builtin, the same with values from functions and from other memory
//= write u32: 9*24 -> 1 9*3 2 3 4 9 5 9*3 6 7 8 9 10 9*3 11 12 13 9
struct PadPassed { a: u32, b: vec3u }
@group(0) @binding(0) var<storage, read_write> pad_through_memory_y: array<PadPassed>;
var<workgroup> pad_shared: PadPassed;
fn pad_made() -> PadPassed { return PadPassed(5, vec3u(6, 7, 8)); }
fn pad_store(to: ptr<storage, array<PadPassed>, read_write>, at: u32) { to[at] = PadPassed(10, vec3u(11, 12, 13)); }
@compute @workgroup_size(4)
fn pad_through_memory(@builtin(local_invocation_index) i: u32) {
    if i == 0 { pad_shared = PadPassed(1, vec3u(2, 3, 4)); }
    let shared_value = workgroupUniformLoad(&pad_shared);
    if i == 1 { pad_through_memory_y[0] = shared_value; }
    if i == 2 { pad_through_memory_y[1] = pad_made(); }
    if i == 3 {
        pad_store(&pad_through_memory_y, 2);
        pad_store(&pad_through_memory_y, 3);
    }
}

//# align_inside: §structure-member-layout, an @align holds for the structures and arrays around it, too
//= write u32: 9*160 -> 1 9*15 2 9*31 3 9*15 4 9*31 5 9*63
struct AlignInner { @align(64) x: u32 }
alias AlignPair = array<AlignInner, 2>;
struct AlignOuter { a: u32, b: AlignInner, c: AlignPair, d: u32 }
@group(0) @binding(0) var<storage, read_write> align_inside_y: array<AlignOuter>;
@compute @workgroup_size(1)
fn align_inside() {
    align_inside_y[0].a = 1;
    align_inside_y[0].b.x = 2;
    align_inside_y[0].c[1].x = 3;
    align_inside_y[0].d = 4;
    align_inside_y[1].b.x = 5;
}
