/* A complex FFT of n = 2^bits numbers of 1.15 fixed point, in place, decimated in time. Each of its stages halves the numbers, so
   the result is the transform divided by n. twiddles[i] is exp(-2πi × i / n) for i < n / 2. Numbers are pairs: real, imaginary. */

#include <stdint.h>

static int32_t product(int32_t a, int32_t b) { return (a * b + (1 << 14)) >> 15; }

static void reverse_bits(int16_t *data, int32_t bits) {
    for (int32_t i = 0; i < 1 << bits; i++) {
        int32_t reversed = 0;
        for (int32_t bit = 0; bit < bits; bit++) reversed |= (i >> bit & 1) << (bits - 1 - bit);
        if (reversed <= i) continue;
        for (int32_t part = 0; part < 2; part++) {
            int16_t kept = data[2 * i + part];
            data[2 * i + part] = data[2 * reversed + part];
            data[2 * reversed + part] = kept;
        }
    }
}

void fft_q15(int16_t *data, const int16_t *twiddles, int32_t bits) {
    reverse_bits(data, bits);
    for (int32_t stage = 0; stage < bits; stage++) {
        int32_t half = 1 << stage;
        for (int32_t begin = 0; begin < 1 << bits; begin += 2 * half)
            for (int32_t i = 0; i < half; i++) {
                const int16_t *twiddle = twiddles + 2 * (i << (bits - 1 - stage));
                int16_t *upper = data + 2 * (begin + i), *lower = upper + 2 * half;
                int32_t real = product(lower[0], twiddle[0]) - product(lower[1], twiddle[1]);
                int32_t imaginary = product(lower[0], twiddle[1]) + product(lower[1], twiddle[0]);
                int32_t sums[4] = {upper[0] + real, upper[1] + imaginary, upper[0] - real, upper[1] - imaginary};
                upper[0] = (int16_t)(sums[0] >> 1);
                upper[1] = (int16_t)(sums[1] >> 1);
                lower[0] = (int16_t)(sums[2] >> 1);
                lower[1] = (int16_t)(sums[3] >> 1);
            }
    }
}
