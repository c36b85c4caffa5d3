// The kernels of the suite for devices that take portable code. Tensors come before scalars, and an array knows its length.
override X: u32 = 64;
override Y: u32 = 1;
override Z: u32 = 1;

struct Rounds { rounds: u32 }
struct Value { value: f32 }

var<immediate> of_spin: Rounds;
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

// A loop that no compiler can leave out: its end hangs on what an atomic operation gives.
@compute @workgroup_size(X, Y, Z)
fn spin(@builtin(local_invocation_index) item: u32) {
    if item == 0u {
        atomicStore(&counter, 0u);
        while atomicAdd(&counter, 1u) < of_spin.rounds {}
    }
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
