/* y = alpha · x + y. */

#include <stdint.h>

void saxpy(const float *restrict x, float *restrict y, float alpha, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = alpha * x[i] + y[i];
}
