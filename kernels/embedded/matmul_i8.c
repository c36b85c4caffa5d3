/* c = requantise(a × b + bias): a is m × k, b is k × n, both int8 with the zero points 0. The product is scaled by
   multiplier / 2^31 / 2^shift, rounded to the nearest (halves away from zero), and saturated, as in TensorFlow Lite. */

#include <stdint.h>

static int8_t requantise(int32_t sum, int32_t multiplier, int32_t shift, int32_t zero_point) {
    int64_t product = (int64_t)sum * multiplier;
    int64_t half = (int64_t)1 << (30 + shift);
    int64_t scaled = product >= 0 ? (product + half) >> (31 + shift) : -((half - product) >> (31 + shift));
    int64_t value = scaled + zero_point;
    return (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
}

void matmul_i8(const int8_t *a, const int8_t *b, const int32_t *bias, int8_t *c, int32_t m, int32_t n, int32_t k,
               int32_t multiplier, int32_t shift, int32_t zero_point) {
    for (int32_t row = 0; row < m; row++)
        for (int32_t column = 0; column < n; column++) {
            int32_t sum = bias[column];
            for (int32_t i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
            c[row * n + column] = requantise(sum, multiplier, shift, zero_point);
        }
}
