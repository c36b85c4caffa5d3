// Kernels of `runtime peak` for the host: vectors as wide as the processor's registers, one chunk of work per iteration.
// The barriers for the compiler keep it from leaving out repeated work.

#include <stdint.h>

#if defined __AVX512F__
#define WIDTH 64
#elif defined __AVX__
#define WIDTH 32
#else
#define WIDTH 16
#endif

#define KEEP() __asm__ volatile("" ::: "memory")
#define EACH(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)

// With m = -1 every step turns x into b - x and back, exactly in every type.
#define DECLARE(j) v x##j = (v){0} + (T)((i & 7) + j);
#define STEP(j) x##j = x##j * m + b;
#define ADD(j) sum += x##j;
#define CHAINS(NAME, TYPE) \
    void NAME(TYPE *result, int32_t m_, int32_t b_, int64_t steps, int64_t begin, int64_t end) { \
        typedef TYPE T; \
        typedef T v __attribute__((vector_size(WIDTH))); \
        const v m = (v){0} + (T)m_, b = (v){0} + (T)b_; \
        for (int64_t i = begin; i < end; i++) { \
            EACH(DECLARE) \
            for (int64_t k = 0; k < steps; k++) { EACH(STEP) } \
            v sum = (v){0}; \
            EACH(ADD) \
            T total = 0; \
            for (unsigned lane = 0; lane < sizeof(v) / sizeof(T); lane++) total += sum[lane]; \
            result[i] = total; \
        } \
    }

CHAINS(chains_f32, float)
CHAINS(chains_f64, double)
#ifdef __AVX512FP16__
CHAINS(chains_f16, _Float16)
#endif

// Dot products of pairs or quadruples of ones: each step adds their length.
#define ZERO(j) accumulator x##j = {0};
#define DOTS(NAME, ACCUMULATOR, OPERATION) \
    void NAME(ACCUMULATOR *result, int64_t steps, int64_t begin, int64_t end) { \
        typedef ACCUMULATOR accumulator_lane; \
        typedef accumulator_lane accumulator __attribute__((vector_size(64))); \
        for (int64_t i = begin; i < end; i++) { \
            EACH(ZERO) \
            for (int64_t k = 0; k < steps; k++) { EACH(OPERATION) } \
            accumulator sum = {0}; \
            EACH(ADD) \
            accumulator_lane total = 0; \
            for (int lane = 0; lane < 16; lane++) total += sum[lane]; \
            result[i] = total; \
        } \
    }

#ifdef __AVX512BF16__
#define DOT_BF16(j) __asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(x##j) : "v"(ones_bf16));
static const uint32_t one_bf16 = 0x3f803f80;
#define ones_bf16 ((accumulator)((int32_t __attribute__((vector_size(64)))){0} + (int32_t)one_bf16))
DOTS(dots_bf16, float, DOT_BF16)
#endif
#ifdef __AVX512VNNI__
#define DOT_I8(j) __asm__ volatile("vpdpbusd %1, %1, %0" : "+v"(x##j) : "v"(ones_i8));
#define ones_i8 ((accumulator){0} + 0x01010101)
DOTS(dots_i8, int32_t, DOT_I8)
#endif

typedef float lanes __attribute__((vector_size(WIDTH)));

#define READ(j) lanes s##j = {0};
#define READ_STEP(j) s##j += *(const lanes *)(from + i + j * LANES);
#define LANES ((int64_t)(WIDTH / sizeof(float)))

void read_memory(float *c, const float *a, const float *b, int64_t chunk, int64_t rounds, float factor, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
        const float *from = a + at * chunk;
        READ(0) READ(1) READ(2) READ(3) READ(4) READ(5) READ(6) READ(7)
        for (int64_t round = 0; round < rounds; round++) {
            KEEP();
            for (int64_t i = 0; i < chunk; i += 8 * LANES) {
                READ_STEP(0) READ_STEP(1) READ_STEP(2) READ_STEP(3) READ_STEP(4) READ_STEP(5) READ_STEP(6) READ_STEP(7)
            }
        }
        lanes sum = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
        for (int64_t lane = 0; lane < 16; lane++) c[at * 16 + lane] = sum[lane % LANES];
    }
}

void copy_memory(float *c, const float *a, const float *b, int64_t chunk, int64_t rounds, float factor, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
        for (int64_t round = 0; round < rounds; round++) {
            KEEP();
            const float *restrict from = a + at * chunk;
            float *restrict to = c + at * chunk;
            for (int64_t i = 0; i < chunk; i++) to[i] = from[i];
        }
    }
}

void triad_memory(float *c, const float *a, const float *b, int64_t chunk, int64_t rounds, float factor, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at++) {
        for (int64_t round = 0; round < rounds; round++) {
            KEEP();
            const float *restrict one = a + at * chunk, *restrict two = b + at * chunk;
            float *restrict to = c + at * chunk;
            for (int64_t i = 0; i < chunk; i++) to[i] = one[i] + factor * two[i];
        }
    }
}

void empty(int64_t begin, int64_t end) {}
