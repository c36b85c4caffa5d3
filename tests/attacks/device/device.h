// What the attacks on devices have in common, for CUDA C and OpenCL C. Each computes y[i] = work(x[i]) in one call, with n = 4096.
#ifdef __OPENCL_VERSION__
#define KERNEL __kernel
#define DEVICE __global
#define VARIABLE __global
#define FUNCTION
#define INDEX get_global_id(0)
#define ADD_ONE(variable) atomic_inc(&(variable))
typedef uint u32;
typedef ulong u64;
#else
#define KERNEL extern "C" __global__
#define DEVICE
#define VARIABLE __device__
#define FUNCTION __device__
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define ADD_ONE(variable) atomicAdd(&(variable), 1u)
typedef unsigned int u32;
typedef unsigned long long u64;
#endif

#define ARGUMENTS DEVICE u32 *x, DEVICE u32 *y
#define N 4096
#define ROUNDS 8000

FUNCTION u32 work(u32 v) {
    for (u32 i = 0; i < ROUNDS; i++) v = (v ^ (v >> 7)) * 2654435769u + i;
    return v;
}

// Whether all bytes are the same, as in an output that was poisoned.
FUNCTION int is_poison(u32 v) { return v == (v & 255) * 0x01010101u; }
