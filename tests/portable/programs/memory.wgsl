// Layout, pointers, matrices, arrays, and accesses out of range.

//# struct_layout: §structure-member-layout: offsets 0, 16, 28, 32, 40; size 48
//= read u32: 1.5f 0*3 2f 3f 4f 7 5f 6f 9 0 10f 0*3 20f 30f 40f 70 50f 60f 90 0
//= write f32: 0*2 -> 37.5 370
struct StructLayout { a: f32, b: vec3<f32>, c: u32, d: vec2<f32>, e: i32 }
@group(0) @binding(0) var<storage, read> struct_layout_x: array<StructLayout>;
@group(0) @binding(1) var<storage, read_write> struct_layout_r: array<f32>;
@compute @workgroup_size(2)
fn struct_layout(@builtin(local_invocation_index) i: u32) {
    let s = struct_layout_x[i];
    struct_layout_r[i] = s.a + s.b.x + s.b.y + s.b.z + f32(s.c) + s.d.x + s.d.y + f32(s.e);
}

//# struct_written: §structure-member-layout: members are written in place; padding is preserved
//= write u32: 0xaaaaaaaa*12 -> 1f _ _ _ 2f 3f 4f 5 6f 7f 0xfffffff8 _
struct StructWritten { a: f32, b: vec3<f32>, c: u32, d: vec2<f32>, e: i32 }
@group(0) @binding(0) var<storage, read_write> struct_written_r: array<StructWritten>;
@compute @workgroup_size(1)
fn struct_written() { struct_written_r[0] = StructWritten(1, vec3(2, 3, 4), 5, vec2(6, 7), -8); }

//# struct_attributes: §size-attr, §align-attr: offsets 0, 16, 32, 48; size 96
//= read u32: 1 0*3 2 0*3 3 0*3 4 0*11
//= write u32: 0*4 -> 1 2 3 4
struct StructAttributes { @size(16) a: u32, b: u32, @align(32) c: u32, @align(16) @size(32) d: u32 }
@group(0) @binding(0) var<storage, read> struct_attributes_x: array<StructAttributes>;
@group(0) @binding(1) var<storage, read_write> struct_attributes_r: array<u32>;
@compute @workgroup_size(1)
fn struct_attributes() {
    let s = struct_attributes_x[0];
    struct_attributes_r[0] = s.a; struct_attributes_r[1] = s.b;
    struct_attributes_r[2] = s.c; struct_attributes_r[3] = struct_attributes_x[0].d;
}

//# nested_structs: §structure-member-layout: a struct in a struct, an array in a struct
//= read u32: 1 0*3 2 3 4 0 5 6 7 0 8 0*3
//= write u32: 0*3 -> 36 5 8
struct NestedInner { v: vec3<u32> }
struct NestedStructs { head: u32, inner: array<NestedInner, 2>, tail: u32 }
@group(0) @binding(0) var<storage, read> nested_structs_x: NestedStructs;
@group(0) @binding(1) var<storage, read_write> nested_structs_r: array<u32>;
@compute @workgroup_size(1)
fn nested_structs() {
    var s = nested_structs_x;
    var sum = s.head + s.tail;
    for (var i = 0u; i < 2u; i++) { sum += s.inner[i].v.x + s.inner[i].v.y + s.inner[i].v.z; }
    nested_structs_r[0] = sum;
    nested_structs_r[1] = nested_structs_x.inner[1].v[0];
    s.inner[1].v.x = 100u;
    nested_structs_r[2] = nested_structs_x.tail;
}

//# runtime_tail: §arrayLength-builtin of the last member of a struct
//= read u32: 5 0 1 2 3 4 5 6
//= write u32: 0*3 -> 3 7 12
struct RuntimeTail { head: u32, items: array<vec2<u32>> }
@group(0) @binding(0) var<storage, read> runtime_tail_x: RuntimeTail;
@group(0) @binding(1) var<storage, read_write> runtime_tail_r: array<u32>;
@compute @workgroup_size(1)
fn runtime_tail() {
    let n = arrayLength(&runtime_tail_x.items);
    runtime_tail_r[0] = n;
    runtime_tail_r[1] = runtime_tail_x.items[1].x + runtime_tail_x.items[1].y;
    var sum = 0u;
    for (var i = 0u; i < n; i++) { sum += runtime_tail_x.items[i].y; }
    runtime_tail_r[2] = sum;
}

