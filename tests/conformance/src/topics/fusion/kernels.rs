//! The kernels of the scenarios.

/// Kernels of one item per element.
pub(super) const ELEMENTS: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read> in1: array<f32>;
    @group(0) @binding(0) var<storage, read_write> out0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    @group(0) @binding(2) var<storage, read_write> out2: array<f32>;
    struct Scalars { factor: f32 }
    var<immediate> scalars: Scalars;
    @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[id.x] + in1[id.x]; }
    }
    @compute @workgroup_size(64) fn multiply(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[id.x] * in1[id.x]; }
    }
    @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * scalars.factor; }
    }
    @compute @workgroup_size(64) fn relu(@builtin(global_invocation_id) id: vec3u) {
        let i = id.x;
        if i >= arrayLength(&out0) { return; }
        out0[i] = max(out0[i], 0.0);
    }
    @compute @workgroup_size(64) fn neighbour(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[(id.x + 1) % arrayLength(&in0)]; }
    }
    @compute @workgroup_size(64) fn reversed(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[arrayLength(&in0) - 1 - id.x]; }
    }
    @compute @workgroup_size(64) fn gather(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[u32(in1[id.x])]; }
    }
    @compute @workgroup_size(32) fn negate(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = -in0[id.x]; }
    }";

/// Kernels of one group per 64 elements, whose items exchange them in work-group memory.
pub(super) const GROUPED: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    var<workgroup> tile: array<f32, 64>;
    @compute @workgroup_size(64)
    fn rotate(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) item: vec3u) {
        tile[item.x] = in0[id.x];
        workgroupBarrier();
        out1[id.x] = tile[(item.x + 1) % 64];
    }
    @compute @workgroup_size(64)
    fn mirror(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) item: vec3u) {
        out1[group.x * 64 + item.x] = in0[group.x * 64 + 63 - item.x];
    }
    @compute @workgroup_size(64)
    fn total(@builtin(workgroup_id) group: vec3u, @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) item: vec3u) {
        tile[item.x] = in0[id.x];
        for (var width = 32u; width > 0; width /= 2) {
            workgroupBarrier();
            if item.x < width { tile[item.x] += tile[item.x + width]; }
        }
        if item.x == 0 { out1[group.x] = tile[0]; }
    }";

pub(super) const TYPED: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<vec4f>;
    @group(0) @binding(1) var<storage, read_write> out1: array<vec4f>;
    @compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * 2.0; }
    }
    @compute @workgroup_size(64) fn swizzle(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x].wzyx; }
    }";

pub(super) const STRUCTURES: &str = "
    struct Pair { left: f32, right: f32 }
    @group(0) @binding(0) var<storage, read> in0: array<Pair>;
    @group(0) @binding(1) var<storage, read_write> out1: array<Pair>;
    @compute @workgroup_size(64) fn swap(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) {
            out1[id.x].left = in0[id.x].right;
            out1[id.x].right = in0[id.x].left;
        }
    }
    @compute @workgroup_size(64) fn sum(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = Pair(in0[id.x].left + in0[id.x].right, in0[id.x].left); }
    }";

pub(super) const FUNCTIONS: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    fn load(i: u32) -> f32 { return in0[i]; }
    fn raise(x: ptr<function, f32>) { *x += 1.0; }
    fn twice(x: ptr<function, f32>) { raise(x); raise(x); }
    @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&out1) { return; }
        var x = load(id.x);
        twice(&x);
        out1[id.x] = x;
    }";

pub(super) const PLANE: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    struct Size { width: u32, height: u32 }
    var<immediate> size: Size;
    @compute @workgroup_size(8, 8) fn raise(@builtin(global_invocation_id) id: vec3u) {
        if id.x < size.width && id.y < size.height { out1[id.y * size.width + id.x] = in0[id.y * size.width + id.x] + 1.0; }
    }
    @compute @workgroup_size(8, 8) fn twice(@builtin(global_invocation_id) id: vec3u) {
        if id.x < size.width && id.y < size.height { out1[id.y * size.width + id.x] = in0[id.y * size.width + id.x] * 2.0; }
    }";

pub(super) const HALVES: &str = "
    enable f16;
    @group(0) @binding(0) var<storage, read> in0: array<f16>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f16>;
    struct Scalars { factor: f16 }
    var<immediate> scalars: Scalars;
    @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * scalars.factor; }
    }";

pub(super) const ARRAYS: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    @compute @workgroup_size(64) fn prefix(@builtin(global_invocation_id) id: vec3u) {
        var sum = 0.0;
        for (var k = 0u; k < 4; k++) { sum += in0[id.x * 4 + k]; out1[id.x * 4 + k] = sum; }
    }
    @compute @workgroup_size(64) fn backwards(@builtin(global_invocation_id) id: vec3u) {
        for (var k = 0u; k < 4; k++) { out1[id.x * 4 + k] = in0[id.x * 4 + 3 - k]; }
    }";
