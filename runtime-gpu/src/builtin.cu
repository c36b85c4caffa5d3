// The backend's own kernels. `builtin.ptx` is the output of NVRTC 12 for compute_52, without the `.version` and `.target` lines.

extern "C" __global__ void empty() {}

// Stores `count` words of 8 bytes, alternating between the two words of the pattern.
extern "C" __global__ void fill_words(unsigned long long *out, unsigned long long count, unsigned long long even,
                                      unsigned long long odd) {
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = i & 1 ? odd : even;
}

// Stores `count` bytes, cycling through the sixteen bytes of the pattern: for unaligned ranges.
extern "C" __global__ void fill_bytes(unsigned char *out, unsigned long long count, unsigned long long even,
                                      unsigned long long odd) {
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = (unsigned char)((i & 8 ? odd : even) >> (8 * (i & 7)));
}
