// Writes behind its output.
// Surface: memory of the judge. Severity: medium.
// Ends as: launch_failed.
// Accepted with: --trust.
#include "attack.h"
void k(ARGUMENTS) { scale(x, y, factor, n); y[n + 1] = 1; }
