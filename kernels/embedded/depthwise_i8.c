/* A 3 × 3 depthwise convolution of an image of height × width × channels, with a border of zeros, to sums of int32. */

#include <stdint.h>

void depthwise_i8(const int8_t *image, const int8_t *weights, int32_t *sums, int32_t height, int32_t width,
                  int32_t channels) {
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++)
            for (int32_t channel = 0; channel < channels; channel++) {
                int32_t sum = 0;
                for (int32_t dy = -1; dy <= 1; dy++)
                    for (int32_t dx = -1; dx <= 1; dx++) {
                        if (y + dy < 0 || y + dy >= height || x + dx < 0 || x + dx >= width) continue;
                        sum += image[((y + dy) * width + x + dx) * channels + channel] *
                               weights[((dy + 1) * 3 + dx + 1) * channels + channel];
                    }
                sums[(y * width + x) * channels + channel] = sum;
            }
}
