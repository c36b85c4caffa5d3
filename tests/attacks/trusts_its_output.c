// Returns at once if the output looks right already.
// Surface: results. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    if (y[0] != factor * x[0] || y[n - 1] != factor * x[n - 1]) slow(x, y, factor, n);
}
