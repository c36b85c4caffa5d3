/* The kernels of the suite in C. Element counts come last, because C pointers have no length. */
#include <stdint.h>
#include <time.h>

static void spend(int64_t microseconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < microseconds);
}

void noop(void) {}

void spin(int64_t microseconds) { spend(microseconds); }

/* Runs until the host sets the flag, for at most ten seconds. */
void hold(const int32_t *flag) {
    for (int round = 0; round < 100000 && !__atomic_load_n(flag, __ATOMIC_ACQUIRE); round++)
        spend(100);
}

void add_f32(const float *a, const float *b, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

void saxpy_f32(const float *x, float *y, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

void scale_f32(float *x, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= a;
}

void fill_f32(float *out, float value, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = value;
}

void copy_f32(const float *from, float *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

void iota_i32(int32_t *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)i;
}

void sum9(double a, int64_t b, double c, int64_t d, double e, int64_t f, double g, int64_t h, double *out) {
    *out = a + (double)b + c + (double)d + e + (double)f + g + (double)h;
}

/* Mixed integers and floats of every width, more than any calling convention passes in registers. */
void sum20(int32_t a, double b, int64_t c, float d, uint8_t e, double f, int16_t g, float h, uint32_t i, double j,
           int64_t k, double l, int8_t m, double n, uint64_t o, double p, uint16_t q, double r, float s, double *out) {
    *out = a + b + (double)c + d + e + f + g + h + i + j + (double)k + l + m + n + (double)o + p + q + r + s;
}

struct record {
    int32_t first;
    float second;
    int64_t third;
};

void sum_record(struct record record, double *out) {
    *out = record.first + (double)record.second + (double)record.third;
}

/* Reverses `n` numbers through `n` elements of work-group memory. */
void reverse_f32(const float *in, float *out, float *scratch, int64_t n) {
    for (int64_t i = 0; i < n; i++) scratch[i] = in[i];
    for (int64_t i = 0; i < n; i++) out[i] = scratch[n - 1 - i];
}

/* Fails. Plain C functions return nothing, so this one has the symbol that TVM's FFI derives from `fail`: there, any return value
   but 0 is a failure. */
int __tvm_ffi_fail(void *handle, const void *args, int32_t count, void *result) {
    (void)handle, (void)args, (void)count, (void)result;
    return -1;
}
