/* The floating-point peak of one core: independent chains of fused multiply-adds in registers.
 * One iteration has 192 multiply-adds, whatever the vector width. */

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { CHAINS = 12, ROUNDS = 192 / (CHAINS * LANES) };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

/* `factors` holds a multiplier and a summand, read at run time so that the compiler cannot fold the computation. */
void fma_peak(const float *factors, float *out, int64_t iterations) {
    vector chain[CHAINS], scale = factors[0] - (vector){0}, shift = factors[1] - (vector){0};
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++) chain[i] = shift * (float)i;
    for (int64_t n = iterations * ROUNDS; n > 0; n--)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * scale + shift;
    memset(out, 0, 16 * sizeof(float));
    for (int i = 0; i < CHAINS; i++)
        for (int lane = 0; lane < LANES; lane++) out[lane] += chain[i][lane];
}