//# array_lengths: §arrayLength-builtin: whole elements of 16 bytes for vec3; a partial tail does not count
//= read f32: 0*11
//= read u32: 0*7
//= write u32: 0*3 -> 2 7 3
@group(0) @binding(0) var<storage, read> array_lengths_v: array<vec3<f32>>;
@group(0) @binding(1) var<storage, read> array_lengths_u: array<u32>;
@group(0) @binding(2) var<storage, read_write> array_lengths_r: array<u32>;
@compute @workgroup_size(1)
fn array_lengths() {
    array_lengths_r[0] = arrayLength(&array_lengths_v);
    array_lengths_r[1] = arrayLength(&array_lengths_u);
    array_lengths_r[2] = arrayLength(&array_lengths_r);
}

//# vec3_arrays: §alignment-and-size: writing a vec3 preserves its padding
//= write f32: 9*8 -> 1 2 3 9 2 4 6 9
@group(0) @binding(0) var<storage, read_write> vec3_arrays_r: array<vec3<f32>>;
@compute @workgroup_size(2)
fn vec3_arrays(@builtin(local_invocation_index) i: u32) { vec3_arrays_r[i] = vec3<f32>(1, 2, 3) * f32(i + 1u); }

//# vector_components: §component-reference-from-vector-reference: one component is written
//= write i32: 1 2 3 4 -> 1 20 3 40
@group(0) @binding(0) var<storage, read_write> vector_components_r: array<vec4<i32>>;
@compute @workgroup_size(2)
fn vector_components(@builtin(local_invocation_index) i: u32) {
    if (i == 0u) { vector_components_r[0].y = 20; } else { vector_components_r[0][i + 2u] = 40; }
}

//# matrix_layout: §alignment-and-size: columns of mat3x3 are 16 bytes apart, of mat2x2 8
//= read f32: 1 2 3 0 4 5 6 0 7 8 9 0
//= read f32: 1 2 3 4
//= write f32: 0*8 -> 4 8 3 6 2 3 9 7
@group(0) @binding(0) var<storage, read> matrix_layout_a: mat3x3<f32>;
@group(0) @binding(1) var<storage, read> matrix_layout_b: array<mat2x2<f32>>;
@group(0) @binding(2) var<storage, read_write> matrix_layout_r: array<f32>;
@compute @workgroup_size(1)
fn matrix_layout(@builtin(num_workgroups) n: vec3<u32>) {
    matrix_layout_r[0] = matrix_layout_a[1][0];
    matrix_layout_r[1] = matrix_layout_a[2].y;
    matrix_layout_r[2] = matrix_layout_a[n.x - 1u][n.x + 1u];
    matrix_layout_r[3] = transpose(matrix_layout_a)[2][1];
    matrix_layout_r[4] = matrix_layout_b[0][0].y;
    matrix_layout_r[5] = matrix_layout_b[0][n.x].x;
    var copy = matrix_layout_a;
    copy[0] = copy[2];
    matrix_layout_r[6] = copy[0].z;
    copy[1][2] = 11;
    matrix_layout_r[7] = matrix_layout_a[2][0];
}

