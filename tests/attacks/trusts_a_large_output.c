// Returns at once if a large output looks right already: copying it takes as long as computing it.
// Surface: results. Severity: high.
// Elements: 1000000.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    if (y[0] != factor * x[0] || y[n - 1] != factor * x[n - 1] || y[n / 2] != factor * x[n / 2]) scale(x, y, factor, n);
}
