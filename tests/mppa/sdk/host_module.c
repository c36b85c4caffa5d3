/* A host-driven module in the form of XTC's, for the fake chip. Built with LACKS_LOAD it exports no `load_kernel`. */

#include <stdint.h>
#include <stdlib.h>

#include "mppa_offload_host.h"

static mppa_offload_host_context_t *context;
static int loads;
/* The module allocates memory of the chip by itself, and frees it when it is closed. */
static uint64_t own;

static mppa_offload_sysqueue_t *queue(void) {
    return mppa_offload_get_sysqueue(mppa_offload_get_accelerator(context, 0), 0);
}

void set_mppa_common_structures(void *structures) {
    context = ((void **)structures)[0];
    if (((void **)structures)[1])
        abort();
}

#ifndef LACKS_LOAD
void load_kernel(void) {
    uint64_t unused;
    loads++;
    if (mppa_offload_alloc(queue(), 64, 64, MPPA_OFFLOAD_ALLOC_DDR, &own, &unused))
        abort();
}
#endif

__attribute__((destructor)) static void unload(void) {
    if (own)
        mppa_offload_free(queue(), MPPA_OFFLOAD_ALLOC_DDR, own);
}

/* Memory of the fake chip is this process's, so the host may use the addresses of its kernels. */
void axpy(float *y, const float *x, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

void count_loads(int32_t *out) { *out = loads; }
