//! launch main groups=1 lengths=512 seed=3
// A helper that uses work-group memory and is called twice. Unless it is inlined, PoCL gives it other memory than the kernel.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> sums: array<atomic<u32>, 256>;
fn one_part(group: u32, part: u32, item: u32) {
    atomicStore(&sums[item], 0u);
    workgroupBarrier();
    for (var i = 0u; i < 15u; i++) { atomicAdd(&sums[(item * 7u + i) & 255u], 1u); }
    workgroupBarrier();
    atomicAdd(&sums[item], part);
    y[256u * (2u * group + part) + item] += atomicLoad(&sums[item]);
}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_id) item: vec3u) { one_part(g.x, 0u, item.x); one_part(g.x, 1u, item.x); }
