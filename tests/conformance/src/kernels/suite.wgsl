// The kernels of the suite in portable code. Tensors come before scalars; there are no element counts, because arrays have a length.
override X: u32 = 64;
override Y: u32 = 1;
override Z: u32 = 1;

struct Count { count: u32 }
struct Value { value: f32 }

var<immediate> of_spin: Count;
var<immediate> scalar: Value;

@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read> in1: array<f32>;
@group(0) @binding(0) var<storage, read_write> out0: array<f32>;
@group(0) @binding(1) var<storage, read_write> out1: array<f32>;
@group(0) @binding(2) var<storage, read_write> out2: array<f32>;
@group(0) @binding(0) var<storage, read_write> signed0: array<i32>;
@group(0) @binding(0) var<storage, read_write> unsigned0: array<u32>;

@compute @workgroup_size(X, Y, Z) fn noop() {}

var<workgroup> counter: atomic<u32>;

fn count_8() -> u32 {
    var last = atomicAdd(&counter, 1u);
    last = max(last, atomicAdd(&counter, 1u));
    last = max(last, atomicAdd(&counter, 1u));
    last = max(last, atomicAdd(&counter, 1u));
    last = max(last, atomicAdd(&counter, 1u));
    last = max(last, atomicAdd(&counter, 1u));
    last = max(last, atomicAdd(&counter, 1u));
    return max(last, atomicAdd(&counter, 1u));
}

fn count_64() -> u32 {
    return max(max(max(count_8(), count_8()), max(count_8(), count_8())), max(max(count_8(), count_8()), max(count_8(), count_8())));
}

// Counts to `count`, all work-items of a group together. No compiler can remove the loop, because its condition depends on
// atomic operations. Its body is long, because lavapipe (Mesa 22.3) ends the loops of a work-item after 65535 iterations,
// whatever their conditions are.
@compute @workgroup_size(X, Y, Z)
fn spin(@builtin(local_invocation_index) item: u32) {
    if item == 0u { atomicStore(&counter, 0u); }
    workgroupBarrier();
    while count_64() < of_spin.count {}
}

@compute @workgroup_size(X, Y, Z)
fn add_f32(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&out2) { out2[id.x] = in0[id.x] + in1[id.x]; }
}

@compute @workgroup_size(X, Y, Z)
fn saxpy_f32(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&out1) { out1[id.x] += scalar.value * in0[id.x]; }
}

@compute @workgroup_size(X, Y, Z)
fn scale_f32(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&out0) { out0[id.x] *= scalar.value; }
}

@compute @workgroup_size(X, Y, Z)
fn fill_f32(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&out0) { out0[id.x] = scalar.value; }
}

@compute @workgroup_size(X, Y, Z)
fn copy_f32(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x]; }
}

@compute @workgroup_size(X, Y, Z)
fn iota_i32(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&signed0) { signed0[id.x] = i32(id.x); }
}

@compute @workgroup_size(X, Y, Z)
fn group_ids_u32(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) item: u32,
) {
    let id = (group.x + groups.x * (group.y + groups.y * group.z)) * (X * Y * Z) + item;
    unsigned0[id] = id;
}
