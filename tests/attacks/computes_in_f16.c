// Computes with the precision of f16 what is compared with f32's tolerance of a long sum: told as `max_ulp`, and not judged.
// Surface: tolerance. Severity: low.
// Tolerance: 2e-3.
// Ends as: ok, with at least 1000 ulp.
// Accepted with: nothing.
#include "attack.h"

// The nearest number whose mantissa has the 11 bits of an f16.
static float half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
    memcpy(&value, &bits, sizeof value);
    return value;
}

void k(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) y[i] = half(half(factor) * half(x[i]));
}
