// Computes again only if it is called with other tensors than in the call before.
// Surface: device variables. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "device.h"
VARIABLE u64 of[N];
KERNEL void k(ARGUMENTS) {
    u32 i = INDEX;
    u64 now = (u64)(y + i);
    if (of[i] != now || is_poison(y[i])) y[i] = work(x[i]);
    of[i] = now;
}
