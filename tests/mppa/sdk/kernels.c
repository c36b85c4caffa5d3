/* Programs of the fake chip: the kernels of the conformance suite that it can run, and those of other tests. Arguments come in a
   structure, as on the chip. */

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Set before each kernel. */
int cluster;

/* Doubles bytes. */
struct twice { unsigned char *bytes; uint64_t size; };
void twice(struct twice *args) {
    for (uint64_t i = 0; i < args->size; i++)
        args->bytes[i] *= 2;
}
/* Writes the number of each cluster that it runs on. */
struct clusters { int32_t *seen; };
void clusters(struct clusters *args) { args->seen[cluster]++; }

void noop(void *args) { (void)args; }

struct spin { int64_t us; };
void spin(struct spin *args) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < args->us);
}

struct hold { volatile int32_t *flag; };
void hold(struct hold *args) {
    struct timespec pause = {0, 100000};
    for (int waited = 0; !*args->flag && waited < 100000; waited++)
        nanosleep(&pause, 0);
}

struct fill_f32 { float *out; float value; int64_t n; };
void fill_f32(struct fill_f32 *args) {
    for (int64_t i = 0; i < args->n; i++)
        args->out[i] = args->value;
}

struct copy_f32 { float *from, *to; int64_t n; };
void copy_f32(struct copy_f32 *args) {
    for (int64_t i = 0; i < args->n; i++)
        args->to[i] = args->from[i];
}

struct add_f32 { float *a, *b, *out; int64_t n; };
void add_f32(struct add_f32 *args) {
    for (int64_t i = 0; i < args->n; i++)
        args->out[i] = args->a[i] + args->b[i];
}

struct scale_f32 { float *x; float a; int64_t n; };
void scale_f32(struct scale_f32 *args) {
    for (int64_t i = 0; i < args->n; i++)
        args->x[i] *= args->a;
}

struct saxpy_f32 { float *x, *y; float a; int64_t n; };
void saxpy_f32(struct saxpy_f32 *args) {
    for (int64_t i = 0; i < args->n; i++)
        args->y[i] += args->a * args->x[i];
}

struct iota_i32 { int32_t *out; int64_t n; };
void iota_i32(struct iota_i32 *args) {
    for (int64_t i = 0; i < args->n; i++)
        args->out[i] = i;
}

struct sum9 { double a; int64_t b; double c; int64_t d; double e; int64_t f; double g; int64_t h; double *out; };
void sum9(struct sum9 *args) {
    *args->out = args->a + args->b + args->c + args->d + args->e + args->f + args->g + args->h;
}

struct sum20 {
    int32_t a; double b; int64_t c; float d; uint8_t e; double f; int16_t g; float h; uint32_t i; double j; int64_t k; double l;
    int8_t m; double n; uint64_t o; double p; uint16_t q; double r; float s; double *out;
};
void sum20(struct sum20 *args) {
    *args->out = args->a + args->b + args->c + args->d + args->e + args->f + args->g + args->h + args->i + args->j + args->k +
                 args->l + args->m + args->n + args->o + args->p + args->q + args->r + args->s;
}

struct sum_record { struct { int32_t a; float b; int64_t c; } record; double *out; };
void sum_record(struct sum_record *args) {
    *args->out = (double)args->record.a + args->record.b + args->record.c;
}

/* Counters: event `e` in slot `s` counts 1000 e + 100 cluster + element for each kernel that ran in between. */
static uint64_t events[7], count, kernels;
struct start { uint64_t count; struct { uint64_t slot, event; } slots[7]; };
void runtime_counters_start(struct start *args) {
    count = args->count;
    kernels = 0;
    for (uint64_t i = 0; i < count; i++)
        events[i] = args->slots[i].slot == i + 1 ? args->slots[i].event : 999;
}
struct stop { uint64_t (*values)[16]; };
void runtime_counters_stop(struct stop *args) {
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t element = 0; element < 16; element++)
            args->values[i][element] = kernels * (1000 * events[i] + 100 * cluster + element);
}
struct counted { int32_t *calls; };
void counted(struct counted *args) {
    ++*args->calls;
    kernels++;
}

/* Leaves a trace in the working directory of the host program, as a library might. */
void traced(void *args) {
    (void)args;
    const char *wanted = getenv("MPPA_TRACE_ENABLE");
    FILE *file = wanted ? fopen("chip.trace", "a") : NULL;
    if (file && fputs("ran\n", file) >= 0)
        fclose(file);
}
