/* The kernels that the stub implements: those of the suite (`suite.cu`) and of the backend (`builtin.cu`). */
#define _GNU_SOURCE
#include "cuda.h"

#include <string.h>
#include <time.h>

#define KERNEL(name) static void name(const struct kernel_call *call)
#define P(type, index) (*(type *)(void *)call->parameters[index])

KERNEL(noop) { (void)call; }
KERNEL(spin) {
    int64_t us = P(int64_t, 0);
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    if (us > 0) nanosleep(&time, NULL);
}
KERNEL(add_f32) {
    for (int64_t i = 0; i < P(int64_t, 3); i++) P(float *, 2)[i] = P(float *, 0)[i] + P(float *, 1)[i];
}
KERNEL(saxpy_f32) {
    for (int64_t i = 0; i < P(int64_t, 3); i++) P(float *, 1)[i] += P(float, 2) * P(float *, 0)[i];
}
KERNEL(scale_f32) {
    for (int64_t i = 0; i < P(int64_t, 2); i++) P(float *, 0)[i] *= P(float, 1);
}
KERNEL(fill_f32) {
    for (int64_t i = 0; i < P(int64_t, 2); i++) P(float *, 0)[i] = P(float, 1);
}
KERNEL(copy_f32) {
    for (int64_t i = 0; i < P(int64_t, 2); i++) P(float *, 1)[i] = P(float *, 0)[i];
}
KERNEL(iota_i32) {
    for (int64_t i = 0; i < P(int64_t, 1); i++) P(int32_t *, 0)[i] = (int32_t)i;
}
KERNEL(sum9) {
    *P(double *, 8) = P(double, 0) + (double)P(int64_t, 1) + P(double, 2) + (double)P(int64_t, 3) + P(double, 4) +
                      (double)P(int64_t, 5) + P(double, 6) + (double)P(int64_t, 7);
}
KERNEL(sum20) {
    *P(double *, 19) = P(int, 0) + P(double, 1) + (double)P(int64_t, 2) + P(float, 3) + P(unsigned char, 4) + P(double, 5) +
                       P(short, 6) + P(float, 7) + P(unsigned, 8) + P(double, 9) + (double)P(int64_t, 10) + P(double, 11) +
                       P(signed char, 12) + P(double, 13) + (double)P(uint64_t, 14) + P(double, 15) + P(unsigned short, 16) +
                       P(double, 17) + P(float, 18);
}
KERNEL(sum_record) {
    *P(double *, 1) = *(int *)(void *)call->parameters[0] + (double)*(float *)(void *)(call->parameters[0] + 4) +
                      (double)*(int64_t *)(void *)(call->parameters[0] + 8);
}
KERNEL(reverse_f32) {
    if (call->shared_bytes < P(int64_t, 2) * 4) return;
    for (int64_t i = 0, n = P(int64_t, 2); i < n; i++) P(float *, 1)[i] = P(float *, 0)[n - 1 - i];
}
KERNEL(group_ids_u32) {
    unsigned count = call->grid[0] * call->grid[1] * call->grid[2] * call->block[0] * call->block[1] * call->block[2];
    for (unsigned id = 0; id < count; id++) P(unsigned *, 0)[id] = id;
}
KERNEL(fill_words) {
    for (uint64_t i = 0; i < P(uint64_t, 1); i++) P(uint64_t *, 0)[i] = P(uint64_t, i & 1 ? 3 : 2);
}
KERNEL(fill_bytes) {
    for (uint64_t i = 0; i < P(uint64_t, 1); i++)
        P(unsigned char *, 0)[i] = (unsigned char)(P(uint64_t, i & 8 ? 3 : 2) >> (8 * (i & 7)));
}

static const struct kernel kernels[] = {
    {"noop", noop, 0, {0}},
    {"empty", noop, 0, {0}},
    {"touch", noop, 4, {8, 8, 8, 4}},
    {"spin", spin, 1, {8}},
    {"add_f32", add_f32, 4, {8, 8, 8, 8}},
    {"saxpy_f32", saxpy_f32, 4, {8, 8, 4, 8}},
    {"scale_f32", scale_f32, 3, {8, 4, 8}},
    {"fill_f32", fill_f32, 3, {8, 4, 8}},
    {"copy_f32", copy_f32, 3, {8, 8, 8}},
    {"iota_i32", iota_i32, 2, {8, 8}},
    {"sum9", sum9, 9, {8, 8, 8, 8, 8, 8, 8, 8, 8}},
    {"sum20", sum20, 20, {4, 8, 8, 4, 1, 8, 2, 4, 4, 8, 8, 8, 1, 8, 8, 8, 2, 8, 4, 8}},
    {"sum_record", sum_record, 2, {16, 8}},
    {"reverse_f32", reverse_f32, 3, {8, 8, 8}},
    {"group_ids_u32", group_ids_u32, 1, {8}},
    {"fill_words", fill_words, 4, {8, 8, 8, 8}},
    {"fill_bytes", fill_bytes, 4, {8, 8, 8, 8}},
    {NULL, NULL, 0, {0}},
};

const struct kernel *all_kernels(void) { return kernels; }

const struct kernel *find_kernel(const char *name) {
    for (const struct kernel *kernel = kernels; kernel->name; kernel++)
        if (strcmp(kernel->name, name) == 0) return kernel;
    return NULL;
}

void run_kernel(const struct kernel_call *call) { call->kernel->run(call); }
