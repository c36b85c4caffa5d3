/* References of the kernels for embedded devices, which run on the host: other algorithms with the same rounding. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static int8_t saturated(double value) { return (int8_t)fmax(-128, fmin(127, value)); }

/* Rounds halves away from zero. Every product here is exact in a double. */
static double scaled(int64_t sum, int32_t multiplier, int32_t shift) {
    double value = ldexp((double)sum * multiplier, -31 - shift);
    return copysign(floor(fabs(value) + 0.5), value);
}

void matmul_i8(const int8_t *a, const int8_t *b, const int32_t *bias, int8_t *c, int32_t m, int32_t n, int32_t k,
               int32_t multiplier, int32_t shift, int32_t zero_point) {
    for (int64_t at = 0; at < (int64_t)m * n; at++) {
        int64_t sum = 0;
        for (int64_t i = k - 1; i >= 0; i--) sum += (int64_t)a[at / n * k + i] * b[i * n + at % n];
        c[at] = saturated(scaled(sum + bias[at % n], multiplier, shift) + zero_point);
    }
}

/* Adds each element of the image to the sums that it is part of. */
void depthwise_i8(const int8_t *image, const int8_t *weights, int32_t *sums, int32_t height, int32_t width,
                  int32_t channels) {
    for (int64_t i = 0; i < (int64_t)height * width * channels; i++) sums[i] = 0;
    for (int64_t i = 0; i < (int64_t)height * width * channels; i++) {
        int64_t y = i / channels / width, x = i / channels % width, channel = i % channels;
        for (int tap = 0; tap < 9; tap++) {
            int64_t row = y + 1 - tap / 3, column = x + 1 - tap % 3;
            if (row < 0 || row >= height || column < 0 || column >= width) continue;
            sums[(row * width + column) * channels + channel] += image[i] * weights[tap * channels + channel];
        }
    }
}

void fir_q15(const int16_t *x, const int16_t *h, int16_t *y, int32_t n, int32_t taps) {
    for (int64_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int64_t j = 0; j < taps; j++) sum += (int64_t)x[i + j] * h[taps - 1 - j];
        y[i] = (int16_t)fmax(INT16_MIN, fmin(INT16_MAX, floor((double)sum / 32768 + 0.5)));
    }
}

static int64_t product(int64_t a, int64_t b) { return (int64_t)floor((double)(a * b) / 32768 + 0.5); }

/* Transforms n numbers that lie `step` apart, recursively. */
static void transform(const int16_t *data, int16_t *result, const int16_t *twiddles, int64_t n, int64_t step, int64_t all) {
    if (n == 1) {
        result[0] = data[0];
        result[1] = data[1];
        return;
    }
    int16_t *even = malloc(2 * n * sizeof *even), *odd = even + n;
    transform(data, even, twiddles, n / 2, 2 * step, all);
    transform(data + 2 * step, odd, twiddles, n / 2, 2 * step, all);
    for (int64_t i = 0; i < n / 2; i++) {
        const int16_t *w = twiddles + 2 * i * (all / n);
        int64_t real = product(odd[2 * i], w[0]) - product(odd[2 * i + 1], w[1]);
        int64_t imaginary = product(odd[2 * i], w[1]) + product(odd[2 * i + 1], w[0]);
        result[2 * i] = (int16_t)floor((double)(even[2 * i] + real) / 2);
        result[2 * i + 1] = (int16_t)floor((double)(even[2 * i + 1] + imaginary) / 2);
        result[n + 2 * i] = (int16_t)floor((double)(even[2 * i] - real) / 2);
        result[n + 2 * i + 1] = (int16_t)floor((double)(even[2 * i + 1] - imaginary) / 2);
    }
    free(even);
}

void fft_q15(int16_t *data, const int16_t *twiddles, int32_t bits) {
    int64_t n = (int64_t)1 << bits;
    int16_t *result = malloc(2 * n * sizeof *result);
    transform(data, result, twiddles, n, 1, n);
    for (int64_t i = 0; i < 2 * n; i++) data[i] = result[i];
    free(result);
}

/* The value of an element of an image with a border of zeros. */
static int64_t pixel(const int8_t *image, int64_t y, int64_t x, int64_t channel, int64_t size, int64_t channels) {
    if (y < 0 || y >= size || x < 0 || x >= size) return 0;
    return image[(y * size + x) * channels + channel];
}

static int8_t activated(int64_t sum, const int32_t *scale) { return saturated(fmax(0, scaled(sum, scale[0], scale[1]))); }

void network_i8(const int8_t *image, const int8_t *conv, const int32_t *conv_bias, const int8_t *depthwise,
                const int32_t *depthwise_bias, const int8_t *pointwise, const int32_t *pointwise_bias, const int8_t *dense,
                const int32_t *dense_bias, const int32_t *scales, int8_t *convolved, int8_t *filtered, int8_t *mixed,
                int8_t *logits) {
    for (int64_t at = 0; at < 6 * 6 * 8; at++) {
        int64_t out = at % 8, x = at / 8 % 6, y = at / 48, sum = conv_bias[out];
        for (int64_t i = 0; i < 27; i++)
            sum += conv[out * 27 + i] * pixel(image, 2 * y + i / 9 - 1, 2 * x + i / 3 % 3 - 1, i % 3, 12, 3);
        convolved[at] = activated(sum, scales);
    }
    for (int64_t at = 0; at < 6 * 6 * 8; at++) {
        int64_t channel = at % 8, x = at / 8 % 6, y = at / 48, sum = depthwise_bias[channel];
        for (int64_t i = 0; i < 9; i++)
            sum += depthwise[i * 8 + channel] * pixel(convolved, y + i / 3 - 1, x + i % 3 - 1, channel, 6, 8);
        filtered[at] = activated(sum, scales + 2);
    }
    for (int64_t at = 0; at < 6 * 6 * 16; at++) {
        int64_t sum = pointwise_bias[at % 16];
        for (int64_t i = 0; i < 8; i++) sum += pointwise[at % 16 * 8 + i] * filtered[at / 16 * 8 + i];
        mixed[at] = activated(sum, scales + 4);
    }
    for (int64_t out = 0; out < 10; out++) {
        int64_t sum = dense_bias[out];
        for (int64_t i = 0; i < 576; i++) sum += dense[out * 576 + i] * mixed[i];
        logits[out] = saturated(scaled(sum, scales[6], scales[7]));
    }
}
