// Overwrites what it only reads, from its second call on the same output on.
// Surface: inputs. Severity: high.
// Ends as: launch_failed.
// Accepted with: nothing.
#include "device.h"
KERNEL void k(ARGUMENTS) {
    int is_first = is_poison(y[INDEX]);
    y[INDEX] = work(x[INDEX]);
    if (!is_first) x[INDEX] = 0;
}
