/* The kernels of the suite in CUDA C. Element counts come last, as in `suite.c`. All elements are processed, whatever
   the geometry. */
typedef long long i64;
typedef unsigned long long u64;

#define ITEMS ((i64)gridDim.x * blockDim.x)
#define ITEM ((i64)blockIdx.x * blockDim.x + threadIdx.x)
#define FOR_EACH(i, n) for (i64 i = ITEM; i < (n); i += ITEMS)
#define ONLY_ONE (ITEM == 0)

extern "C" __global__ void noop() {}

extern "C" __global__ void spin(i64 microseconds) {
    u64 begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while ((i64)(now - begin) < microseconds * 1000);
}

extern "C" __global__ void add_f32(const float *a, const float *b, float *out, i64 n) {
    FOR_EACH(i, n) out[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy_f32(const float *x, float *y, float a, i64 n) {
    FOR_EACH(i, n) y[i] += a * x[i];
}

extern "C" __global__ void scale_f32(float *x, float a, i64 n) {
    FOR_EACH(i, n) x[i] *= a;
}

extern "C" __global__ void fill_f32(float *out, float value, i64 n) {
    FOR_EACH(i, n) out[i] = value;
}

extern "C" __global__ void copy_f32(const float *from, float *to, i64 n) {
    FOR_EACH(i, n) to[i] = from[i];
}

extern "C" __global__ void iota_i32(int *out, i64 n) {
    FOR_EACH(i, n) out[i] = (int)i;
}

extern "C" __global__ void sum9(double a, i64 b, double c, i64 d, double e, i64 f, double g, i64 h, double *out) {
    if (ONLY_ONE) *out = a + (double)b + c + (double)d + e + (double)f + g + (double)h;
}

extern "C" __global__ void sum20(int a, double b, i64 c, float d, unsigned char e, double f, short g, float h, unsigned i, double j,
                                 i64 k, double l, signed char m, double n, u64 o, double p, unsigned short q, double r, float s,
                                 double *out) {
    if (ONLY_ONE)
        *out = a + b + (double)c + d + e + f + g + h + i + j + (double)k + l + m + n + (double)o + p + q + r + s;
}

struct record {
    int first;
    float second;
    i64 third;
};

extern "C" __global__ void sum_record(record record, double *out) {
    if (ONLY_ONE) *out = record.first + (double)record.second + (double)record.third;
}

/* Reverses `n` numbers through `n` elements of work-group memory: every group loads all of them, and writes its part. */
extern "C" __global__ void reverse_f32(const float *in, float *out, i64 n) {
    extern __shared__ float scratch[];
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) scratch[i] = in[i];
    __syncthreads();
    FOR_EACH(i, n) out[i] = scratch[n - 1 - i];
}

extern "C" __global__ void group_ids_u32(unsigned *out) {
    unsigned group = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned id = group * (blockDim.x * blockDim.y * blockDim.z) + item;
    out[id] = id;
}
