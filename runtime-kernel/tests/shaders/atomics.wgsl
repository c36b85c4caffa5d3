struct Counter { total: atomic<u32>, bins: array<atomic<i32>> }
@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> counter: Counter;
var<workgroup> local: array<atomic<u32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    atomicStore(&local[lane], 0u);
    workgroupBarrier();
    atomicAdd(&local[keys[id.x] % 64u], 1u);
    workgroupBarrier();
    let old = atomicMax(&counter.bins[lane], i32(atomicLoad(&local[lane])));
    let exchanged = atomicCompareExchangeWeak(&counter.total, 0u, u32(old));
    if exchanged.exchanged { atomicXor(&counter.bins[id.x], 7); }
    atomicSub(&counter.total, exchanged.old_value);
}
