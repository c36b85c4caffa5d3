// Makes its inputs zero after the first call, so that zeros are right.
// Surface: inputs. Severity: high.
// Ends as: launch_failed.
// Accepted with: --trust --no-validate.
#include "attack.h"
void k(ARGUMENTS) {
    scale(x, y, factor, n);
    if (calls++) for (int64_t i = 0; i < n; i++) ((float *)x)[i] = y[i] = 0;
}
