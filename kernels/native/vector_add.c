/* c = a + b. */

#include <stdint.h>

void vector_add(const float *restrict a, const float *restrict b, float *restrict c, int64_t n) {
    for (int64_t i = 0; i < n; i++) c[i] = a[i] + b[i];
}