//# matrix_products: §arithmetic-expr: columns first
//= read f32: 1 2 3 4 5 6
//= write f32: 0*12 -> 9 19 29 39 23 50 3 7 11 6 14 22
@group(0) @binding(0) var<storage, read> matrix_products_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> matrix_products_r: array<f32>;
@compute @workgroup_size(1)
fn matrix_products() {
    let x = matrix_products_x[0];
    // Columns (1, 2), (3, 4), (5, 6).
    let m = mat3x2<f32>(x, 2, 3, 4, 5, 6);
    let mv = m * vec3<f32>(1, 1, x);
    matrix_products_r[0] = mv.x;
    let t = transpose(m);
    let mt = m * t;
    matrix_products_r[1] = t[1].x + t[1].y + t[1].z + 7;
    matrix_products_r[2] = (vec2<f32>(1, x) * m).x + (vec2<f32>(1, 1) * m).y + (vec2<f32>(1, 1) * m).z + 8;
    matrix_products_r[3] = mt[0].x + 4;
    matrix_products_r[4] = (m * mat2x3<f32>(1, 2, 3, 4, 5, 6))[0].x + 1;
    matrix_products_r[5] = (m * mat2x3<f32>(1, 2, 3, 4, 5, 6))[1].x + 1;
    let rows = vec2<f32>(1, 1) * m;
    matrix_products_r[6] = rows.x; matrix_products_r[7] = rows.y; matrix_products_r[8] = rows.z;
    let twice = vec2<f32>(1, 1) * (m * 2);
    matrix_products_r[9] = twice.x; matrix_products_r[10] = twice.y; matrix_products_r[11] = twice.z;
}

//# matrix_arithmetic: §arithmetic-expr: sums and scalings by component; §determinant-builtin, whose accuracy is unspecified
//= write f32: 0*6 -> 6 8 10 12 -2 -6
@group(0) @binding(0) var<storage, read_write> matrix_arithmetic_r: array<f32>;
@compute @workgroup_size(1)
fn matrix_arithmetic(@builtin(num_workgroups) n: vec3<u32>) {
    let one = f32(n.x);
    let a = mat2x2<f32>(one, 2, 3, 4);
    let b = mat2x2<f32>(5, 6, 7, 8);
    let sum = a + b;
    matrix_arithmetic_r[0] = sum[0].x; matrix_arithmetic_r[1] = sum[0].y;
    matrix_arithmetic_r[2] = sum[1].x; matrix_arithmetic_r[3] = sum[1].y;
    matrix_arithmetic_r[4] = determinant(a);
    matrix_arithmetic_r[5] = ((a - b) * 1.5)[1].y;
}

//# determinants: §determinant-builtin
//= write f32: 0*2 -> -3 24
@group(0) @binding(0) var<storage, read_write> determinants_r: array<f32>;
@compute @workgroup_size(1)
fn determinants(@builtin(num_workgroups) n: vec3<u32>) {
    let one = f32(n.x);
    determinants_r[0] = determinant(mat3x3<f32>(one, 2, 3, 4, 5, 6, 7, 8, 10));
    determinants_r[1] = determinant(mat4x4<f32>(one, 0, 0, 0, 5, 2, 0, 0, 6, 7, 3, 0, 1, 2, 3, 4));
}

//# function_pointers: §ref-ptr-types: a function writes a variable, a component and an element of its caller
//= write i32: 0*5 -> 11 2 13 4 36
fn function_pointers_add(p: ptr<function, i32>, x: i32) -> i32 { *p += x; return *p * 2; }
fn function_pointers_fill(p: ptr<function, array<i32, 3>>, x: i32) { for (var i = 0; i < 3; i++) { (*p)[i] = x + i; } }
@group(0) @binding(0) var<storage, read_write> function_pointers_r: array<i32>;
@compute @workgroup_size(1)
fn function_pointers() {
    var a = 1; var list: array<i32, 3>;
    let doubled = function_pointers_add(&a, 10);
    function_pointers_fill(&list, 2);
    let p = &list[1];
    *p += 10;
    function_pointers_r[0] = a; function_pointers_r[1] = list[0]; function_pointers_r[2] = list[1];
    function_pointers_r[3] = list[2];
    let q = &a;
    *q = *q + 3;
    function_pointers_r[4] = a + doubled;
}

