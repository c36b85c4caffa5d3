// What the attacks on devices pretend to compute.
#include <stdint.h>

void k(const uint32_t *x, uint32_t *y) {
    for (int n = 0; n < 4096; n++) {
        uint32_t v = x[n];
        for (uint32_t i = 0; i < 8000; i++) v = (v ^ (v >> 7)) * 2654435769u + i;
        y[n] = v;
    }
}
