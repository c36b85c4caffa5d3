// Computes again only if it is called with other tensors than in the call before.
// Surface: device variables. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "device.h"
VARIABLE ulong of[N];
KERNEL void k(ARGUMENTS) {
    u32 i = INDEX;
    ulong now = (ulong)(y + i);
    if (of[i] != now || is_poison(y[i])) y[i] = work(x[i]);
    of[i] = now;
}
