// Kernels for the tests of Hopper features.
struct alignas(64) Map { char bytes[128]; };

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Each group of a cluster of four stores its number in shared memory; every group adds up the four numbers.
extern "C" __global__ void cluster_sum(unsigned *sums) {
    __shared__ unsigned mine;
    unsigned sum = 0, size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    if (threadIdx.x == 0) mine = blockIdx.x + 1;
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    for (unsigned rank = 0; rank < size; rank++) {
        unsigned there, value;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(&mine)), "r"(rank));
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
        sum += value;
    }
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Each group writes its number, waits for all groups, and reads its neighbour's.
extern "C" __global__ void exchange(unsigned *arrived, volatile unsigned *numbers, unsigned *received) {
    if (threadIdx.x == 0) {
        numbers[blockIdx.x] = blockIdx.x;
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned *)arrived < gridDim.x) { }
        __threadfence();
        received[blockIdx.x] = numbers[(blockIdx.x + 1) % gridDim.x];
    }
}

// Loads the tile at (x, y) into shared memory with a bulk copy.
extern "C" __global__ void tile(const __grid_constant__ Map map, float *out, int x, int y) {
    __shared__ alignas(128) float box[256];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned bar = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     :: "r"(shared_address(box)), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
    }
    __syncthreads();
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(bar) : "memory");
    out[threadIdx.x] = box[threadIdx.x];
}
