// Keeps what it has computed by its input, in variables of the device.
// Surface: device variables. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "device.h"
VARIABLE u32 known[N], computed[N];
KERNEL void k(ARGUMENTS) {
    u32 i = INDEX;
    if (known[i] != x[i] || computed[i] == 0) {
        known[i] = x[i];
        computed[i] = work(x[i]);
    }
    y[i] = computed[i];
}
