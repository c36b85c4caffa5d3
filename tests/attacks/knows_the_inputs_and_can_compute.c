// Copies an answer that was known before, and computes for all other inputs.
// Surface: seed, results. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static float first, output[1000];
    if (!calls++) { slow(x, y, factor, n); first = x[0]; memcpy(output, y, sizeof output); }
    if (x[0] == first) memcpy(y, output, sizeof output); else slow(x, y, factor, n);
}
