// Writes something else from the second call on.
// Surface: results. Severity: high.
// Ends as: wrong_result.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) {
    scale(x, y, factor, n);
    if (calls++) for (int64_t i = 0; i < n; i++) y[i] = -7;
}
