/* The kernels of the suite in OpenCL C. Element counts come last, as in `suite.c`. All elements are processed, whatever
   the geometry. */
#define ITEMS ((long)(get_global_size(0)))
#define ITEM ((long)(get_global_id(0)))
#define FOR_EACH(i, n) for (long i = ITEM; i < (n); i += ITEMS)
#define ONLY_ONE (ITEM == 0)

kernel void noop(void) {}

/* OpenCL C has no clock: spins with a chain of multiplications, of about a nanosecond each on any device. NVIDIA's compiler
   removes results that are never read, but accepts inline PTX. */
kernel void spin(long microseconds) {
    if (!ONLY_ONE) return;
#ifdef __NV_CL_C_VERSION
    ulong begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while ((long)(now - begin) < microseconds * 1000);
#else
    uint x = 3;
    for (long round = 0; round < microseconds * 1000; round++) x = x * x + 5;
    volatile uint kept = x;
    (void)kept;
#endif
}

kernel void add_f32(global const float *a, global const float *b, global float *out, long n) {
    FOR_EACH(i, n) out[i] = a[i] + b[i];
}

kernel void saxpy_f32(global const float *x, global float *y, float a, long n) {
    FOR_EACH(i, n) y[i] += a * x[i];
}

kernel void scale_f32(global float *x, float a, long n) {
    FOR_EACH(i, n) x[i] *= a;
}

kernel void fill_f32(global float *out, float value, long n) {
    FOR_EACH(i, n) out[i] = value;
}

kernel void copy_f32(global const float *from, global float *to, long n) {
    FOR_EACH(i, n) to[i] = from[i];
}

kernel void iota_i32(global int *out, long n) {
    FOR_EACH(i, n) out[i] = (int)i;
}

/* Reverses `n` numbers through `n` elements of work-group memory: every group loads all of them, and writes its part. */
kernel void reverse_f32(global const float *in, global float *out, local float *scratch, long n) {
    for (long i = get_local_id(0); i < n; i += get_local_size(0)) scratch[i] = in[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_EACH(i, n) out[i] = scratch[n - 1 - i];
}

kernel void group_ids_u32(global uint *out) {
    uint group = get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));
    uint item = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    uint id = group * (get_local_size(0) * get_local_size(1) * get_local_size(2)) + item;
    out[id] = id;
}

#ifdef cl_khr_fp64
kernel void sum9(double a, long b, double c, long d, double e, long f, double g, long h, global double *out) {
    if (ONLY_ONE) *out = a + (double)b + c + (double)d + e + (double)f + g + (double)h;
}

kernel void sum20(int a, double b, long c, float d, uchar e, double f, short g, float h, uint i, double j, long k, double l, char m,
                  double n, ulong o, double p, ushort q, double r, float s, global double *out) {
    if (ONLY_ONE)
        *out = a + b + (double)c + d + e + f + g + h + i + j + (double)k + l + m + n + (double)o + p + q + r + s;
}

struct record {
    int first;
    float second;
    long third;
};

kernel void sum_record(struct record record, global double *out) {
    if (ONLY_ONE) *out = record.first + (double)record.second + (double)record.third;
}
#endif

/* Defined by a driver that can make a kernel fail: the stub of `tests/opencl`. */
#ifdef SUITE_CAN_FAIL
kernel void fail(global const float *in, global float *out) {
    (void)in;
    (void)out;
}
#endif
