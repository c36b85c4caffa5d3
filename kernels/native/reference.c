/* Naive kernels that others are compared with: written to be read, not to be fast. */

#include <stdint.h>

void matmul(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
            c[i * n + j] = sum;
        }
}

void saxpy(const float *x, float *y, float alpha, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = alpha * x[i] + y[i];
}

void vector_add(const float *a, const float *b, float *c, int64_t n) {
    for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}