//# private_pointers: §ref-ptr-types in the private address space, and to workgroup memory in a function
//= write u32: 0*2 -> 7 8
var<private> private_pointers_p: u32;
var<workgroup> private_pointers_w: u32;
fn private_pointers_set(p: ptr<private, u32>) { *p = 7u; }
@group(0) @binding(0) var<storage, read_write> private_pointers_r: array<u32>;
@compute @workgroup_size(1)
fn private_pointers() {
    private_pointers_set(&private_pointers_p);
    let shared_ = &private_pointers_w;
    *shared_ = 8u;
    private_pointers_r[0] = private_pointers_p; private_pointers_r[1] = private_pointers_w;
}

//# arrays_by_value: arrays and structs are copied, returned and compared member by member
//= write u32: 0*4 -> 1 6 9 2
struct ArraysByValue { items: array<u32, 3>, n: u32 }
fn arrays_by_value_make(n: u32) -> ArraysByValue { return ArraysByValue(array<u32, 3>(n, n + 1u, n + 2u), 3u); }
fn arrays_by_value_sum(s: ArraysByValue) -> u32 {
    var copy = s;
    copy.items[0] += 0u;
    return copy.items[0] + copy.items[1] + copy.items[2];
}
@group(0) @binding(0) var<storage, read_write> arrays_by_value_r: array<u32>;
@compute @workgroup_size(1)
fn arrays_by_value(@builtin(num_workgroups) n: vec3<u32>) {
    let a = arrays_by_value_make(n.x);
    var b = a;
    b.items[0] = 4u;
    arrays_by_value_r[0] = a.items[0];
    arrays_by_value_r[1] = arrays_by_value_sum(a);
    arrays_by_value_r[2] = arrays_by_value_sum(b);
    arrays_by_value_r[3] = b.items[n.x];
}

//# dynamic_indices: arrays, vectors and matrices of a function, by a dynamic index
//= read u32: 2 0 1
//= write f32: 0*9 -> 30 10 20 3 1 2 9 1 5
@group(0) @binding(0) var<storage, read> dynamic_indices_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> dynamic_indices_r: array<f32>;
@compute @workgroup_size(3)
fn dynamic_indices(@builtin(local_invocation_index) i: u32) {
    let at = dynamic_indices_x[i];
    let list = array<f32, 3>(10, 20, 30);
    var v = vec3<f32>(1, 2, 3);
    let m = mat3x3<f32>(1, 2, 3, 4, 5, 6, 7, 8, 9);
    dynamic_indices_r[i] = list[at];
    dynamic_indices_r[3u + i] = v[at];
    v[at] = m[at][at];
    dynamic_indices_r[6u + i] = v[at];
}

//# whole_array_copied: §assignment of an array in storage
//= read u32: 1 2 3 4
//= write u32: 0*4 -> 1 2 3 4
@group(0) @binding(0) var<storage, read> whole_array_copied_x: array<u32, 4>;
@group(0) @binding(1) var<storage, read_write> whole_array_copied_r: array<u32, 4>;
@compute @workgroup_size(1)
fn whole_array_copied() { whole_array_copied_r = whole_array_copied_x; }

//# subnormals_kept: §differences-from-ieee754: values that are only moved keep their bits
//= read f32: bits:0x1 bits:0x80000001 bits:0x007fffff
//= write f32: 0*3 -> bits:0x1 bits:0x80000001 bits:0x007fffff
@group(0) @binding(0) var<storage, read> subnormals_kept_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> subnormals_kept_r: array<f32>;
@compute @workgroup_size(3)
fn subnormals_kept(@builtin(local_invocation_index) i: u32) { subnormals_kept_r[i] = subnormals_kept_x[i]; }

//# read_out_of_range: §out-of-bounds-access: of the allowed results, this implementation guarantees zero
//= read u32: 7*5
//= write u32: 9*4 -> 0 0 0 7
@group(0) @binding(0) var<storage, read> read_out_of_range_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> read_out_of_range_r: array<u32>;
@compute @workgroup_size(4)
fn read_out_of_range(@builtin(local_invocation_index) i: u32) {
    let at = array<u32, 4>(5u, 4294967295u, 1073741824u, 4u);
    read_out_of_range_r[i] = read_out_of_range_x[at[i]];
}

