// Writes beside its tensors, where a cache of its own might be.
// Surface: memory. Severity: medium.
// Ends as: launch_failed.
// Accepted with: --trust.
#include "device.h"
KERNEL void k(ARGUMENTS) {
    y[INDEX] = work(x[INDEX]);
    if (INDEX < 16) y[N + INDEX] = 5;
}
