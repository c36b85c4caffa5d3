// Honest kernels of many kinds: y[i] of x[i] and factor, and a state that most leave alone. STYLE chooses one.
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS const float *x, float *y, float *state, float factor, int64_t n

static void k_scale(ARGUMENTS) { for (int64_t i = 0; i < n; i++) y[i] = factor * x[i]; }

static void k_threads(ARGUMENTS) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];
}

static void k_divides(ARGUMENTS) { for (int64_t i = 0; i < n; i++) y[i] = sqrtf(fabsf(x[i]) + 1) / (factor + x[i] * x[i]); }

// Branches depend on random data, which a predictor learns from repeated calls.
static void k_branches(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > 0.5f) y[i] = expf(x[i]); else y[i] = factor;
    }
}

static void k_stencil(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) y[i] = factor * (x[i > 0 ? i - 1 : 0] + x[i] + x[i + 1 < n ? i + 1 : n - 1]);
}

// Jumps through memory.
static void k_gathers(ARGUMENTS) { for (int64_t i = 0; i < n; i++) y[i] = factor * x[(i * 7919) % n]; }

// A table that the first call makes.
static void k_table(ARGUMENTS) {
    static float *table;
    if (!table) {
        table = malloc(4096 * sizeof *table);
        for (int i = 0; i < 4096; i++) table[i] = cosf((float)i);
    }
    for (int64_t i = 0; i < n; i++) y[i] = factor * table[(int)(fabsf(x[i]) * 4095) & 4095];
}

// Scratch memory from the heap in each call.
static void k_allocates(ARGUMENTS) {
    float *scratch = malloc(n * sizeof *scratch);
    for (int64_t i = 0; i < n; i++) scratch[n - 1 - i] = x[i];
    for (int64_t i = 0; i < n; i++) y[i] = factor * scratch[i];
    free(scratch);
}

static void k_accumulates(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) state[i % 64] += x[i] > 0.5f;
    for (int64_t i = 0; i < n; i++) y[i] = factor * x[i] + 1;
}

// What is written depends on the calls before.
static void k_counts(ARGUMENTS) {
    state[0] += 1;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] + state[0];
}

// What later calls write may look like anything.
static void k_flips(ARGUMENTS) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = state[1] == 0 ? 0 : UINT32_MAX;
        memcpy(&y[i], &bits, 4);
    }
    if (state[1] == 0) for (int64_t i = 0; i < n; i++) y[i] = x[i];
    state[1] = 1;
}
