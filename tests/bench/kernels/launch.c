/* Kernels that cost nothing, and one that holds a queue. */

#include <stdint.h>

/* Three tensors and a scalar: what the benchmarks launch. Writes one element, so that a call cannot be lost unseen. */
void touch(const float *a, const float *b, float *c, float scale) { c[0] = a[0] + b[0] * scale; }

/* Runs until the word at `address` is not zero. */
void hold(int64_t address) {
    while (__atomic_load_n((const int32_t *)(intptr_t)address, __ATOMIC_ACQUIRE) == 0) {}
}
