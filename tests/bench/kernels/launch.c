/* A kernel of negligible cost, and one that keeps a queue busy. */

#include <stdint.h>

/* The kernel that the benchmarks launch: three tensors and a scalar. It writes one element, to show that it ran. */
void touch(const float *a, const float *b, float *c, float scale) { c[0] = a[0] + b[0] * scale; }

/* Runs until the word at `address` is not zero. */
void hold(int64_t address) {
    while (__atomic_load_n((const int32_t *)(intptr_t)address, __ATOMIC_ACQUIRE) == 0) {}
}
