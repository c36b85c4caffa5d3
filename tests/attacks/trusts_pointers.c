// Computes only if the input is at another address than in the call before.
// Surface: results (replay). Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) {
    static const float *last;
    if (x != last) slow(x, y, factor, n);
    last = x;
}
