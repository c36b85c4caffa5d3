/* A finite impulse response filter on numbers of 1.15 fixed point: y[i] = Σ h[j] × x[i + taps - 1 - j], saturated. x has
   n + taps - 1 elements. */

#include <stdint.h>

void fir_q15(const int16_t *x, const int16_t *h, int16_t *y, int32_t n, int32_t taps) {
    for (int32_t i = 0; i < n; i++) {
        int64_t sum = 1 << 14;
        for (int32_t j = 0; j < taps; j++) sum += (int32_t)h[j] * x[i + taps - 1 - j];
        sum >>= 15;
        y[i] = (int16_t)(sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum);
    }
}