//# write_out_of_range: §out-of-bounds-access: of the allowed results, this implementation guarantees no effect
//= write u32: 1 2 3 -> 1 2 3
@group(0) @binding(0) var<storage, read_write> write_out_of_range_r: array<u32>;
@compute @workgroup_size(8)
fn write_out_of_range(@builtin(local_invocation_index) i: u32) {
    let at = array<u32, 8>(3u, 4u, 63u, 64u, 1000u, 1073741823u, 1073741824u, 4294967295u);
    write_out_of_range_r[at[i]] = 5u;
}

//# negative_index: §array-access-expr with a signed index
//= read i32: 4 5 6
//= write i32: 9*3 -> 0 6 0
@group(0) @binding(0) var<storage, read> negative_index_x: array<i32>;
@group(0) @binding(1) var<storage, read_write> negative_index_r: array<i32>;
@compute @workgroup_size(3)
fn negative_index(@builtin(local_invocation_index) i: u32) {
    let at = array<i32, 3>(-1, 2, -2147483648);
    negative_index_r[i] = negative_index_x[at[i]];
    negative_index_r[at[i] - 100] = 77;
}

//# partial_elements: a partial vec4 at the end does not count as an element
//= read f32: 1 2 3 4 5 6
//= write f32: 9*6 -> 1 2 3 4 9 9
@group(0) @binding(0) var<storage, read> partial_elements_x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> partial_elements_r: array<vec4<f32>>;
@compute @workgroup_size(2)
fn partial_elements(@builtin(local_invocation_index) i: u32) {
    if (i < arrayLength(&partial_elements_r)) { partial_elements_r[i] = partial_elements_x[i]; }
}

//# local_out_of_range: §array-access-expr: an index out of range of a private or workgroup array has no side effects
//= read i32: 3 -1 1000000
//= write i32: 0*3 -> _ _ _
//= write i32: 0*3 -> 1 2 3
@group(0) @binding(0) var<storage, read> local_out_of_range_x: array<i32>;
@group(0) @binding(1) var<storage, read_write> local_out_of_range_r: array<i32>;
@group(0) @binding(2) var<storage, read_write> local_out_of_range_s: array<i32>;
var<workgroup> local_out_of_range_w: array<i32, 3>;
var<private> local_out_of_range_p: array<i32, 3>;
@compute @workgroup_size(3)
fn local_out_of_range(@builtin(local_invocation_index) i: u32) {
    var list = array<i32, 3>(1, 2, 3);
    var v = vec3<i32>(1, 2, 3);
    let at = local_out_of_range_x[i];
    local_out_of_range_w[i] = 0;
    workgroupBarrier();
    local_out_of_range_r[i] = list[at] + v[u32(at)] + local_out_of_range_w[at] + local_out_of_range_p[at];
    var copy = list;
    copy[at] = 7; local_out_of_range_p[at] = 7;
    v[at] = 7;
    local_out_of_range_s[i] = list[i];
}

//# whole_struct_out_of_range: a struct element out of range is neither read nor written in part
//= write u32: 1 2 3 4 5 6 -> 1 2 3 4 5 6
struct WholeStruct { a: u32, b: vec2<u32> }
@group(0) @binding(0) var<storage, read_write> whole_struct_r: array<WholeStruct>;
@compute @workgroup_size(1)
fn whole_struct_out_of_range(@builtin(num_workgroups) n: vec3<u32>) {
    let s = whole_struct_r[n.x + 5u];
    whole_struct_r[n.x + 6u] = WholeStruct(9u, vec2(9u, 9u));
    if (s.a > 6u) { whole_struct_r[0].a = 100u; }
}

//# many_buffers: bindings need not be declared in order
//= read u32: 1
//= read u32: 20
//= read u32: 300
//= read u32: 4000
//= write u32: 0 -> 4321
@group(0) @binding(4) var<storage, read_write> many_buffers_r: array<u32>;
@group(0) @binding(2) var<storage, read> many_buffers_c: array<u32>;
@group(0) @binding(0) var<storage, read> many_buffers_a: array<u32>;
@group(0) @binding(3) var<storage, read> many_buffers_d: array<u32>;
@group(0) @binding(1) var<storage, read> many_buffers_b: array<u32>;
@compute @workgroup_size(1)
fn many_buffers() {
    many_buffers_r[0] = many_buffers_a[0] + many_buffers_b[0] + many_buffers_c[0] + many_buffers_d[0];
}

