/* References of the shaders in this folder. */
#include <stdint.h>

void saxpy(const float *x, float *y, float alpha, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) y[i] = alpha * x[i] + y[i];
}

void sums(const float *numbers, float *sums, uint32_t n) {
    for (uint32_t begin = 0; begin < n; begin += 32) {
        float sum = 0;
        for (uint32_t i = begin; i < n && i < begin + 32; i++) sum += numbers[i];
        sums[begin / 32] = 3 * sum;
    }
}

void wide(const double *numbers, uint32_t *counts, uint32_t n, double limit, uint64_t step) {
    for (uint32_t i = 0; i < n; i++)
        if (numbers[i] < limit) counts[i % step]++;
}
