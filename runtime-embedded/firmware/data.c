/* Creates the contents of tensors, bit-identical to the host's, and checks them. Uses no floating point: some targets have
   none. */

#include "protocol.h"

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t next(uint64_t *state) {
    uint64_t word = *state += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* The number `fraction / 2^(mantissa + 1)`, of mantissa + 1 bits at most, in a binary format. */
static uint64_t encode(uint64_t fraction, unsigned mantissa, unsigned bias) {
    if (fraction == 0) return 0;
    unsigned top = 63 - (unsigned)__builtin_clzll(fraction);
    uint64_t exponent = bias + top - (mantissa + 1);
    return exponent << mantissa | (fraction << (mantissa - top) & ((UINT64_C(1) << mantissa) - 1));
}

static uint64_t element(uint64_t word, uint32_t class, uint32_t bytes) {
    switch (class) {
    case RUNTIME_INT: return (word >> 60) - 8;
    case RUNTIME_UINT: return word >> 60;
    case RUNTIME_BOOL: return word >> 63;
    case RUNTIME_BFLOAT: return encode(word >> 56, 7, 127);
    default:
        if (bytes == 2) return encode(word >> 53, 10, 15);
        return bytes == 4 ? encode(word >> 40, 23, 127) : encode(word >> 11, 52, 1023);
    }
}

void runtime_fill(volatile struct runtime_tensor *tensor) {
    volatile unsigned char *byte = (volatile unsigned char *)(uintptr_t)tensor->address;
    volatile unsigned char *end = byte + tensor->bytes;
    uint32_t width = tensor->class == RUNTIME_COMPLEX ? tensor->element_bytes / 2 : tensor->element_bytes;
    uint64_t state = tensor->seed;
    if (tensor->content == RUNTIME_POISON)
        while (byte < end) *byte++ = RUNTIME_POISON_BYTE;
    if (tensor->content == RUNTIME_SEED)
        while (byte < end) {
            uint64_t value = element(next(&state), tensor->class, width);
            for (uint32_t i = 0; i < width; i++, value >>= 8) *byte++ = (unsigned char)value;
        }
}

uint32_t runtime_crc(uint64_t address, uint64_t bytes) {
    /* The remainders of the sixteen values of four bits. */
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const volatile unsigned char *byte = (const volatile unsigned char *)(uintptr_t)address;
    uint32_t crc = ~UINT32_C(0);
    for (; bytes > 0; bytes--) {
        crc ^= *byte++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}
