// Returns at once if its output looks as if it had been written before.
// Surface: results. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "device.h"
KERNEL void k(ARGUMENTS) {
    if (is_poison(y[INDEX])) y[INDEX] = work(x[INDEX]);
}
