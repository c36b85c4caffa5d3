// Copies an answer that was known before; here it is learnt from the first call.
// Surface: seed, results. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) {
    static float output[1000];
    if (!calls++) { slow(x, y, factor, n); memcpy(output, y, sizeof output); }
    memcpy(y, output, sizeof output);
}
