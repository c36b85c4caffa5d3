/* A small network, quantised to int8 with zero points of 0; each layer writes its own tensor. The image is 12 × 12 × 3, channels
   last. A 3 × 3 convolution with stride 2 to 8 channels, a 3 × 3 depthwise convolution, a pointwise convolution to 16 channels, all
   zero-padded and followed by ReLU, and a fully connected layer to 10 numbers. scales holds a multiplier and a shift per layer, as
   in matmul_i8.c. */

#include <stdint.h>

enum { IMAGE = 12, COLOURS = 3, SIZE = 6, CHANNELS = 8, MIXED = 16, CLASSES = 10 };

static int8_t requantise(int32_t sum, const int32_t *scale, int32_t least) {
    int64_t product = (int64_t)sum * scale[0];
    int64_t half = (int64_t)1 << (30 + scale[1]);
    int64_t value = product >= 0 ? (product + half) >> (31 + scale[1]) : -((half - product) >> (31 + scale[1]));
    return (int8_t)(value < least ? least : value > 127 ? 127 : value);
}

/* The part of a 3 × 3 filter, from `from` to before `to`, that lies within `size`. */
static void clip(int32_t origin, int32_t size, int32_t *from, int32_t *to) {
    *from = origin < 0 ? -origin : 0;
    *to = origin + 3 > size ? size - origin : 3;
}

static void convolve(const int8_t *image, const int8_t *weights, const int32_t *bias, const int32_t *scale, int8_t *out) {
    for (int32_t y = 0; y < SIZE; y++)
        for (int32_t x = 0; x < SIZE; x++) {
            int32_t top, bottom, left, right;
            clip(2 * y - 1, IMAGE, &top, &bottom);
            clip(2 * x - 1, IMAGE, &left, &right);
            for (int32_t channel = 0; channel < CHANNELS; channel++) {
                int32_t sum = bias[channel];
                for (int32_t dy = top; dy < bottom; dy++) {
                    const int8_t *pixel = image + ((2 * y - 1 + dy) * IMAGE + 2 * x - 1 + left) * COLOURS;
                    const int8_t *weight = weights + ((channel * 3 + dy) * 3 + left) * COLOURS;
                    for (int32_t i = 0; i < (right - left) * COLOURS; i++) sum += pixel[i] * weight[i];
                }
                *out++ = requantise(sum, scale, 0);
            }
        }
}

static void filter(const int8_t *image, const int8_t *weights, const int32_t *bias, const int32_t *scale, int8_t *out) {
    for (int32_t y = 0; y < SIZE; y++)
        for (int32_t x = 0; x < SIZE; x++) {
            int32_t top, bottom, left, right;
            clip(y - 1, SIZE, &top, &bottom);
            clip(x - 1, SIZE, &left, &right);
            for (int32_t channel = 0; channel < CHANNELS; channel++) {
                int32_t sum = bias[channel];
                for (int32_t dy = top; dy < bottom; dy++)
                    for (int32_t dx = left; dx < right; dx++)
                        sum += image[((y - 1 + dy) * SIZE + x - 1 + dx) * CHANNELS + channel] *
                               weights[(dy * 3 + dx) * CHANNELS + channel];
                *out++ = requantise(sum, scale, 0);
            }
        }
}

/* Each row of `columns` inputs is multiplied by the weights, which are `outputs` × `columns`. */
static void multiply(const int8_t *in, int32_t rows, int32_t columns, const int8_t *weights, const int32_t *bias,
                     int32_t outputs, const int32_t *scale, int32_t least, int8_t *out) {
    for (int32_t row = 0; row < rows; row++, in += columns)
        for (int32_t output = 0; output < outputs; output++) {
            int32_t sum = bias[output];
            for (int32_t i = 0; i < columns; i++) sum += in[i] * weights[output * columns + i];
            *out++ = requantise(sum, scale, least);
        }
}

void network_i8(const int8_t *image, const int8_t *conv, const int32_t *conv_bias, const int8_t *depthwise,
                const int32_t *depthwise_bias, const int8_t *pointwise, const int32_t *pointwise_bias, const int8_t *dense,
                const int32_t *dense_bias, const int32_t *scales, int8_t *convolved, int8_t *filtered, int8_t *mixed,
                int8_t *logits) {
    convolve(image, conv, conv_bias, scales, convolved);
    filter(convolved, depthwise, depthwise_bias, scales + 2, filtered);
    multiply(filtered, SIZE * SIZE, CHANNELS, pointwise, pointwise_bias, MIXED, scales + 4, 0, mixed);
    multiply(mixed, 1, SIZE * SIZE * MIXED, dense, dense_bias, CLASSES, scales + 6, -128, logits);
}
