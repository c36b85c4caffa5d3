enable subgroups; diagnostic(off, subgroup_uniformity);
@group(0) @binding(0) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_size) size: u32, @builtin(subgroup_invocation_id) lane: u32) {
    var sum = subgroupAdd(x[id.x]);
    sum += subgroupShuffleXor(sum, 1u) + subgroupBroadcast(sum, 0u) + subgroupExclusiveAdd(sum);
    if subgroupAny(sum > 1.0) { sum += f32(countOneBits(subgroupBallot(lane < size / 2u).x)); }
    x[id.x] = sum;
}
