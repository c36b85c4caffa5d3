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