//# reserved_names: names that are keywords of C, OpenCL C or CUDA C++
//= write i32: 0*3 -> 6 15 3
struct double { long: i32, unsigned: i32 }
fn float(int: i32, char: i32) -> i32 { let kernel = int + char; var global = kernel; global += 1; return global; }
@group(0) @binding(0) var<storage, read_write> volatile_: array<i32>;
@compute @workgroup_size(1)
fn reserved_names() {
    let threadIdx = 2; let atan2 = 3; var local = double(5, 10);
    volatile_[0] = float(threadIdx, atan2);
    volatile_[1] = local.long + local.unsigned;
    let size_t = vec2(1, 2);
    volatile_[2] = size_t.x + size_t.y;
}

//# flags_of_items: flags in work-group memory, one per work-item
//= groups 4
//= write u32: 9*132 -> 1*132
@group(0) @binding(0) var<storage, read_write> flags_of_items_r: array<u32>;
var<workgroup> flags_of_items_w: array<bool, 33>;
@compute @workgroup_size(33)
fn flags_of_items(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3<u32>) {
    flags_of_items_w[l] = true;
    if (flags_of_items_w[l]) { flags_of_items_r[g.x * 33u + l] = 1u; }
}

//# flags_in_structures: flags beside other members, in arrays
//= groups 2
//= write u32: 9*66 -> 5*66
struct FlaggedItem { on: bool, count: u32, off: bool }
@group(0) @binding(0) var<storage, read_write> flags_in_structures_r: array<u32>;
var<workgroup> flags_in_structures_w: array<FlaggedItem, 33>;
@compute @workgroup_size(33)
fn flags_in_structures(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3<u32>) {
    flags_in_structures_w[l].on = true;
    flags_in_structures_w[l].count = 4u;
    flags_in_structures_w[l].off = false;
    workgroupBarrier();
    let other = (l + 7u) % 33u;
    flags_in_structures_r[g.x * 33u + l] =
        flags_in_structures_w[other].count + select(0u, 1u, flags_in_structures_w[other].on && !flags_in_structures_w[l].off);
}

//# half_casts_inferred: §bitcast-builtin, a vector of two that is cast to a word is of halves
//= needs f16
//= read f16: 1 -2
//= write u32: 9*2 -> 0xc0003c00 0x00003c00
@group(0) @binding(0) var<storage, read> half_casts_inferred_x: array<f16>;
@group(0) @binding(1) var<storage, read_write> half_casts_inferred_r: array<u32>;
@compute @workgroup_size(1)
fn half_casts_inferred() {
    half_casts_inferred_r[0] = bitcast<u32>(vec2(half_casts_inferred_x[0], half_casts_inferred_x[1]));
    half_casts_inferred_r[1] = u32(bitcast<i32>(vec2(half_casts_inferred_x[0], 0.0)));
}

//# half_casts: §bitcast-builtin, a word is two halves, and two words are four
//= needs f16
//= read u32: 0x3c00c000 0x7bff8001
//= write f32: 9*6 -> -2 1 bits:0xb3800000|bits:0x80000000 65504 1 -2
//= write u32: 9*2 -> 0xc0003c00 0x3c003c00
@group(0) @binding(0) var<storage, read> half_casts_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> half_casts_r: array<f32>;
@group(0) @binding(2) var<storage, read_write> half_casts_w: array<u32>;
@compute @workgroup_size(1)
fn half_casts() {
    half_casts_r[0] = f32(bitcast<vec2<f16>>(half_casts_x[0]).x);
    half_casts_r[1] = f32(bitcast<vec2h>(bitcast<f32>(half_casts_x[0])).y);
    let four = bitcast<vec4<f16>>(vec2<u32>(half_casts_x[1], half_casts_x[0]));
    half_casts_r[2] = f32(four.x);
    half_casts_r[3] = f32(four.y);
    half_casts_r[4] = f32(four.w);
    half_casts_r[5] = f32(four.z);
    half_casts_w[0] = bitcast<u32>(vec2<f16>(four.w, four.z));
    half_casts_w[1] = u32(bitcast<i32>(vec2h(four.w)));
}

