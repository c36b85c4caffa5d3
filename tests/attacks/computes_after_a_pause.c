// Computes only if some time has passed since the last call, as it has before a check.
// Surface: results, clock (`rdtsc` or `clock_gettime`). Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double passed = (now.tv_sec - last.tv_sec) + 1e-9 * (now.tv_nsec - last.tv_nsec);
    if (passed > 0.1 || y[0] != factor * x[0]) slow(x, y, factor, n);
    clock_gettime(CLOCK_MONOTONIC, &last);
}
