// The kernels of the backend itself. `builtin.ptx` is what NVRTC 12 makes of this for compute_52, without its lines for version and
// target.

extern "C" __global__ void empty() {}

// Stores `count` words of 8 bytes, the two words of the pattern in turn.
extern "C" __global__ void fill_words(unsigned long long *out, unsigned long long count, unsigned long long even,
                                      unsigned long long odd) {
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = i & 1 ? odd : even;
}

// Stores `count` bytes, the sixteen bytes of the pattern in turn: for what is not aligned.
extern "C" __global__ void fill_bytes(unsigned char *out, unsigned long long count, unsigned long long even,
                                      unsigned long long odd) {
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        out[i] = (unsigned char)((i & 8 ? odd : even) >> (8 * (i & 7)));
}