//# half_casts_keep_bits: §bitcast-builtin, also those of signalling NaNs
//= needs f16
//= read u32: 0x7c01fd55
//= write u32: 9*2 -> 0x7c01fd55 0xfd557c01
//= write f16: 9*2 -> bits:0x7c01 bits:0xfd55
@group(0) @binding(0) var<storage, read> half_casts_keep_bits_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> half_casts_keep_bits_r: array<u32>;
@group(0) @binding(2) var<storage, read_write> half_casts_keep_bits_h: array<f16>;
@compute @workgroup_size(1)
fn half_casts_keep_bits() {
    let two = bitcast<vec2<f16>>(half_casts_keep_bits_x[0]);
    half_casts_keep_bits_r[0] = bitcast<u32>(vec2<f16>(two.x, two.y));
    half_casts_keep_bits_r[1] = bitcast<u32>(vec2<f16>(two.y, two.x));
    half_casts_keep_bits_h[0] = two.y;
    half_casts_keep_bits_h[1] = two.x;
}

//# half_casts_of_names: §bitcast-builtin, of values whose types are declared elsewhere
//= needs f16
//= read u32: 0x7c01fd55 0xfc018001
//= write u32: 9*10 -> 0x7c01fd55 0xfd557c01 0xfc018001 0x7c01fd55 0xfc018001 0x7c01fd55 0xfc018001 0x7c01fd56 0x7c01fd55 0x3c007c01
struct HalfCasts { pairs: array<vec2<f16>, 2>, four: vec4<f16> }
alias HalfCastsPair = vec2<f16>;
var<workgroup> half_casts_of_names_shared: array<vec2<f16>, 2>;
@group(0) @binding(0) var<storage, read> half_casts_of_names_x: HalfCasts2;
struct HalfCasts2 { pairs: array<vec2<f16>, 2> }
@group(0) @binding(1) var<storage, read_write> half_casts_of_names_r: array<u32, 10>;
fn half_casts_swapped(pair: vec2<f16>) -> vec2<f16> { return pair.yx; }
fn half_casts_word(pair: vec2h) -> u32 { return bitcast<u32>(pair); }
@compute @workgroup_size(1)
fn half_casts_of_names() {
    let pair = half_casts_of_names_x.pairs[0];
    half_casts_of_names_r[0] = bitcast<u32>(pair);
    half_casts_of_names_r[1] = bitcast<u32>(half_casts_swapped(pair));
    var s = HalfCasts(half_casts_of_names_x.pairs, vec4<f16>());
    s.four = vec4<f16>(s.pairs[1], pair);
    half_casts_of_names_r[2] = u32(bitcast<i32>(s.pairs[half_casts_of_names_r[9] & 1u]));
    let words = bitcast<vec2<u32>>(s.four.zwxy);
    half_casts_of_names_r[3] = words.x;
    half_casts_of_names_r[4] = words.y;
    half_casts_of_names_shared[half_casts_of_names_r[9] & 1u] = pair;
    half_casts_of_names_r[5] = half_casts_word(half_casts_of_names_shared[1]);
    half_casts_of_names_r[6] = bitcast<u32>(select(pair, s.pairs[1], half_casts_of_names_r[9] > 1u));
    half_casts_of_names_r[7] = bitcast<u32>(pair) + 1u;
    half_casts_of_names_r[8] = bitcast<u32>(bitcast<HalfCastsPair>(bitcast<u32>(bitcast<HalfCastsPair>(bitcast<u32>(pair)))));
    half_casts_of_names_r[9] = bitcast<u32>(vec2<f16>(pair.y, bitcast<f16>(1h)));
}
